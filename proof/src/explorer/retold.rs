//! Replays the recording of a running simulator: the same steps in a new world, on virtual time,
//! with the production operator; and judges the run by every promise.
//!
//! There is no goal, because the users' intentions are not recorded. The end state is judged once
//! the world is at rest.

use std::time::Duration;

use http::{Request, header};
use serde::Serialize;
use serde_json::Value;
use stowage_operator::api::{Publishing, S3Backend};
use stowage_world::deeds::{Deed, Deeds, Met, Shift, Step};
use stowage_world::determinism::seeded_run;
use stowage_world::effects::{EffectPattern, Line, Plan};
use stowage_world::history::facts::condition;
use stowage_world::history::{Facts, What};
use stowage_world::scenes::Stage as _;
use stowage_world::{ADMIN_ACCOUNT, Accesses, BackendStore, Document, Foreign, OPERATOR_NAMESPACE, Options};
use tokio::time::{Instant, advance, sleep_until, timeout_at};

use super::ending::nothing_is_due;
use super::log::Log;
use super::others;
use super::outcome::Outcome;
use super::play::{goes_round, setting, shown, touch, untimely_ends};
use super::scenario::WorldStep;
use super::stage::{PATIENCE, Stage};
use super::timeline::Timeline;
use crate::oracles::{Case, Judgement, Promise, Setting, Violation, judge};

/// Maximum number of calls of the operator.
const MOST_CALLS: u64 = 2_000_000;
/// Time in which later passes show a partial failure.
const AFTERMATH: Duration = Duration::from_secs(100);
/// Longer than the interval of drift checks: anything due within it is waited for.
const SOON: Duration = Duration::from_secs(900);
/// Time that writes are gathered for the cluster's own controllers.
const GATHERED: Duration = Duration::from_millis(20);
/// Length of a UID in characters.
const UID: usize = 36;
/// Maximum length of a single jump of the clock.
const LEAP: Duration = Duration::from_secs(24 * 3600);

/// The result of a replay.
#[derive(Debug)]
pub struct Retold {
    /// The run.
    pub outcome: Outcome,
    /// Steps that were refused, with the reason, though they were not refused in the recording.
    pub refused: Vec<String>,
    /// True if the world came to rest, so that the end was judged as well.
    pub rested: bool,
}

/// The final state of a claim, an access or an ObjectBucketClaim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ended {
    /// Resource name, such as `bucketclaims`.
    pub resource: &'static str,
    /// Namespace and name.
    pub name: String,
    /// Phase of the object; for an access the reason of `Ready`. Empty for an object without a
    /// status.
    pub phase: String,
}

/// Replays the recording under this plan, on a new thread. A panic breaks a promise.
pub fn retell(deeds: &Deeds, seed: u64, plan: &Plan) -> Retold {
    let of_panic = |panic: Box<dyn std::any::Any + Send>| Retold {
        outcome: Outcome::of_panic(panic.as_ref()),
        refused: Vec::new(),
        rested: false,
    };
    seeded_run(seed).run_and(|| play(deeds, seed, plan), |ended| ended.unwrap_or_else(of_panic))
}

impl Retold {
    /// Returns the timeline of the run, which this line replays.
    pub fn timeline(&self, line: String, plan: &Plan) -> Timeline {
        let unmet = self.outcome.history.trace.unmet(plan);
        Timeline::by_line(line, unmet.entries.iter().map(ToString::to_string).collect(), &self.outcome)
    }

    /// Describes the faults that met another call than in the recording.
    pub fn elsewhere(&self, deeds: &Deeds, plan: &Plan) -> Vec<String> {
        let other = |met: &Met| {
            let entry = plan.entries.iter().find(|entry| entry.to_string() == met.fault)?;
            let here = nth(self.outcome.history.trace.lines(), &entry.effect)?.call.to_string();
            (here != met.call && is_nameable(&met.call))
                .then(|| format!("{}: here {here}, there {}", met.fault, met.call))
        };
        deeds.met.iter().filter_map(other).collect()
    }

