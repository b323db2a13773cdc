//! `plan` and `why` for an operator that serves some namespaces (spec §3.9, §5): nothing in other
//! namespaces is read, and nothing there counts as deleted.

use stowage_operator::api::{AccessRef, ClaimRef};
use stowage_operator::plan::Reach;
use stowage_operator::preview::{self, Next, Object, Scope, Setup};
use stowage_world::{Accesses, OPERATOR_NAMESPACE, Options, World};

use crate::ahead::{MINUTE, line_of, means, plan_of, setup};
use crate::support::{Stage, access_with, claim_with, condition, object};

/// Returns the same installation, serving only team-b.
fn of_one(world: &World) -> Setup {
    let installation = object(world, "namespaces", "", "kube-system")["metadata"]["uid"].as_str().map(str::to_owned);
    Setup { reach: Reach::Namespaces(["team-b".to_owned()].into()), installation, ..setup() }
}

fn access(name: &str) -> AccessRef {
    AccessRef { namespace: "team-b".to_owned(), name: name.to_owned() }
}

/// Applies two claims, and two accesses of team-b: one to the claim of team-a, and one to a claim
/// that doesn't exist.
async fn set(stage: &Stage) {
    let shared = "sharing: [{namespaces: {names: [team-b]}, maxMode: ReadOnly}]";
    for (namespace, name, spec) in [("team-a", "photos", shared), ("team-b", "films", "")] {
        stage.apply(&claim_with(namespace, name, spec)).await;
        stage.until_ready_is(namespace, name, "Bound").await;
    }
    for (name, claim) in [("reader", "photos"), ("nothing", "nobody")] {
        let entry = format!("{{claimRef: {{name: {claim}, namespace: team-a}}, mode: ReadOnly}}");
        stage.apply(&access_with("team-b", name, &format!("buckets: [{entry}]"))).await;
    }
    let reader = |world: &World| condition(&object(world, "bucketaccesses", "team-b", "reader"), "Ready");
    stage.until("the access is open", |world| reader(world) == "Open").await;
    stage.world.pass(5 * MINUTE).await;
}

fn run<T: Send>(test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
    Stage::run_with(Options { accesses: Accesses::Served, ..Options::default() }, test)
}

// covers: 3.9.rights, 3.9.orphans
#[test]
fn plan_asks_for_nothing_of_namespaces_that_are_not_served_and_takes_nothing_there_for_gone() {
    run(async |stage| {
        set(&stage).await;
        let (plan, asked) = plan_of(&stage.world, &of_one(&stage.world), &Scope::default()).await;
        let operator = format!("/namespaces/{OPERATOR_NAMESPACE}/");
        let may = |path: &String| ["/s3backends", "/namespaces/team-b", &operator].iter().any(|it| path.contains(it));
        assert!(asked.iter().all(may), "{asked:#?}");
        let films = ClaimRef { namespace: "team-b".to_owned(), name: "films".to_owned() };
        let mut objects: Vec<Object> = plan.lines.iter().map(|line| line.object.clone()).collect();
        objects.sort();
        let mut served = vec![
            Object::Backend("main".to_owned()),
            Object::Claim(films),
            Object::Access(access("nothing")),
            Object::Access(access("reader")),
        ];
        served.sort();
        assert_eq!(objects, served, "what team-a has is not left over");
        let reader = &line_of(&plan, &Object::Access(access("reader"))).next;
        assert!(matches!(reader, Next::Nothing(_)), "{reader}");

        let (means, _) = means(&stage.world);
        let other = Scope { namespace: Some("team-a".to_owned()), ..Scope::default() };
        let refused = preview::plan(&of_one(&stage.world), means, &other, |_, _| {}).await;
        assert!(refused.is_err_and(|why| why.contains("team-a is not among those that --watch-namespace names")));
    });
}

// covers: 3.9.access, 5.why.access
#[test]
fn why_tells_what_would_open_an_entry_whose_claim_is_not_served() {
    run(async |stage| {
        set(&stage).await;
        let (means, _) = means(&stage.world);
        let why = preview::why_access(&of_one(&stage.world), means, &access("nothing")).await.expect("it is there");
        let entry = &why.entries[0];
        assert_eq!(entry.status.reason.as_deref(), Some("NotWatched"), "{entry:?}");
        assert_eq!(entry.remedies, ["this operator serves namespace team-a too (--watch-namespace)"]);
    });
}
