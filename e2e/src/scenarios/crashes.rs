//! The operator is killed at each of its effects and started again, and always reaches the same
//! result.
//!
//! A first run without faults shows the effects. Each is identified by its kind and its number
//! among those of that kind, because the order of concurrent effects differs between runs. Then
//! each crash is played with a separate claim.

use std::num::NonZeroU64;
use std::pin::{Pin, pin};

use anyhow::{Context as _, Result, bail, ensure};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use stowage_operator::api::BucketClaim;
use stowage_operator::api::wire::{self, Role};
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::Setup;
use stowage_testbed::fault_proxy::Calls;
use stowage_testbed::objects::text;
use stowage_world::effects::{
    Call, CallOutcome, CallPattern, CrashPoint, EffectPattern, Fault, Line, Plan, ProcessFault,
};

use super::rotation::{expiry, limit};
use super::whole::{given, whole};

/// Maximum number of effects of a run at which the operator is killed.
const MOST: usize = 40;
/// Store call deadline, in seconds. A bucket's record is kept that long after a life ended without
/// the answer to a call.
const DEADLINE: [&str; 2] = ["--upstream-timeout", "2"];
/// Number of claims, per crash point, that wait until their keys are old enough for a rotation:
/// more than a rotation has effects.
const WAITING: usize = 12;
/// Overlap of keys in a rotation, in seconds.
const OVERLAP: i64 = 300;
/// The write of a backend's status, which follows whenever claims have been counted.
const ASIDE: &str = "kube:patch s3backends/status";
/// The last write for a claim that is bound or has a new key.
const STATUS: &str = "kube:patch bucketclaims/status";
/// The last write for a claim that is deleted: its finalizer. The one event that follows is about
/// its bucket.
const CLAIM: &str = "kube:patch bucketclaims";
/// The event that follows either.
const EVENT: &str = "kube:create events";
/// Value of the annotation that requests a rotation.
const REQUEST: &str = "now";

/// Result of a run.
enum Played {
    /// The operator crashed by plan.
    Died,
    /// It did not crash; these were its calls.
    Through(Vec<Line>),
}

/// Crashes between the operator's start and the point at which a new claim is bound.
pub(super) async fn create(environment: &Environment) -> Result<String> {
    let setup = environment.setup("crash-create").await?;
    // The first operator meets a backend that was never probed; later ones find its status.
    is_bound(&setup, "first", &Plan::default()).await?;
    at_each_effect(&setup, async |name, plan| is_bound(&setup, &name, &plan).await).await
}

async fn is_bound(setup: &Setup<'_>, name: &str, plan: &Plan) -> Result<Played> {
    let fault_proxy = setup.fault_proxy()?;
    let first = fault_proxy.calls().await?.count();
    fault_proxy.plan(plan.clone(), "create").await?;
    let mut crash = pin!(fault_proxy.next_crash());
    let mut operator = setup.start_operator(&DEADLINE).await?;
    let played = setup.under(&mut operator, async {
        let started = dies_or(setup, crash.as_mut(), quiet(setup, first, |_| true)).await?;
        setup.claim(name, json!({})).await?;
        let played = match started {
            Played::Died => Played::Died,
            Played::Through(_) => dies_or(setup, crash, bound_and_told(setup, first)).await?,
        };
        let claim = setup.ready(name).await?;
        whole(setup, &claim).await?;
        setup.delete(&claim).await?;
        setup.nothing_left(&claim).await?;
        Ok(played)
    });
    let played = played.await?;
    operator.kill().await?;
    Ok(played)
}

/// Crashes between the request to delete a claim and the point at which claim and bucket are gone.
pub(super) async fn delete(environment: &Environment) -> Result<String> {
    let setup = environment.setup("crash-delete").await?;
    let mut operator = setup.start_operator(&DEADLINE).await?;
    let told = setup.under(&mut operator, async {
        at_each_effect(&setup, async |name, plan| is_gone(&setup, &name, plan).await).await
    });
    let told = told.await?;
    operator.kill().await?;
    Ok(told)
}

