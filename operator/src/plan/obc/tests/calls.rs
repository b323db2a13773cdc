//! Requests of a pass, and the handling of outdated cached data.

use super::*;
use crate::plan::obc::step::ObcStep;

/// Returns the steps of a pass, as text.
fn steps(cluster: &mut Cluster, mut view: ObcView) -> Vec<String> {
    let mut steps = Vec::new();
    while let ControlFlow::Continue(step) = view.next(Timestamp::UNIX_EPOCH) {
        steps.push(step.to_string());
        let answer = match &step {
            ObcStep::Look(look) => cluster.look(look),
            ObcStep::Act(act) => cluster.act(act),
        };
        view.learn(answer, Arrival::Prompt);
    }
    steps
}

fn view(cluster: &Cluster) -> ObcView {
    ObcView::new(setting(), cluster.obc(), cluster.cached())
}

// covers: 9.calls
#[test]
fn for_a_claim_that_is_new_nothing_is_looked_for_and_what_the_watches_show_is_not_read_again() {
    let mut cluster = Cluster::asked();
    let fresh = view(&cluster);
    let first = [
        "read storage class buckets",
        "put the finalizer on",
        "make ObjectBucket obc-team-a-photos",
        "make BucketClaim obc-photos",
        "patch ObjectBucket obc-team-a-photos: note its BucketClaim",
        "write phase Pending",
    ];
    assert_eq!(steps(&mut cluster, fresh), first);
    cluster.works();
    let made = view(&cluster);
    let then = [
        "write the names of bucket and ObjectBucket",
        "make the ConfigMap",
        "write phase Bound of ObjectBucket obc-team-a-photos",
        "write phase Bound",
    ];
    assert_eq!(steps(&mut cluster, made), then);
    let bound = view(&cluster);
    assert_eq!(steps(&mut cluster, bound), [""; 0]);
}

/// Somebody removed finalizer and label by hand, so the claim looks as if nothing had been created
/// for it.
// covers: 9.crash
#[rstest]
fn what_is_there_after_all_is_met_and_used(#[values(false, true)] is_shown: bool) {
    let mut cluster = Cluster::bound();
    cluster.obc["metadata"]["finalizers"] = json!([]);
    cluster.obc["metadata"]["labels"] = json!({});
    let whole = cluster.clone();
    let cached =
        if is_shown { cluster.cached() } else { ObcCached { class: cluster.cached().class, ..ObcCached::default() } };
    let unmarked = ObcView::new(setting(), cluster.obc(), cached);
    // The answer to a POST of an existing ObjectBucket. This cluster does not detect that itself.
    let taken = |act: &ObcAct| matches!(act, ObcAct::CreateBucket(_)).then_some(ObcAnswer::BucketPosted(None));
    let mut view = unmarked;
    while let ControlFlow::Continue(step) = view.next(Timestamp::UNIX_EPOCH) {
        let answer = match &step {
            ObcStep::Look(look) => cluster.look(look),
            ObcStep::Act(act) => taken(act).unwrap_or_else(|| cluster.act(act)),
        };
        view.learn(answer, Arrival::Prompt);
    }
    assert_eq!(
        (&cluster.buckets, &cluster.shadow, &cluster.config_map),
        (&whole.buckets, &whole.shadow, &whole.config_map)
    );
    assert_eq!(cluster.obc["metadata"]["finalizers"], json!(["objectbucket.io/finalizer"]));
}

/// A conflicting update that was based on a cache is followed by a read and planned once more.
/// After a second conflict it is retried later.
// covers: 9.calls
#[rstest]
#[case("write the names of bucket and ObjectBucket", "read the ObjectBucketClaim")]
#[case("write phase Bound of ObjectBucket obc-team-a-photos", "read its ObjectBucket")]
fn a_change_by_an_old_cache_is_made_by_a_live_read(#[case] late: &str, #[case] read: &str) {
    let mut cluster = Cluster::asked();
    cluster.pass(99);
    cluster.works();
    let mut view = view(&cluster);
    let (mut steps, mut refused) = (Vec::new(), 0);
    let rest = loop {
        let step = match view.next(Timestamp::UNIX_EPOCH) {
            ControlFlow::Break(rest) => break rest,
            ControlFlow::Continue(step) => step,
        };
        steps.push(step.to_string());
        let answer = match &step {
            ObcStep::Look(look) => cluster.look(look),
            ObcStep::Act(_) if step.to_string() == late => {
                refused += 1;
                ObcAnswer::Failed(step.clone(), Failure::Conflict)
            }
            ObcStep::Act(act) => cluster.act(act),
        };
        view.learn(answer, Arrival::Prompt);
    };
    assert!(matches!(rest.then, Then::Retry(_)), "{rest:?}");
    assert_eq!((refused, &steps[steps.len() - 3..]), (2, &[late.to_owned(), read.to_owned(), late.to_owned()][..]));
}

// covers: 9.configMap.foreign
#[rstest]
fn a_config_map_of_another_is_met_once_and_then_looked_at(#[values(false, true)] is_known: bool) {
    let mut cluster = Cluster::asked();
    cluster.pass(99);
    cluster.works();
    cluster.config_map = json!({"metadata": {"name": "photos", "uid": "cm-0", "resourceVersion": "1"}});
    // The watch shows only ConfigMaps of this provisioner.
    let mut cached = ObcCached { config_map: None, ..cluster.cached() };
    cached.told = is_known.then(|| "NameTaken: ConfigMap photos is there, and is not this claim's".to_owned());
    let view = ObcView::new(setting(), cluster.obc(), cached);
    let steps = steps(&mut cluster, view);
    let made = steps.iter().filter(|step| *step == "make the ConfigMap").count();
    let read = steps.iter().filter(|step| *step == "read its ConfigMap").count();
    assert_eq!((made, read), (usize::from(!is_known), 1), "{steps:?}");
    assert_eq!(cluster.config_map["metadata"]["uid"], "cm-0");
}
