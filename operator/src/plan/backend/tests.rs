//! Passes over a backend, driven by a test instead of the controller.

use std::collections::BTreeMap;

use rstest::rstest;
use serde_json::{Value, json};

use crate::api::{BackendReason, BucketClaimStatus};

use super::*;

/// Interval between probes, without jitter.
const INTERVAL: Duration = Duration::from_secs(600);

const SECOND: Duration = Duration::from_secs(1);

fn unreachable() -> Probed {
    Probed::NoAnswer("no answer".to_owned())
}

/// A cluster with one backend, and the answers of its store and of the API server.
struct Bench {
    backend: S3Backend,
    memory: Option<BackendMemory>,
    secrets_changed: bool,
    now: Uptime,
    connected: Result<Connected, &'static str>,
    probed: Probed,
    /// Duration of a probe, and of a status write.
    takes: Duration,
    claims: i64,
    /// Result of a status write: `Err` if the API server fails, `Ok(Some(_))` if the status was
    /// written too often.
    write: Result<Option<Duration>, &'static str>,
    /// True if the API server fails to write the annotation that names the operator.
    unnoted: bool,
}

fn operator() -> ServedBy {
    ServedBy::operator("stowage-system", "cluster-1")
}

impl Bench {
    /// Returns a backend that was never looked at.
    fn new() -> Self {
        let backend = json!({
            "apiVersion": "broker.stowage.io/v1alpha1", "kind": "S3Backend",
            "metadata": {"name": "main", "uid": "b", "generation": 1,
                         "annotations": {"broker.stowage.io/served-by": operator().as_str()}},
            "spec": {
                "endpoint": "http://s3.example",
                "adminCredentialsSecretRef": {"name": "s3-admin", "namespace": "stowage-system"},
            },
        });
        Self {
            backend: serde_json::from_value(backend).unwrap(),
            memory: None,
            secrets_changed: false,
            now: Uptime(SECOND),
            connected: Ok(Connected::Anew),
            probed: Probed::Succeeded,
            takes: Duration::ZERO,
            claims: 0,
            write: Ok(None),
            unnoted: false,
        }
    }

    /// Returns a Ready backend with counted claims.
    fn ready() -> Self {
        let mut bench = Self::new();
        bench.pass();
        bench.connected = Ok(Connected::Same);
        bench
    }

    /// Runs a pass. Returns its steps and its end.
    fn pass(&mut self) -> (Vec<&'static str>, BackendEnd) {
        let changed = std::mem::take(&mut self.secrets_changed);
        let mut pass = BackendPass::new(operator(), &self.backend, self.memory.clone(), changed, INTERVAL, self.now);
        let mut steps = Vec::new();
        loop {
            assert!(steps.len() < MOST_STEPS, "{steps:?}");
            match pass.next(Timestamp::UNIX_EPOCH) {
                ControlFlow::Continue(step) => {
                    let (name, answer) = self.carry_out(step);
                    steps.push(name);
                    pass.learn(BackendAnswered { answer, at: self.now }, Arrival::Prompt);
                }
                ControlFlow::Break(end) => {
                    self.memory = pass.remembered();
                    self.secrets_changed = pass.leaves_change();
                    return (steps, end);
                }
            }
        }
    }

    fn carry_out(&mut self, step: BackendStep) -> (&'static str, BackendAnswer) {
        match step {
            BackendStep::Serve(_) if self.unnoted => {
                ("serve", BackendAnswer::Failed(step, "somebody was first".to_owned()))
            }
            BackendStep::Serve(operator) => {
                let note = BTreeMap::from([("broker.stowage.io/served-by".to_owned(), operator.to_string())]);
                self.backend.metadata.annotations = Some(note);
                ("serve", BackendAnswer::Served(operator))
            }
            BackendStep::Connect(_) => (
                "connect",
                match &self.connected {
                    Ok(connected) => BackendAnswer::Connected(connected.clone()),
                    Err(why) => BackendAnswer::Failed(step, (*why).to_owned()),
                },
            ),
            BackendStep::Probe => {
                self.now = self.now + self.takes;
                ("probe", BackendAnswer::Probed(self.probed.clone()))
            }
            BackendStep::WakeClaims => ("wake claims", BackendAnswer::ClaimsWoken),
            BackendStep::Schedule(about) => ("schedule", BackendAnswer::Scheduled(about, about)),
            BackendStep::Count => ("count", BackendAnswer::Counted(self.claims)),
            BackendStep::WriteStatus(status) => ("write", self.write(status)),
        }
    }