async fn is_gone(setup: &Setup<'_>, name: &str, plan: Plan) -> Result<Played> {
    let (fault_proxy, store) = (setup.fault_proxy()?, &setup.environment.store);
    let made = fault_proxy.calls().await?.count();
    setup.claim(name, json!({"deletionPolicy": "Delete", "forceDelete": true})).await?;
    let claim = setup.ready(name).await?;
    let bucket = whole(setup, &claim).await?.bucket;
    store.keep_versions(&bucket).await?;
    for number in [1, 2, 2] {
        store.put(&bucket, number).await?;
    }
    store.begin_upload(&bucket).await?;
    bound_and_told(setup, made).await?;
    let first = fault_proxy.calls().await?.count();
    fault_proxy.plan(plan, "delete-forced").await?;
    let crash = pin!(fault_proxy.next_crash());
    setup.ask_to_delete(name).await?;
    let end = async {
        setup.gone(&claim).await?;
        quiet(setup, first, |calls| is_told_after(calls, CLAIM)).await
    };
    let played = dies_or(setup, crash, end).await?;
    setup.gone(&claim).await?;
    setup.nothing_left(&claim).await?;
    let left = store.tags(&bucket).await?;
    ensure!(left.is_none(), "bucket {bucket} is still there");
    let consumer = setup.secrets(&setup.tenant).get_opt(&format!("{name}-s3")).await.context("no answer")?;
    ensure!(consumer.is_none(), "the consumer Secret of claim {name} is still there");
    Ok(played)
}

/// Crashes between the request for a rotation and the point at which the old key has its expiry.
pub(super) async fn rotate(environment: &Environment) -> Result<String> {
    let setup = environment.setup("crash-rotate").await?;
    let mut operator = setup.start_operator(&DEADLINE).await?;
    let told = setup.under(&mut operator, async {
        // Claim 0 is created last: once its key is old enough for a rotation, all are.
        let waiting = if environment.thorough { WAITING * CrashPoint::ALL.len() } else { WAITING };
        for index in (0..=waiting).rev() {
            let policy = json!({"rotationPolicy": {"overlapSeconds": OVERLAP}});
            setup.claim(&name(index), policy).await?;
            setup.ready(&name(index)).await?;
        }
        at_each_effect(&setup, async |name, plan| is_rotated(&setup, &name, plan).await).await
    });
    let told = told.await?;
    operator.kill().await?;
    Ok(told)
}

async fn is_rotated(setup: &Setup<'_>, name: &str, plan: Plan) -> Result<Played> {
    let fault_proxy = setup.fault_proxy()?;
    let old = given(setup, &setup.ready(name).await?).await?.key_id;
    quiet(setup, 0, |_| true).await?;
    let first = fault_proxy.calls().await?.count();
    fault_proxy.plan(plan, "rotate").await?;
    let crash = pin!(fault_proxy.next_crash());
    let asked = Timestamp::now();
    setup.patch(name, json!({"metadata": {"annotations": {wire::ROTATE: REQUEST}}})).await?;
    let end = async {
        switched_and_stamped(setup, name, &old).await?;
        let calls = quiet(setup, first, |calls| is_told_after(calls, STATUS)).await?;
        // Leaves out store calls: a drift check may look at the bucket at any time.
        Ok(calls.into_iter().filter(|line| matches!(line.call, Call::Kube(_))).collect())
    };
    let played = dies_or(setup, crash, end).await?;
    let claim = switched_and_stamped(setup, name, &old).await?;

    let keys = setup.internal(&claim, Role::VirtualCredential).await?;
    let (leaving, current): (Vec<_>, Vec<_>) = keys.iter().partition(|key| expiry(key).is_some());
    let ([leaving], [current]) = (&leaving[..], &current[..]) else {
        bail!("of the keys of claim {name} {} expire, and {} don't", leaving.len(), current.len());
    };
    ensure!(text(leaving, "access_key_id") == old, "another key than {old} of claim {name} expires");
    let earliest = asked + SignedDuration::from_secs(OVERLAP);
    ensure!(expiry(leaving).is_some_and(|end| end >= earliest), "key {old} expires before {earliest}");
    let shown = given(setup, &claim).await?.key_id;
    ensure!(text(current, "access_key_id") == shown, "claim {name} shows key {shown}, which is not current");
    Ok(played)
}

