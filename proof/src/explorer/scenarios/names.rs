//! Claims that compete for one name, and buckets that existed before.

use serde_json::json;
use stowage_operator::api::wire::Role;
use stowage_world::ADMIN_ACCOUNT;
use stowage_world::effects::{Edit, Fault, KubeFault, S3Fault, StowageFault, Tampering};
use stowage_world::history::Facts;
use stowage_world::scenes::names::{RIVAL, TEAM, check_untouched, left_behind, one_name, taken_back};
use stowage_world::scenes::{BUCKET, CLAIM, Goal, NAMESPACE, Scene, StoreStep, Target, TargetKind};

use super::super::others::any_may_rest;
use super::super::scenario::{Scenario, ScenarioPhase, ScenarioStep, WorldStep};
use super::words::{
    BASE, BOUND, PHOTOS, at_work, base_with, check_keys, claim_with, give_claim, nothing_more, pass, patch, played,
    usual,
};

const ONE_NAME: Scene<WorldStep> = one_name();

/// A name is taken, and later released.
pub(in super::super) static CONFLICT: Scenario = Scenario {
    name: "conflict",
    about: "another claim holds the name, until it goes",
    phase: ScenarioPhase::Create,
    world: usual,
    script: || played(&ONE_NAME),
    goal: ONE_NAME.goal,
    otherwise: |facts, faults| {
        let other = facts.claim(RIVAL.namespace, RIVAL.name);
        let kept = |fault: &Fault| match fault {
            // The other claim was deleted without its bucket, whose tags still name it, or aren't
            // shown.
            Fault::Project(
                StowageFault::Tamper(Tampering::DeleteRecord | Tampering::StripFinalizers)
                | StowageFault::Edit(Edit::Retain),
            )
            | Fault::S3(S3Fault::StaleRead) => other.is_null() && facts.ready(NAMESPACE, CLAIM) == "BucketExists",
            // The other claim can't be deleted.
            Fault::S3(S3Fault::LateWrite) => facts.ready(RIVAL.namespace, RIVAL.name) == "BucketNotEmpty",
            Fault::Project(StowageFault::Recreate) => {
                let stays = !other.is_null() && other["metadata"]["deletionTimestamp"].is_null();
                stays || facts.ready(NAMESPACE, CLAIM) == "BucketExists"
            }
            Fault::Project(StowageFault::Edit(Edit::Pause)) => facts.ready(RIVAL.namespace, RIVAL.name) == "Paused",
            _ => false,
        };
        // Or the other claim is the one that met the fault, before this one was created.
        faults.iter().any(kept) || (facts.claim(NAMESPACE, CLAIM).is_null() && any_may_rest(facts, faults))
    },
    ends_alike: true,
    check: ONE_NAME.check,
};

/// Two claims request one name in the same second.
pub(in super::super) static RACE: Scenario = Scenario {
    name: "race",
    about: "two claims want one name at once",
    phase: ScenarioPhase::Create,
    world: usual,
    script: || {
        let both =
            format!("{}\n---\n{}", claim_with(NAMESPACE, CLAIM, ""), claim_with(RIVAL.namespace, RIVAL.name, ""));
        [at_work(&format!("{BASE}\n---\n{TEAM}")), vec![ScenarioStep::Begin, ScenarioStep::Apply(both)]].concat()
    },
    goal: Goal::new("one claim is bound and the other is told so", |facts| {
        let mut reasons = [facts.ready(NAMESPACE, CLAIM), facts.ready(RIVAL.namespace, RIVAL.name)];
        reasons.sort_unstable();
        reasons == ["Bound", "BucketNameConflict"]
    }),
    otherwise: |facts, faults| {
        // The one of the two that is paused, or loses its Secret, waits.
        match facts.ready(RIVAL.namespace, RIVAL.name) {
            "Paused" => faults.contains(&Fault::Project(StowageFault::Edit(Edit::Pause))),
            "SecretConflict" => faults.contains(&Fault::Project(StowageFault::Tamper(Tampering::DisownConsumer))),
            _ => false,
        }
    },
    ends_alike: false,
    check: nothing_more,
};

/// Another claim of the namespace.
const FIRST: Target = Target { kind: TargetKind::Claim, namespace: NAMESPACE, name: "first" };

/// Two claims name the same consumer Secret.
pub(in super::super) static SHARED_SECRET: Scenario = Scenario {
    name: "shared-secret",
    about: "two claims name one consumer Secret: the second waits, until the first is given another name",
    phase: ScenarioPhase::Create,
    world: usual,
    script: || {
        let named = |name: &str| format!("writeConnectionSecretToRef: {{name: {name}}}");
        let holds = Goal::new("the first claim is bound", |facts| facts.is_bound(NAMESPACE, FIRST.name));
        let rename = json!({"spec": {"writeConnectionSecretToRef": {"name": "another"}}});
        let first = vec![
            ScenarioStep::Apply(claim_with(NAMESPACE, FIRST.name, &named("shared"))),
            ScenarioStep::Until(holds),
            pass(30),
        ];
        let both =
            vec![ScenarioStep::Begin, give_claim(&named("shared")), pass(60), ScenarioStep::Patch(FIRST, rename)];
        [at_work(BASE), first, both].concat()
    },
    goal: Goal::new("both claims are bound", |facts| {
        facts.is_bound(NAMESPACE, CLAIM) && facts.is_bound(NAMESPACE, FIRST.name)
    }),
    otherwise: |facts, faults| any_may_rest(facts, faults) || both_were_renamed(facts, faults),
    ends_alike: true,
    check: |facts, _| if facts.is_bound(NAMESPACE, CLAIM) { check_keys(facts) } else { Ok(()) },
};