    /// Returns the final states of the objects that users created.
    pub fn ended(&self) -> Vec<Ended> {
        let facts = &self.outcome.end;
        let of = |resource: &'static str| {
            facts.all(resource).map(move |(namespace, name, object)| {
                let phase = object["status"]["phase"].as_str().unwrap_or_else(|| condition(object, "Ready"));
                Ended { resource, name: format!("{namespace}/{name}"), phase: phase.to_owned() }
            })
        };
        ["bucketclaims", "bucketaccesses", "objectbucketclaims"].into_iter().flat_map(of).collect()
    }
}

/// Returns the call that a plan's pattern refers to.
fn nth<'a>(lines: &'a [Line], effect: &EffectPattern) -> Option<&'a Line> {
    match effect {
        EffectPattern::Number(number) => lines.iter().find(|line| line.number == number.get()),
        EffectPattern::Call { call, occurrence } => {
            let before = usize::try_from(occurrence.as_ref()?.get()).ok()?.checked_sub(1)?;
            lines.iter().filter(|line| call.matches(&line.call)).nth(before)
        }
    }
}

/// Returns true if a call has the same name in every world.
///
/// Internal Secrets are named after UIDs, and so are buckets whose claims name none.
fn is_nameable(call: &str) -> bool {
    let is_uid = |text: &[u8]| {
        let fits = |(at, byte): (usize, &u8)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        };
        text.iter().enumerate().all(fits)
    };
    !call.contains(&format!(" {OPERATOR_NAMESPACE}/")) && !call.as_bytes().windows(UID).any(is_uid)
}

/// Returns options for a world like that of a running simulator.
fn options(deeds: &Deeds, seed: u64, plan: &Plan) -> Options {
    let mut backends = BackendStore::of_manifests(&documents(deeds));
    backends.iter_mut().for_each(|backend| ADMIN_ACCOUNT.clone_into(&mut backend.account));
    Options {
        seed,
        plan: plan.clone(),
        history: true,
        accesses: Accesses::Served,
        foreign: deeds.obc.then_some(Foreign::Own),
        publishing: Publishing { metadata_prefixes: vec![String::new()], ..Publishing::default() },
        backends,
        ..Options::default()
    }
}

/// Returns the objects that are written as a whole.
fn documents(deeds: &Deeds) -> Vec<Document> {
    let whole = deeds.steps.iter().filter(|step| {
        matches!(step.deed, Deed::Create(_) | Deed::Replace(_) | Deed::Apply(_)) && step.with["kind"].is_string()
    });
    let object = |step: &Step| serde_json::from_value(step.with.clone()).ok();
    let objects = whole.filter_map(object).enumerate();
    objects.map(|(index, object)| Document { file: "the history".to_owned(), number: index + 1, object }).collect()
}

async fn play(deeds: &Deeds, seed: u64, plan: &Plan) -> Retold {
    let start = Instant::now();
    let log = Log::keep();
    let mut stage = Stage::within(options(deeds, seed, plan), MOST_CALLS);
    let refused = steps(deeds, &mut stage).await;
    stage.world.effects.calm();
    stage.world.note(What::Quiet);
    let until = stage.world.effects.count();
    let mut violations = Vec::new();
    let rests = settle(&stage, &mut violations).await;
    violations.splice(..0, goes_round(&stage));
    let (took, mut rested) = (start.elapsed(), stage.world.effects.count());
    let rests = rests && violations.is_empty();
    if rests {
        // The first pass over everything may still repair something.
        touch(&stage, 1).await;
        stage.pass(others::told_late(&stage.world.effects.fired())).await;
        stage.world.note(What::AtRest);
        touch(&stage, 2).await;
        touch(&stage, 3).await;
        rested = stage.world.effects.count();
    }
    violations.splice(..0, untimely_ends(&stage));
    let (end, faults) = (stage.world.facts(), stage.world.effects.fired());
    let gateway = stage.take_gateway_calls(0);
    let setting = Setting { is_undisturbed: plan.is_empty(), ..setting(&stage, &faults, &gateway.fired) };
    let shown = shown(&stage, &log);
    let history = stage.world.take_history();
    let Judgement { violations: judged, limits } =
        judge(&Case { history: &history, end: &end, setting: &setting, shown: &shown });
    violations.extend(judged);
    let before = 0;
    let outcome =
        Outcome { before, until, rested, history, end, faults, gateway, violations, limits, took, reached: true };
    Retold { outcome, refused, rested: rests }
}