    fn write(&mut self, status: S3BackendStatus) -> BackendAnswer {
        match self.write {
            Err(why) => BackendAnswer::Failed(BackendStep::WriteStatus(status), why.to_owned()),
            Ok(Some(wait)) => BackendAnswer::TooOften(status, wait),
            Ok(None) => {
                self.now = self.now + self.takes;
                self.backend.status = Some(status.clone());
                BackendAnswer::Written(status)
            }
        }
    }

    fn edit(&mut self) {
        *self.backend.metadata.generation.as_mut().unwrap() += 1;
    }

    fn later(&mut self, distance: Duration) {
        self.now = self.now + distance;
    }

    /// Returns type and reason of each condition.
    fn conditions(&self) -> Vec<(String, String)> {
        let conditions = self.backend.status.iter().flat_map(|status| &status.conditions);
        conditions.map(|condition| (condition.type_.clone(), condition.reason.clone())).collect()
    }

    fn is_ready(&self) -> bool {
        self.conditions() == [("Ready".to_owned(), "EndpointReachable".to_owned())]
    }

    fn bucket_count(&self) -> Option<i64> {
        self.backend.status.as_ref()?.bucket_count
    }
}

fn rest(after: Duration, resets_backoff: bool) -> BackendEnd {
    BackendEnd::Rest { after, resets_backoff }
}

// covers: 1.backend.probe, 1.backend.status.observedGeneration, 1.backend.status.bucketCount
#[test]
fn one_that_nobody_has_looked_at_is_probed_and_counted_and_told_of() {
    let mut bench = Bench::new();
    bench.claims = 3;
    let (steps, end) = bench.pass();
    assert_eq!(steps, ["connect", "probe", "schedule", "count", "write"]);
    assert_eq!(end, rest(INTERVAL, true));
    assert!(bench.is_ready());
    assert_eq!(bench.backend.status.as_ref().unwrap().observed_generation, Some(1));
    assert_eq!(bench.bucket_count(), Some(3));
}

// covers: 1.backend.status.kstatus, 1.backend.reason.EndpointReachable
// covers: 1.backend.reason.EndpointUnreachable, 1.backend.reason.CredentialsInvalid
// covers: 1.backend.reason.BackendError
#[rstest]
#[case(Probed::Succeeded, &[("Ready", "EndpointReachable")])]
#[case(unreachable(), &[("Ready", "EndpointUnreachable"), ("Reconciling", "EndpointUnreachable")])]
#[case(Probed::Denied("403".to_owned()), &[("Ready", "CredentialsInvalid"), ("Stalled", "CredentialsInvalid")])]
#[case(Probed::Failed("500".to_owned()), &[("Ready", "BackendError"), ("Reconciling", "BackendError")])]
fn what_a_probe_shows_is_told(#[case] probed: Probed, #[case] conditions: &[(&str, &str)]) {
    let mut bench = Bench { probed, ..Bench::new() };
    bench.pass();
    let told = bench.conditions();
    let told: Vec<_> = told.iter().map(|(type_, reason)| (type_.as_str(), reason.as_str())).collect();
    assert_eq!(told, conditions);
}

// covers: 1.backend.reason.CredentialsInvalid
#[test]
fn without_a_client_nothing_is_probed() {
    let why = "Secret stowage-system/s3-admin does not exist";
    let mut bench = Bench { connected: Ok(Connected::Unusable(why.to_owned())), ..Bench::new() };
    assert_eq!(bench.pass(), (vec!["connect", "schedule", "count", "write"], rest(2 * SECOND, true)));
    let ready = &bench.backend.status.as_ref().unwrap().conditions[0];
    assert_eq!((ready.reason.as_str(), ready.message.as_str()), ("CredentialsInvalid", why));
}

// covers: 1.backend.reason.TemplateInvalid, 1.backend.reason.BackendError
#[rstest]
#[case("bucketNameTemplate", "{{ .Name | upper }}", BackendReason::TemplateInvalid)]
#[case("endpoint", "ftp://s3.example", BackendReason::BackendError)]
fn of_a_spec_that_cannot_be_read_no_client_is_made(
    #[case] field: &str,
    #[case] value: &str,
    #[case] reason: BackendReason,
) {
    let mut bench = Bench::new();
    let mut raw = serde_json::to_value(&bench.backend).unwrap();
    raw["spec"][field] = Value::from(value);
    bench.backend = serde_json::from_value(raw).unwrap();
    assert_eq!(bench.pass().0, ["schedule", "count", "write"]);
    assert_eq!(bench.conditions()[0], ("Ready".to_owned(), reason.to_string()));
}