/// Returns true if both claims were renamed, which may give them the same Secret name.
fn both_were_renamed(facts: &Facts, faults: &[Fault]) -> bool {
    let renamed = faults.iter().filter(|fault| **fault == Fault::Project(StowageFault::Edit(Edit::Rename))).count();
    renamed > 1 && [CLAIM, FIRST.name].iter().any(|name| facts.ready(NAMESPACE, name) == "SecretConflict")
}

/// Returns the steps that create and delete a claim to an existing bucket that must not be adopted.
fn refused_and_deleted(content: Option<ScenarioStep>, spec: &str) -> Vec<ScenarioStep> {
    let theirs = ScenarioStep::Store(StoreStep::PutBucket { account: ADMIN_ACCOUNT, bucket: BUCKET });
    let given = [ScenarioStep::Begin, give_claim(spec), pass(30), ScenarioStep::Delete(PHOTOS)];
    let never = at_work(&base_with("adoptionPolicy: Never"));
    never.into_iter().chain([theirs]).chain(content).chain(given).collect()
}

/// An existing bucket with data is not taken.
pub(in super::super) static ADOPT_NEVER: Scenario = Scenario {
    name: "adopt-never",
    about: "a bucket with data is there, and adoptionPolicy is Never",
    phase: ScenarioPhase::Adopt,
    world: usual,
    script: || {
        let data = ScenarioStep::Store(StoreStep::PutObject { bucket: BUCKET, key: "data" });
        refused_and_deleted(Some(data), "deletionPolicy: Delete, forceDelete: true")
    },
    goal: Goal::new("the claim is gone", |facts| facts.claim(NAMESPACE, CLAIM).is_null()),
    otherwise: |facts, faults| faults.contains(&Fault::Project(StowageFault::Recreate)) && is_no_ones_to_delete(facts),
    ends_alike: true,
    check: check_untouched,
};

/// An existing bucket that is empty is not taken either.
pub(in super::super) static ADOPT_NEVER_EMPTY: Scenario = Scenario {
    name: "adopt-never-empty",
    about: "an empty bucket is there, and adoptionPolicy is Never",
    phase: ScenarioPhase::Adopt,
    world: usual,
    script: || refused_and_deleted(None, "deletionPolicy: Delete"),
    goal: Goal::new("the claim is gone", |facts| facts.claim(NAMESPACE, CLAIM).is_null()),
    otherwise: |facts, faults| faults.contains(&Fault::Project(StowageFault::Recreate)) && is_no_ones_to_delete(facts),
    ends_alike: true,
    check: |facts, faults| {
        let others =
            |fault: &Fault| matches!(fault, Fault::S3(S3Fault::Vanish) | Fault::Project(StowageFault::Usurp { .. }));
        if faults.iter().any(others) || facts.bucket(BUCKET).is_some() {
            Ok(())
        } else {
            Err("the bucket that was there before is gone".to_owned())
        }
    },
};

const TAKEN_BACK: Scene<WorldStep> = taken_back();

/// A retained bucket returns to a new claim of the same name.
pub(in super::super) static ADOPT_OWNED: Scenario = Scenario {
    name: "adopt-owned",
    about: "a claim is made again, and gets its retained bucket back by adoptionPolicy Owned",
    phase: ScenarioPhase::Adopt,
    world: usual,
    script: || played(&TAKEN_BACK),
    goal: TAKEN_BACK.goal,
    otherwise: |facts, faults| faults.contains(&Fault::Project(StowageFault::Recreate)) && is_no_ones_to_delete(facts),
    ends_alike: true,
    check: TAKEN_BACK.check,
};

/// The namespace whose UID distinguishes the buckets of one cluster from those of another.
const KUBE_SYSTEM: Target = Target { kind: TargetKind::Namespace, namespace: "", name: "kube-system" };