/// Takes all steps at their recorded times, then lets the recorded rest of the time pass. Returns
/// the steps that were refused.
async fn steps(deeds: &Deeds, stage: &mut Stage) -> Vec<String> {
    let (mut refused, mut due) = (Vec::new(), Instant::now());
    for (number, step) in (1..).zip(&deeds.steps) {
        due += step.after.unsigned_abs();
        pass(stage, due).await;
        match &step.deed {
            Deed::Advance(by) => {
                stage.world.note(What::Acted(step.to_string()));
                leap(by.unsigned_abs()).await;
                due += by.unsigned_abs();
            }
            Deed::Operator(shift) => {
                let taken = match shift {
                    Shift::Starts => WorldStep::StartOperator,
                    Shift::Stops => WorldStep::StopOperator,
                };
                // Neither step waits for anything.
                let _ = stage.take(&taken.into()).await;
            }
            _ => {
                stage.world.note(What::Acted(step.to_string()));
                if let Err(why) = ask(stage, step).await {
                    stage.world.note(What::Acted(format!("the user is told: {why}")));
                    refused.push(format!("step {number}, {step}: {why}"));
                }
                open_stores(stage);
            }
        }
    }
    pass(stage, due.max(Instant::now()) + deeds.afterwards.unsigned_abs()).await;
    refused
}

/// Lets time pass while the cluster's own controllers react to each write soon, as in a running
/// simulator, where a namespace is gone in a moment.
async fn pass(stage: &Stage, until: Instant) {
    loop {
        stage.world.run_cluster_controllers();
        let now = Instant::now();
        // While a fault stops the controllers, there is always pending work.
        if now >= until || timeout_at(until, stage.world.news_for_controllers()).await.is_err() {
            return;
        }
        sleep_until(until.min(Instant::now() + GATHERED)).await;
    }
}

/// Advances the clock in jumps of up to a day, while only the gateway is working.
async fn leap(mut time: Duration) {
    while !time.is_zero() {
        let part = time.min(LEAP);
        advance(part).await;
        time -= part;
    }
}

/// Sends a write as it was recorded.
async fn ask(stage: &Stage, step: &Step) -> Result<(), String> {
    let Some((method, place, content_type)) = step.deed.request() else { return Ok(()) };
    let mut with = step.with.clone();
    own(&mut with, &stage.world.facts());
    let body = if with.is_null() { Vec::new() } else { with.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(place).header(header::CONTENT_TYPE, content_type).body(body);
    let request = request.map_err(|error| error.to_string())?;
    match stage.world.kube().request::<Value>(request).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(error) => Err(error.to_string()),
    }
}