// covers: 1.backend.probe.periodic
#[test]
fn a_probe_is_repeated_when_it_is_due_and_not_before() {
    let mut bench = Bench::ready();
    bench.later(INTERVAL - SECOND);
    assert_eq!(bench.pass(), (vec![], rest(SECOND, false)));
    bench.later(SECOND);
    assert_eq!(bench.pass(), (vec!["connect", "probe", "schedule"], rest(SECOND, false)));
    bench.later(SECOND);
    assert_eq!(bench.pass(), (vec!["count"], rest(INTERVAL - SECOND, true)));
}

// covers: 1.backend.probe.hysteresis
#[test]
fn failed_periodic_probes_are_forgiven_but_repeated_soon_until_they_are_a_run() {
    let mut bench = Bench::ready();
    bench.probed = unreachable();
    bench.later(INTERVAL);
    let mut waits = Vec::new();
    while bench.is_ready() {
        let BackendEnd::Rest { .. } = bench.pass().1 else { panic!("it does not rest") };
        let next = bench.memory.as_ref().unwrap().next_probe;
        waits.push(bench.now.until(next));
        bench.now = next;
    }
    assert_eq!(waits, [2 * SECOND, 4 * SECOND, 8 * SECOND]);
}

/// Two operators, only one of which reaches the store.
#[test]
fn what_another_operator_has_found_since_stands_until_the_next_probe() {
    let mut bench = Bench::ready();
    let mut other = Bench { backend: bench.backend.clone(), probed: unreachable(), ..Bench::new() };
    other.edit();
    bench.edit();
    bench.pass();
    other.pass();
    assert!(bench.is_ready() && !other.is_ready());
    bench.backend.status.clone_from(&other.backend.status);
    bench.later(SECOND);
    bench.claims = 2;
    assert_eq!(bench.pass().0, [] as [&str; 0]);
    bench.later(2 * SECOND);
    assert_eq!(bench.pass().0, ["count", "write"]);
    assert!(!bench.is_ready() && bench.bucket_count() == Some(2), "its count is told, and no more");
    bench.later(INTERVAL);
    assert_eq!(bench.pass().0, ["connect", "probe", "schedule", "write"]);
    assert!(bench.is_ready());
    bench.backend.status = None;
    bench.later(SECOND);
    assert_eq!(bench.pass().0, ["write"], "a status that says nothing is none of another operator");
}

#[test]
fn what_was_found_and_could_not_be_told_is_told_by_the_next_pass() {
    let mut bench = Bench::ready();
    bench.edit();
    bench.probed = unreachable();
    bench.write = Err("the API server is out");
    bench.pass();
    assert!(bench.is_ready());
    bench.write = Ok(None);
    assert_eq!(bench.pass().0.last(), Some(&"write"));
    assert!(!bench.is_ready());
}

// covers: 1.backend.probe.edit
#[test]
fn an_edit_is_probed_and_counts_at_once() {
    let mut bench = Bench::ready();
    bench.edit();
    bench.probed = unreachable();
    bench.later(SECOND);
    assert_eq!(bench.pass().0, ["connect", "probe", "schedule", "write"]);
    assert!(!bench.is_ready());
}

// covers: 1.backend.probe.adminSecret, 1.backend.probe.caSecret, 3.5.wake.adminSecret
#[test]
fn a_changed_secret_is_probed_and_counts_at_once_and_the_claims_are_told() {
    let mut bench = Bench::ready();
    bench.secrets_changed = true;
    bench.connected = Ok(Connected::Anew);
    bench.probed = Probed::Denied("403".to_owned());
    assert_eq!(bench.pass().0, ["connect", "probe", "wake claims", "schedule", "write"]);
    assert!(!bench.is_ready() && !bench.secrets_changed);
}

// covers: 1.backend.probe.adminSecret
#[test]
fn a_change_that_leaves_the_client_as_it_is_was_none() {
    let mut bench = Bench::ready();
    let next_probe = bench.memory.as_ref().unwrap().next_probe;
    bench.secrets_changed = true;
    bench.later(SECOND);
    assert_eq!(bench.pass().0, ["connect"]);
    assert_eq!(bench.memory.as_ref().unwrap().next_probe, next_probe);
    // A probe that is due anyway runs with the same client.
    bench.secrets_changed = true;
    bench.now = next_probe;
    assert_eq!(bench.pass().0, ["connect", "probe", "wake claims", "schedule", "count"]);
}