/// Waits until the request is handled and the old key has its expiry.
async fn switched_and_stamped(setup: &Setup<'_>, name: &str, old: &str) -> Result<BucketClaim> {
    let handled = |claim: Option<&BucketClaim>| {
        let status = claim.and_then(|claim| claim.status.as_ref());
        status.is_some_and(|status| status.handled_rotate_request.as_deref() == Some(REQUEST))
    };
    let claim = setup.environment.wait_for_up_to(limit(setup), &setup.claims(), name, "rotated", handled).await?;
    let stamped = |key: Option<&_>| key.is_some_and(|key| expiry(key).is_some());
    let secret = format!("vc-{}", old.to_lowercase());
    setup.environment.wait(&setup.secrets(&setup.system), &secret, "stamped", stamped).await?;
    claim.with_context(|| format!("claim {name} is gone"))
}

fn name(index: usize) -> String {
    format!("claim-{index:03}")
}

/// Plays without a crash, and then with a crash at each effect of that run. Each run has a separate
/// claim.
async fn at_each_effect(setup: &Setup<'_>, play: impl AsyncFn(String, Plan) -> Result<Played>) -> Result<String> {
    let fault_proxy = setup.fault_proxy()?;
    let Played::Through(calls) = play(name(0), Plan::default()).await? else {
        bail!("the operator died without a plan");
    };
    let effects = effects(&calls);
    ensure!(!effects.is_empty(), "the operator did nothing");
    let crashes = crashes(&effects, setup.environment.thorough);
    let before = fault_proxy.crashes();
    for (index, crash) in crashes.iter().enumerate() {
        let played = play(name(index + 1), crash.clone()).await.with_context(|| crash.to_string())?;
        ensure!(matches!(played, Played::Died), "{crash}: no call met it");
    }
    let died = fault_proxy.crashes() - before;
    ensure!(died == crashes.len(), "{died} crashes instead of {}", crashes.len());
    Ok(format!("{} effects, {died} of {} crash points played", effects.len(), effects.len() * CrashPoint::ALL.len()))
}

/// Returns the effects of a run, each with its number among those of its kind. Leaves out the
/// backend's status: its counts are written seconds later, during another run.
fn effects(calls: &[Line]) -> Vec<EffectPattern> {
    let kinds = calls.iter().map(|line| CallPattern::of(&line.call));
    let kinds: Vec<CallPattern> = kinds.filter(|call| call.to_string() != ASIDE).take(MOST).collect();
    let effect = |(index, call): (usize, &CallPattern)| {
        let before = kinds[..index].iter().filter(|other| *other == call).count();
        let occurrence = NonZeroU64::MIN.saturating_add(before as u64);
        EffectPattern::Call { call: call.clone(), occurrence: Some(occurrence) }
    };
    kinds.iter().enumerate().map(effect).collect()
}

/// Returns crashes at each effect: at every point if `thorough`, otherwise at one point in
/// rotation.
fn crashes(effects: &[EffectPattern], thorough: bool) -> Vec<Plan> {
    let points = CrashPoint::ALL;
    let at = |(index, effect): (usize, &EffectPattern)| {
        let chosen = if thorough { points.to_vec() } else { vec![points[index % points.len()]] };
        chosen
            .into_iter()
            .map(|point| Plan::single(effect.clone(), Fault::Process(ProcessFault::Crash(point))))
            .collect::<Vec<_>>()
    };
    effects.iter().enumerate().flat_map(at).collect()
}

/// Waits until the operator has crashed by plan and was started again, or until `end` completes
/// without a crash.
async fn dies_or(
    setup: &Setup<'_>,
    mut crash: Pin<&mut impl Future<Output = ()>>,
    end: impl Future<Output = Result<Vec<Line>>>,
) -> Result<Played> {
    let calls = tokio::select! {
        () = crash.as_mut() => return Ok(Played::Died),
        calls = end => calls?,
    };
    if !setup.fault_proxy()?.has_met_one().await? {
        return Ok(Played::Through(calls));
    }
    // All work was done before the crash was noticed, because the crash is at the last effect.
    crash.await;
    Ok(Played::Died)
}

/// Waits until the event about a bound claim; returns the calls since `first`.
async fn bound_and_told(setup: &Setup<'_>, first: usize) -> Result<Vec<Line>> {
    quiet(setup, first, |calls| is_told_after(calls, STATUS)).await
}

