//! Tests with the production operator in a world: it breaks no promise, with and without faults.
//! And the duration of the judgement.

use std::time::{Duration, Instant};

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use rstest::rstest;
use s3_sim::Versioning;
use serde_json::json;
use stowage_world::determinism::run_seeded;
use stowage_world::fixtures::{BASE, claim_with};
use stowage_world::history::{History, Used, What, facts};
use stowage_world::{Operator, Options, World};

use super::super::{Canonical, Case, Judgement, Setting, Shown, canonical, judge};

const BUCKET: &str = "team-a-photos";

/// The actions of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Create,
    Rotate,
    DeleteForced,
}

/// The result of a run.
struct Run {
    judgement: Judgement,
    end: Canonical,
    history: History,
    /// Minimum duration of the judgement.
    took: Duration,
}

fn claims(world: &World) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("broker.stowage.io", "v1alpha1", "BucketClaim");
    Api::namespaced_with(world.kube(), "team-a", &ApiResource::from_gvk_with_plural(&kind, "bucketclaims"))
}

fn run(seed: u64, act: Act, plan: &str) -> Run {
    let plan = plan.parse().expect("the plan is well-formed");
    run_seeded(seed, || async move {
        let mut world = World::new(Options { seed, plan, history: true, ..Options::default() });
        world.apply(&world.kube(), BASE).await;
        let operator = world.start_operator();
        let spec = "deletionPolicy: Delete, forceDelete: true, rotationPolicy: {overlapSeconds: 60}";
        world.apply(&world.kube(), &claim_with("team-a", "photos", spec)).await;
        world.until(|world| world.facts().is_bound("team-a", "photos")).await.expect("it is bound");
        world.pass(Duration::from_secs(120)).await;
        perform(&world, act).await;
        world.pass(Duration::from_secs(700)).await;
        world.run_cluster_controllers();
        world.note(What::AtRest);
        world.pass(Duration::from_secs(300)).await;
        judged(&world, &operator)
    })
}

async fn perform(world: &World, act: Act) {
    match act {
        Act::Create => {}
        Act::Rotate => {
            use_key(world).await;
            let patch = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "now"}}});
            claims(world).patch("photos", &PatchParams::default(), &Patch::Merge(&patch)).await.expect("it is patched");
            for _ in 0..10 {
                world.pass(Duration::from_secs(30)).await;
                use_key(world).await;
            }
        }
        Act::DeleteForced => {
            world.store.set_versioning(BUCKET, Versioning::Enabled);
            for key in ["one", "two", "two"] {
                world.store.put_object(BUCKET, key, "data");
            }
            world.store.start_upload(BUCKET, "three");
            claims(world).delete("photos", &DeleteParams::default()).await.expect("it is deleted");
            let gone = |world: &World| world.facts().claim("team-a", "photos").is_null();
            world.until(gone).await.expect("it goes");
        }
    }
}

/// Reads the consumer Secret as a tenant, and tries its key.
async fn use_key(world: &World) {
    let facts = world.facts();
    let secret = facts.object("secrets", "team-a", "photos-s3");
    let text = |name: &str| facts::field(secret, name).unwrap_or_default();
    let access_key_id = text("AWS_ACCESS_KEY_ID");
    let tenant = world.tenant(&access_key_id, &text("AWS_SECRET_ACCESS_KEY"), &text("AWS_REGION"));
    let allowed = tenant.list_objects_v2().bucket(BUCKET).send().await.is_ok();
    world.note(What::Used(Used {
        namespace: "team-a".to_owned(),
        secret: "photos-s3".to_owned(),
        access_key_id,
        bucket: BUCKET.to_owned(),
        read_at: facts.at,
        allowed,
    }));
}

fn judged(world: &World, operator: &Operator) -> Run {
    let (history, end) = (world.history(), world.facts());
    let setting =
        Setting { operators: 1, gateway_lag: Duration::from_secs(1), purge_slice: 10_000, ..Setting::default() };
    let shown = [Shown { place: "the metrics".to_owned(), text: operator.metrics() }];
    let case = Case { history: &history, end: &end, setting: &setting, shown: &shown };
    let timed = || {
        let start = Instant::now();
        let judgement = judge(&case);
        (start.elapsed(), judgement)
    };
    let (took, judgement) = (0..20).map(|_| timed()).min_by_key(|(took, _)| *took).expect("it was judged");
    Run { judgement, end: canonical(&end), history, took }
}

#[rstest]
#[case(Act::Create)]
#[case(Act::Rotate)]
#[case(Act::DeleteForced)]
fn the_operator_breaks_no_promise(
    #[case] act: Act,
    #[values(
        "",
        "kube:create secrets@2 lost-answer",
        "kube:patch secrets@2 conflict",
        "kube:create secrets@1 crash(after-effect)",
        "s3:CreateBucket@1 lost-answer",
        "s3:PutBucketTagging@1 crash(after-effect)",
        "s3:GetBucketTagging@2 slow(2000)",
        "kube:patch bucketclaims@1 server-error(applied)",
        "s3:DeleteObjects@1 lost-answer",
        "kube:delete secrets@1 crash(after-answer)"
    )]
    plan: &str,
) {
    let run = run(1, act, plan);
    assert_eq!(run.judgement, Judgement::default(), "{}", run.history.trace);
}

#[rstest]
#[case(Act::Create)]
#[case(Act::Rotate)]
#[case(Act::DeleteForced)]
fn the_end_is_that_of_another_seed_and_of_a_run_with_a_crash(#[case] act: Act) {
    let end = run(1, act, "").end;
    assert_eq!(end.difference(&run(2, act, "").end), None);
    assert_eq!(end.difference(&run(1, act, "kube:create secrets@2 crash(after-effect)").end), None);
    assert_eq!(end.difference(&run(1, act, "kube:create secrets@2 lost-answer").end), None);
}

/// The cost of judging a run must not grow out of proportion to its length.
#[test]
fn a_thousand_events_are_judged_without_effort() {
    let run = run(1, Act::Rotate, "");
    assert!(run.took < Duration::from_millis(50), "{:?} for {} events", run.took, run.history.events.len());
}