// covers: 1.backend.probe.adminSecret, 3.5.backoff
#[test]
fn a_changed_secret_that_cannot_be_read_is_read_again() {
    let mut bench = Bench::ready();
    let before = bench.memory.clone();
    bench.secrets_changed = true;
    bench.connected = Err("the API server is out");
    let why = "can't make a client of the store: the API server is out".to_owned();
    assert_eq!(bench.pass(), (vec!["connect"], BackendEnd::Retry(why)));
    assert!(bench.is_ready() && bench.secrets_changed, "that says nothing of the backend");
    assert_eq!(bench.memory, before);
    bench.connected = Ok(Connected::Anew);
    assert_eq!(bench.pass().0, ["connect", "probe", "wake claims", "schedule"]);
    assert!(!bench.secrets_changed);
}

#[test]
fn a_secret_that_was_never_read_has_not_changed() {
    let mut bench = Bench { secrets_changed: true, ..Bench::new() };
    assert_eq!(bench.pass().0, ["connect", "probe", "schedule", "count", "write"]);
    let mut bench = Bench { secrets_changed: true, connected: Err("the API server is out"), ..Bench::new() };
    bench.pass();
    assert!(!bench.secrets_changed && bench.memory.is_none());
}

// covers: 1.backend.probe.hysteresis, 1.backend.probe.edit
#[rstest]
#[case::of_the_generation_that_was_probed(false)]
#[case::of_another(true)]
fn after_a_start_a_status_that_says_ready_stands_for_a_memory(#[case] edited: bool) {
    let mut bench = Bench::ready();
    bench.memory = None;
    bench.probed = unreachable();
    if edited {
        bench.edit();
    }
    assert_eq!(bench.pass().0[..2], ["connect", "probe"]);
    assert_eq!(bench.is_ready(), !edited);
}

#[test]
fn what_is_due_is_counted_from_the_answer_and_not_from_the_question() {
    let mut bench = Bench { takes: 10 * SECOND, ..Bench::new() };
    let began = bench.now;
    let (_, end) = bench.pass();
    assert_eq!(bench.memory.as_ref().unwrap().next_probe, began + 10 * SECOND + INTERVAL);
    assert_eq!(end, rest(INTERVAL - 10 * SECOND, true), "the status took as long again");
}

// covers: 1.backend.status.bucketCount
#[test]
fn a_burst_of_claims_makes_one_count_once_it_is_over() {
    let mut bench = Bench::ready();
    for claims in 1..=3 {
        bench.claims = claims;
        let left = 2 * SECOND - SECOND / 4 * u32::try_from(claims - 1).unwrap();
        assert_eq!(bench.pass(), (vec![], rest(left, false)));
        bench.later(SECOND / 4);
    }
    bench.later(2 * SECOND);
    let (steps, _) = bench.pass();
    assert_eq!((steps, bench.bucket_count()), (vec!["count", "write"], Some(3)));
}

// covers: 1.backend.status.bucketCount
#[test]
fn until_the_next_count_that_of_another_operator_stands() {
    let mut bench = Bench::ready();
    bench.backend.status.as_mut().unwrap().bucket_count = Some(7);
    assert_eq!(bench.pass().0, [] as [&str; 0]);
    bench.later(2 * SECOND);
    assert_eq!(bench.pass().0, ["count"], "it comes to what it came to before");
    assert_eq!(bench.bucket_count(), Some(7));
    bench.claims = 1;
    bench.later(2 * SECOND);
    bench.pass();
    bench.later(2 * SECOND);
    assert_eq!(bench.pass().0, ["count", "write"]);
    assert_eq!(bench.bucket_count(), Some(1));
}

// covers: 1.backend.status.bucketCount
/// The operator that wrote the count may be gone, or may have seen fewer claims.
#[test]
fn after_a_probe_what_another_operator_has_counted_is_written_over_once() {
    let mut bench = Bench::ready();
    bench.backend.status.as_mut().unwrap().bucket_count = Some(7);
    bench.later(INTERVAL);
    assert_eq!(bench.pass().0, ["connect", "probe", "schedule"]);
    bench.later(2 * SECOND);
    assert_eq!(bench.pass().0, ["count", "write"]);
    assert_eq!(bench.bucket_count(), Some(0));
    bench.backend.status.as_mut().unwrap().bucket_count = Some(7);
    for _ in 0..3 {
        bench.later(2 * SECOND);
        assert!(!bench.pass().0.contains(&"write"));
    }
}