/// Replaces the owner UIDs of an object by those of this world.
fn own(with: &mut Value, facts: &Facts) {
    let namespace = with["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    let Some(owners) = with.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut) else { return };
    for owner in owners {
        let named = facts.objects.iter().find(|((_, place, name), object)| {
            owner["name"] == name.as_str()
                && owner["kind"] == object["kind"]
                && owner["apiVersion"] == object["apiVersion"]
                && (place.is_empty() || namespace.is_empty() || *place == namespace)
        });
        if let Some((_, object)) = named {
            owner["uid"] = object["metadata"]["uid"].clone();
        }
    }
}

/// Makes each store accept the keys that its backends' Secrets now contain.
fn open_stores(stage: &Stage) {
    let facts = stage.world.facts();
    for (_, _, backend) in facts.all("s3backends") {
        let Ok(backend) = serde_json::from_value::<S3Backend>(backend.clone()) else { continue };
        let reference = &backend.spec.admin_credentials_secret_ref;
        let secret = facts.object("secrets", &reference.namespace, &reference.name);
        let secret = serde_json::from_value(secret.clone()).ok();
        let Some(backend) = BackendStore::of(&backend, secret.as_ref()) else { continue };
        if let (Some(store), Some((id, key))) = (stage.world.store_at(&backend.endpoint), &backend.keys) {
            store.add_account(ADMIN_ACCOUNT, id, key);
        }
    }
}

/// Waits until partial failures have shown and nothing is due soon, then probes each key that is
/// reported to work. Returns true if the world is at rest.
async fn settle(stage: &Stage, violations: &mut Vec<Violation>) -> bool {
    let fired = stage.world.effects.fired();
    let still: Duration = fired.iter().map(|fault| others::stands_still(*fault) + others::is_behind(*fault)).sum();
    let shows = if others::show_late(&stage.world.effects) { SOON } else { AFTERMATH };
    stage.pass(still + shows).await;
    let rests = stage.until(PATIENCE, |facts| nothing_is_due(facts, SOON)).await.is_ok();
    if stage.operators.is_empty() {
        return rests;
    }
    stage.pass(others::gateway_lag(&fired)).await;
    let broken = |promise| move |message| Violation { promise, message, event: None };
    violations.extend(stage.probe(&stage.world.facts()).await.into_iter().map(broken(Promise::I16)));
    violations.extend(stage.probe_accesses(&stage.world.facts()).await.into_iter().map(broken(Promise::A5)));
    rests
}

#[cfg(test)]
mod tests {
    use super::super::Detail;
    use super::*;

    /// Recording of a simulator's start and of one claim.
    const HISTORY: &str = r#"
began: empty
steps:
- after: 0s
  apply: /api/v1/namespaces/stowage-system?fieldManager=kubectl
  with: {apiVersion: v1, kind: Namespace, metadata: {name: stowage-system}}
- after: 1ms
  apply: /api/v1/namespaces/stowage-system/secrets/admin?fieldManager=kubectl
  with:
    apiVersion: v1
    kind: Secret
    metadata:
      name: admin
      namespace: stowage-system
      labels: {broker.stowage.io/backend-credentials: "true"}
      annotations: {broker.stowage.io/endpoints: "http://127.0.0.1:9001"}
    stringData: {AWS_ACCESS_KEY_ID: redacted-1, AWS_SECRET_ACCESS_KEY: redacted-2}
- after: 0s
  apply: /apis/broker.stowage.io/v1alpha1/s3backends/main?fieldManager=kubectl
  with:
    apiVersion: broker.stowage.io/v1alpha1
    kind: S3Backend
    metadata: {name: main}
    spec: {endpoint: "http://127.0.0.1:9001", adminCredentialsSecretRef: {name: admin, namespace: stowage-system}}
- {after: 5ms, operator: starts}
- {after: 2s, create: /apis/broker.stowage.io/v1alpha1/namespaces/default/bucketclaims, with: CLAIM}
afterwards: 20s
"#;

    const CLAIM: &str = "{apiVersion: broker.stowage.io/v1alpha1, kind: BucketClaim, metadata: {name: photos}, \
                         spec: {backendRef: {name: main}}}";

    fn deeds(more: &str) -> Deeds {
        let text = HISTORY.replace("CLAIM", CLAIM).replace("afterwards", &format!("{more}afterwards"));
        Deeds::read(&text).expect("it is a history")
    }

    fn patterns(retold: &Retold) -> Vec<String> {
        let lines = retold.outcome.history.trace.lines().iter();
        lines.filter_map(|line| line.fault.map(|fault| format!("{} {fault}", line.call))).collect()
    }

    #[test]
    fn what_was_done_is_done_again_under_the_same_fault_and_always_alike() {
        let plan: Plan = "s3:CreateBucket@1 lost-answer".parse().expect("a plan");
        let (one, other) = (retell(&deeds(""), 1, &plan), retell(&deeds(""), 1, &plan));
        assert_eq!((&one.outcome.violations[..], &one.refused[..], one.rested), (&[][..], &[][..], true));
        assert_eq!(patterns(&one), ["s3:CreateBucket default-photos lost-answer"]);
        let ended = Ended { resource: "bucketclaims", name: "default/photos".to_owned(), phase: "Bound".to_owned() };
        assert_eq!(one.ended(), [ended]);
        assert_eq!(one.outcome.hash(Detail::All), other.outcome.hash(Detail::All));
        let met = |call: &str| {
            let met = Met { fault: plan.to_string(), call: call.to_owned() };
            one.elsewhere(&Deeds { met: vec![met], ..deeds("") }, &plan)
        };
        assert_eq!(met("s3:CreateBucket default-photos"), [] as [&str; 0]);
        let elsewhere = "s3:CreateBucket@1 lost-answer: here s3:CreateBucket default-photos, there s3:CreateBucket b";
        assert_eq!(met("s3:CreateBucket b"), [elsewhere]);
        for drawn in ["s3:CreateBucket a-8b2bf5cd-3fba-48e0-b8d9-0a4fc9467560", "kube:create secrets stowage-system/a"]
        {
            assert_eq!(met(drawn), [] as [&str; 0], "no name is the same");
        }
        let timeline = one.timeline("a line".to_owned(), &plan);
        assert_eq!((timeline.line.as_str(), timeline.unmet.len()), ("a line", 0));
    }

    #[test]
    fn the_clock_moves_while_the_operator_rests_and_a_key_rotates() {
        let policy = "{mode: TimeBased, intervalDays: 90, overlapSeconds: 3600}";
        let place = "/apis/broker.stowage.io/v1alpha1/namespaces/default/bucketclaims/photos";
        let more = format!(
            "- {{after: 3s, mergePatch: {place}, with: {{spec: {{rotationPolicy: {policy}}}}}}}\n\
             - {{after: 5s, operator: stops}}\n- {{after: 3ms, advance: 2184h}}\n- {{after: 0s, operator: starts}}\n"
        );
        let retold = retell(&deeds(&more), 1, &Plan::default());
        assert_eq!((&retold.outcome.violations[..], &retold.refused[..]), (&[][..], &[][..]));
        let claim = retold.outcome.end.claim("default", "photos");
        assert_eq!(claim["status"]["rotationGeneration"], 2, "{claim:#}");
    }

    #[test]
    fn a_step_that_is_refused_here_is_told() {
        let more = "- {after: 1s, delete: /api/v1/namespaces/stowage-system/secrets/of-another-uid}\n";
        let retold = retell(&deeds(more), 1, &Plan::default());
        let told = &retold.refused[0];
        assert!(told.starts_with("step 6, a user deletes secrets stowage-system/of-another-uid: "), "{told}");
        assert!(told.contains("not found"), "{told}");
    }

    #[test]
    fn a_namespace_is_gone_in_a_moment() {
        let more = "- {after: 1s, create: /api/v1/namespaces, with: {metadata: {name: team-a}}}\n\
                    - {after: 1s, delete: /api/v1/namespaces/team-a}\n\
                    - {after: 200ms, create: /api/v1/namespaces, with: {metadata: {name: team-a}}}\n";
        assert_eq!(retell(&deeds(more), 1, &Plan::default()).refused, [] as [&str; 0]);
    }

    /// With the recorded UID the owner would not exist, and the garbage collector would delete the
    /// object.
    #[test]
    fn an_object_stays_with_its_owner_who_has_another_uid_here() {
        let owner = "{apiVersion: broker.stowage.io/v1alpha1, kind: BucketClaim, name: photos, uid: of-another-life}";
        let more = format!(
            "- {{after: 9s, create: /api/v1/namespaces/default/configmaps, with: {{apiVersion: v1, kind: ConfigMap, \
             metadata: {{name: notes, ownerReferences: [{owner}]}}}}}}\n"
        );
        let retold = retell(&deeds(&more), 1, &Plan::default());
        assert_eq!(retold.refused, [] as [&str; 0]);
        let notes = retold.outcome.end.object("configmaps", "default", "notes");
        let claim = retold.outcome.end.claim("default", "photos");
        assert_eq!(notes["metadata"]["ownerReferences"][0]["uid"], claim["metadata"]["uid"]);
    }
}