/// True if an event was created after the last of these calls.
fn is_told_after(calls: &[Line], call: &str) -> bool {
    let is = |line: &Line, what: &str| CallPattern::of(&line.call).to_string() == what;
    let since = calls.iter().rposition(|line| is(line, call));
    since.is_some_and(|since| calls[since..].iter().any(|line| is(line, EVENT)))
}

/// Waits until `such` is true for the calls since `first`, the operator has completed its start,
/// and none of its calls is pending. Returns those calls.
async fn quiet(setup: &Setup<'_>, first: usize, such: impl Fn(&[Line]) -> bool) -> Result<Vec<Line>> {
    let fault_proxy = setup.fault_proxy()?;
    let rests = |all: &Calls| {
        let calls = all.since(first);
        such(calls) && all.has_begun() && calls.iter().all(|line| line.answer != CallOutcome::Pending)
    };
    let all = fault_proxy.until(setup.environment.patience, "come to rest", rests).await?;
    Ok(all.since(first).to_vec())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};
    use rstest::rstest;
    use stowage_world::effects::{KubeCall, S3Call};

    use super::*;

    fn kube(method: Method, path: &str) -> Call {
        Call::Kube(KubeCall::read(&method, &path.parse().unwrap()))
    }

    fn calls(calls: impl IntoIterator<Item = Call>) -> Vec<Line> {
        let line = |(index, call)| Line {
            number: index as u64 + 1,
            instance: 1,
            call,
            fault: None,
            world: Some(200),
            answer: CallOutcome::Status(200),
            began_ms: 0,
        };
        calls.into_iter().enumerate().map(line).collect()
    }

    fn from_claim_to_event() -> Vec<Line> {
        let backends = "/apis/broker.stowage.io/v1alpha1/s3backends/main/status";
        let bucket = S3Call::read(&Method::PUT, &"/photos".parse().unwrap(), &HeaderMap::new());
        calls([
            kube(Method::POST, "/api/v1/namespaces/system/secrets"),
            Call::S3(bucket),
            kube(Method::PATCH, backends),
            kube(Method::POST, "/api/v1/namespaces/team/secrets"),
            kube(Method::PATCH, "/apis/broker.stowage.io/v1alpha1/namespaces/team/bucketclaims/photos/status"),
            kube(Method::POST, "/apis/events.k8s.io/v1/namespaces/team/events"),
        ])
    }

    #[test]
    fn effects_are_named_by_what_they_are_and_which_of_their_kind() {
        let named: Vec<String> = effects(&from_claim_to_event()).iter().map(ToString::to_string).collect();
        let expected = [
            "kube:create secrets@1",
            "s3:CreateBucket@1",
            "kube:create secrets@2",
            "kube:patch bucketclaims/status@1",
            "kube:create events@1",
        ];
        assert_eq!(named, expected);
    }

    #[test]
    fn no_more_effects_are_died_at_than_are_asked_for() {
        let many = calls((0..100).map(|_| kube(Method::POST, "/api/v1/namespaces/system/secrets")));
        let effects = effects(&many);
        assert_eq!(effects.len(), MOST);
        assert_eq!(effects[MOST - 1].to_string(), "kube:create secrets@40");
    }

    #[rstest]
    #[case(false, &["#1 crash(before)", "#2 crash(after-effect)", "#3 crash(after-answer)", "#4 crash(before)"])]
    #[case(true, &["#1 crash(before)", "#1 crash(after-effect)", "#1 crash(after-answer)", "#2 crash(before)"])]
    fn points_take_turns_or_are_played_all(#[case] thorough: bool, #[case] first: &[&str]) {
        let effects: Vec<EffectPattern> = (1..=5).filter_map(NonZeroU64::new).map(EffectPattern::Number).collect();
        let crashes: Vec<String> = crashes(&effects, thorough).iter().map(ToString::to_string).collect();
        assert_eq!(crashes.len(), if thorough { 15 } else { 5 });
        assert_eq!(crashes[..4], *first);
    }

    #[test]
    fn an_event_counts_when_it_comes_after_the_status() {
        let calls = from_claim_to_event();
        assert!(is_told_after(&calls, STATUS));
        assert!(!is_told_after(&calls[..5], STATUS));
        assert!(!is_told_after(&calls, CLAIM));
    }
}