/// A bucket left by a claim of the same name in another cluster is not the claim's.
pub(in super::super) static ADOPT_ELSEWHERE: Scenario = Scenario {
    name: "adopt-elsewhere",
    about: "a claim finds the bucket that the claim of its name in another cluster left, and adoptionPolicy is Owned",
    phase: ScenarioPhase::Adopt,
    world: usual,
    script: || {
        // An administrator hands the backend over to the operator of this cluster.
        let given = ScenarioStep::Apply(BASE.to_owned());
        let moved = vec![WorldStep::StopOperator.into(), pass(5), WorldStep::Restore(KUBE_SYSTEM).into(), given];
        let in_another = vec![ScenarioStep::Begin, WorldStep::StartOperator.into(), pass(5), give_claim("")];
        [at_work(BASE), left_behind(), moved, in_another].concat()
    },
    goal: Goal::new("the claim is refused the bucket", |facts| facts.ready(NAMESPACE, CLAIM) == "BucketExists"),
    otherwise: |facts, faults| {
        // The other cluster's bucket is gone. Or the operator read the former UID and took itself
        // for the former cluster's, which doesn't serve the backend any more.
        let not_refused = |fault: &Fault| {
            matches!(fault, Fault::S3(S3Fault::Vanish) | Fault::Kube(KubeFault::Stale { .. } | KubeFault::Rewind))
        };
        let is_left_alone = facts.ready(NAMESPACE, CLAIM).is_empty();
        faults.iter().any(not_refused) && (is_left_alone || facts.is_bound(NAMESPACE, CLAIM))
    },
    ends_alike: true,
    check: check_untouched,
};

/// A bucket of another account is not taken, though that account allows us everything.
pub(in super::super) static ADOPT_LURED: Scenario = Scenario {
    name: "adopt-lured",
    about: "another account makes a bucket of the claim's name and lets us in, and adoptionPolicy is Any",
    phase: ScenarioPhase::Adopt,
    world: usual,
    script: || {
        let lure = [
            StoreStep::PutBucket { account: "stranger", bucket: BUCKET },
            StoreStep::PutObject { bucket: BUCKET, key: "bait" },
            StoreStep::LetIn { bucket: BUCKET, account: ADMIN_ACCOUNT },
        ];
        let any = at_work(&base_with("adoptionPolicy: Any"));
        let given = [ScenarioStep::Begin, give_claim("")];
        any.into_iter().chain(lure.map(ScenarioStep::Store)).chain(given).collect()
    },
    goal: Goal::new("the claim is refused the bucket", |facts| facts.ready(NAMESPACE, CLAIM) == "BucketExists"),
    otherwise: |facts, faults| {
        // The other account's bucket is gone.
        let gone =
            |fault: &Fault| matches!(fault, Fault::S3(S3Fault::Vanish) | Fault::Project(StowageFault::Usurp { .. }));
        faults.iter().any(gone) && facts.is_bound(NAMESPACE, CLAIM)
    },
    ends_alike: true,
    check: check_untouched,
};

/// Returns true if the claim was recreated, so that it is not being deleted.
fn is_no_ones_to_delete(facts: &Facts) -> bool {
    let claim = facts.claim(NAMESPACE, CLAIM);
    !claim.is_null() && claim["metadata"]["deletionTimestamp"].is_null()
}

/// Four unrelated claims, whose users act in any order.
pub(in super::super) static ANY_ORDER: Scenario = Scenario {
    name: "any-order",
    about: "users of several claims act in any order, with the same end",
    phase: ScenarioPhase::Edit,
    world: usual,
    script: || {
        let other = |name| Target { kind: TargetKind::Claim, namespace: "team-b", name };
        let quota = json!({"spec": {"quota": {"soft": "1Gi", "hard": "2Gi"}}});
        let public = json!({"spec": {"anonymousAccess": {"mode": "ReadOnly"}}});
        let given =
            ["music", "films"].map(|name| ScenarioStep::Apply(claim_with("team-b", name, "deletionPolicy: Delete")));
        [
            at_work(BASE),
            given.to_vec(),
            vec![
                give_claim(""),
                ScenarioStep::Until(BOUND),
                pass(60),
                ScenarioStep::Begin,
                WorldStep::AnyOrder(vec![
                    patch(quota),
                    patch(public.clone()),
                    patch(json!({"spec": {"writeConnectionSecretToRef": {"name": "photos-new"}}})),
                    ScenarioStep::Patch(other("music"), public),
                    ScenarioStep::Delete(other("films")),
                    ScenarioStep::Apply(claim_with("team-b", "books", "")),
                ])
                .into(),
            ],
        ]
        .concat()
    },
    goal: Goal::new("three claims are bound, public access is given and the fourth claim gone", |facts| {
        let bound = |namespace, name| facts.is_bound(namespace, name);
        let public = facts.secrets(Role::AnonymousBinding).count() == 2;
        let photos = facts.claim(NAMESPACE, CLAIM);
        let renamed = photos["status"]["boundSecretName"] == photos["spec"]["writeConnectionSecretToRef"]["name"];
        let gone = facts.claim("team-b", "films").is_null();
        bound(NAMESPACE, CLAIM) && bound("team-b", "music") && bound("team-b", "books") && public && renamed && gone
    }),
    otherwise: |facts, faults| {
        // No step deletes the claim that was recreated.
        let again = faults.contains(&Fault::Project(StowageFault::Recreate)) && facts.is_bound("team-b", "films");
        again || any_may_rest(facts, faults)
    },
    ends_alike: true,
    check: nothing_more,
};