// covers: 1.backend.status.bucketCount
#[test]
fn a_claim_counts_while_it_is_bound_on_the_backend() {
    let status = |phase: &str, backend: &str| -> BucketClaimStatus {
        let backend = json!({"name": backend, "endpoint": "http://s3.example"});
        serde_json::from_value(json!({"phase": phase, "backend": backend})).unwrap()
    };
    assert!(is_bound_on(&status("Bound", "main"), "main"));
    assert!(!is_bound_on(&status("Bound", "other"), "main"));
    assert!(!is_bound_on(&status("Pending", "main"), "main"));
    assert!(!is_bound_on(&BucketClaimStatus::default(), "main"));
}

// covers: 3.5.backoff
#[test]
fn a_status_that_could_not_be_written_is_tried_again_and_only_a_pass_that_counts_makes_up_for_it() {
    let mut bench = Bench::ready();
    bench.claims = 1;
    bench.later(3 * SECOND);
    bench.pass();
    bench.later(3 * SECOND);
    bench.write = Err("the API server is out");
    let why = "can't write the status: the API server is out".to_owned();
    assert_eq!(bench.pass(), (vec!["count", "write"], BackendEnd::Retry(why)));
    bench.write = Ok(None);
    assert_eq!(bench.pass(), (vec![], rest(2 * SECOND, false)), "another count may be shown until then");
    bench.later(2 * SECOND);
    let (steps, end) = bench.pass();
    assert_eq!(steps, ["count", "write"]);
    assert!(matches!(end, BackendEnd::Rest { resets_backoff: true, .. }), "{end:?}");
}

#[test]
fn a_status_that_was_written_too_often_waits() {
    let mut bench = Bench::new();
    bench.write = Ok(Some(30 * SECOND));
    assert_eq!(bench.pass().1, BackendEnd::Wait(30 * SECOND));
    let remembered = bench.memory.clone().expect("what was found is kept");
    assert!(remembered.health.verdict.is_ready());
}

// covers: 1.backend.servedBy
#[test]
fn who_serves_a_backend_is_noted_before_anything_is_asked_of_it() {
    let mut bench = Bench::new();
    bench.backend.metadata.annotations = None;
    bench.unnoted = true;
    let (steps, end) = bench.pass();
    assert_eq!(steps, ["serve"], "somebody else may have come first");
    assert!(matches!(end, BackendEnd::Retry(_)));
    bench.unnoted = false;
    assert_eq!(bench.pass().0[..3], ["serve", "connect", "probe"]);
    assert!(!bench.pass().0.contains(&"serve"), "it is noted once");
}

// covers: 1.backend.servedBy
#[test]
fn a_backend_that_another_operator_serves_is_left_alone() {
    let another = ServedBy::operator("another-system", "cluster-1");
    let mut bench = Bench::ready();
    let note = BTreeMap::from([("broker.stowage.io/served-by".to_owned(), another.to_string())]);
    bench.backend.metadata.annotations = Some(note);
    bench.backend.metadata.generation = Some(2);
    let (steps, end) = bench.pass();
    assert_eq!(steps, Vec::<&str>::new());
    assert_eq!(end, BackendEnd::LeftAlone(another));
}

/// A Secret that is replaced by delete and create is missing for a moment.
// covers: 1.backend.credentials.gone
#[test]
fn that_a_secret_is_gone_counts_once_it_lasts() {
    let mut bench = Bench::ready();
    bench.connected = Ok(Connected::Missing("Secret stowage-system/s3-admin does not exist".to_owned()));
    bench.secrets_changed = true;
    for wait in [2, 4] {
        let BackendEnd::Rest { after, .. } = bench.pass().1 else { panic!("it is looked at again") };
        assert_eq!(after, wait * SECOND);
        assert!(bench.is_ready());
        bench.later(wait * SECOND);
    }
    bench.pass();
    assert_eq!(bench.conditions()[0], ("Ready".to_owned(), "CredentialsInvalid".to_owned()));
    bench.connected = Ok(Connected::Anew);
    bench.secrets_changed = true;
    bench.pass();
    assert!(bench.is_ready());
}
