//! The operator is killed at each of its effects, is started again, and all comes to the same end.
//!
//! A first play, in which nothing goes wrong, shows the effects. Each is named by what it is and
//! which of its kind, as the order of those that happen at the same time differs from play to play.
//! Then there is a play with a claim of its own for each crash.

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

/// How many effects of a play the operator dies at, if there are so many.
const MOST: usize = 40;
/// A call that the last life never heard of again holds its bucket's record for this long, in
/// seconds.
const DEADLINE: [&str; 2] = ["--upstream-timeout", "2"];
/// Claims that wait for their keys to be old enough to be replaced, for each point: more than a
/// rotation has effects.
const WAITING: usize = 12;
/// How long a key that was replaced goes on, in seconds.
const OVERLAP: i64 = 300;
/// What is written whenever claims were counted.
const ASIDE: &str = "kube:patch s3backends/status";
/// The last write of a claim that comes: that it is bound, or has another key.
const STATUS: &str = "kube:patch bucketclaims/status";
/// The last write of a claim that goes: its finalizer. One event tells of it, of its bucket.
const CLAIM: &str = "kube:patch bucketclaims";
/// What tells of either.
const EVENT: &str = "kube:create events";
/// The value of the annotation that asks for a rotation.
const REQUEST: &str = "now";

/// What came of a play.
enum Played {
    /// The operator has died as planned.
    Died,
    /// It has not: these were its calls.
    Through(Vec<Line>),
}

/// From the operator's start until a claim is bound that is made then.
pub(super) async fn create(environment: &Environment) -> Result<String> {
    let setup = environment.setup("crash-create").await?;
    // The first operator finds a backend that nobody has looked at; all others find what it left.
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

/// From the request to delete a claim until it is gone with its bucket.
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

/// From the request for a rotation until the old key is stamped.
pub(super) async fn rotate(environment: &Environment) -> Result<String> {
    let setup = environment.setup("crash-rotate").await?;
    let mut operator = setup.start_operator(&DEADLINE).await?;
    let told = setup.under(&mut operator, async {
        // When the key of the claim that was made last is old enough, all are.
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
        // Every now and then the operator looks at each bucket, which has nothing to do with keys.
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

/// Waits until the request is handled and the old key on its way out.
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

/// Plays without a crash, and then with one at each effect that there was. Each play has a claim of
/// its own.
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

/// What the calls of a play are, each with its number among those of its kind. Without the
/// backend's status: in it claims are counted seconds later, when another play is on.
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

/// A crash at each effect: at every point of it, or at one that takes turns.
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

/// Waits until the operator has died as planned and was started again, or all is done without that.
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
    // All was done by the effect at whose end it dies.
    crash.await;
    Ok(Played::Died)
}

/// Waits until a bound claim was told of; gives the calls since this one.
async fn bound_and_told(setup: &Setup<'_>, first: usize) -> Result<Vec<Line>> {
    quiet(setup, first, |calls| is_told_after(calls, STATUS)).await
}

/// Whether an event was told after the last of such calls.
fn is_told_after(calls: &[Line], call: &str) -> bool {
    let is = |line: &Line, what: &str| CallPattern::of(&line.call).to_string() == what;
    let since = calls.iter().rposition(|line| is(line, call));
    since.is_some_and(|since| calls[since..].iter().any(|line| is(line, EVENT)))
}

/// Waits until the calls since this one are such, the operator has begun all that it begins with,
/// and nothing that it asked for is under way. Gives those calls.
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
