use super::*;

const CREATE: &str = "CreateBucket";
const DEADLINE: Duration = Duration::from_secs(30);

fn of<'a>(namespace: &'a str, claim: &'a str) -> Asker<'a> {
    Asker { operation: CREATE, namespace, claim }
}

/// One of many namespaces.
const ANY: Asker<'_> = Asker { operation: CREATE, namespace: "any", claim: "any" };

fn failure(admission: Admission, at: Instant) -> Failure {
    Failure { admission, asked: None, at, chance: 0.5 }
}

impl Circuits {
    /// Fails the calls of this many claims of a namespace. Returns true if the circuit is open
    /// then.
    fn fail_of(&mut self, namespace: &str, claims: usize, now: Instant) -> bool {
        let mut fail = |n: usize| self.failed(of(namespace, &n.to_string()), failure(Admission::Free, now));
        (0..claims).fold(false, |_, claim| fail(claim))
    }

    fn trial_of_all(&self) -> Instant {
        let Some(Circuit::Open { trial, .. }) = self.of_all.get(CREATE) else { panic!("it is closed") };
        *trial
    }
}

/// Circuits with one for all namespaces that has just opened, and the time of that.
fn opened() -> (Circuits, Instant) {
    let (mut circuits, now) = (Circuits::new(DEADLINE), Instant::now());
    for namespace in 1..THRESHOLD {
        assert!(!circuits.fail_of(&namespace.to_string(), 1, now));
        assert_eq!(circuits.admit(ANY, now), Admission::Free);
    }
    assert!(circuits.fail_of("last", 1, now));
    (circuits, now)
}

/// Fails the trial `times` times; returns the duration of each rest.
fn rests(circuits: &mut Circuits, mut now: Instant, times: u32) -> Vec<Duration> {
    let rest = |_| {
        let trial = circuits.trial_of_all();
        let rested = trial - now;
        now = trial;
        assert_eq!(circuits.admit(ANY, now), Admission::Trial);
        assert!(circuits.failed(ANY, failure(Admission::Trial, now)));
        rested
    };
    (0..times).map(rest).collect()
}

// covers: 3.5.rest
#[test]
fn a_run_of_failures_opens_it_and_an_answer_among_them_does_not_let_it() {
    let (mut circuits, now) = (Circuits::new(DEADLINE), Instant::now());
    for turn in 1..=10 * THRESHOLD {
        assert!(!circuits.fail_of(&turn.to_string(), 1, now));
        if turn % (THRESHOLD - 1) == 0 {
            assert!(!circuits.answered(ANY), "it was closed before");
        }
    }
    let (mut circuits, now) = opened();
    assert_eq!(circuits.admit(ANY, now), Admission::Refused);
}

// covers: 3.5.rest
#[test]
fn a_bucket_that_always_fails_rests_nobody_and_a_namespace_of_them_itself_alone() {
    let (mut circuits, now) = (Circuits::new(DEADLINE), Instant::now());
    for _ in 0..100 {
        assert!(!circuits.fail_of("team-a", 1, now));
    }
    assert_eq!(circuits.admit(of("team-a", "other"), now), Admission::Free);
    assert!(circuits.fail_of("team-a", THRESHOLD, now));
    assert_eq!(circuits.admit(of("team-a", "other"), now), Admission::Refused);
    assert_eq!(circuits.admit(of("team-b", "one"), now), Admission::Free);
    assert!(!circuits.answered(of("team-b", "one")), "an answer to another says nothing of these");
    assert_eq!(circuits.admit(of("team-a", "other"), now), Admission::Refused);
    assert!(circuits.answered(of("team-a", "other")));
    assert_eq!(circuits.admit(of("team-a", "other"), now), Admission::Free);
}

#[test]
fn a_trial_is_not_lost_on_a_circuit_while_another_one_refuses() {
    let (mut circuits, now) = opened();
    let later = now + FIRST_REST;
    for claim in 0..THRESHOLD {
        let _ = circuits.failed(of("team-a", &claim.to_string()), failure(Admission::Free, later));
    }
    assert_eq!(circuits.admit(of("team-a", "0"), later), Admission::Refused, "its namespace rests");
    assert_eq!(circuits.admit(of("team-b", "0"), later), Admission::Trial, "the trial of all was not used up");
}

#[test]
fn what_is_kept_of_namespaces_has_a_bound() {
    let (mut circuits, now) = (Circuits::new(DEADLINE), Instant::now());
    assert!(circuits.fail_of("kept", THRESHOLD, now));
    for namespace in 0..2 * MOST_KEPT {
        let _ = circuits.fail_of(&format!("n-{namespace}"), 3, now);
    }
    assert_eq!(circuits.of_namespaces.len(), MOST_KEPT);
    assert!(circuits.of_namespaces[&(CREATE, "kept".to_owned())].is_open(), "closed ones go first");
}

#[test]
fn operations_have_their_own() {
    let (mut circuits, now) = opened();
    let look = Asker { operation: "GetBucketTagging", ..ANY };
    assert_eq!(circuits.admit(look, now), Admission::Free);
    assert!(!circuits.answered(look));
    assert_eq!(circuits.admit(ANY, now), Admission::Refused);
}

#[test]
fn rests_grow_to_a_cap_and_one_call_ends_each() {
    let (mut circuits, now) = opened();
    let rests = rests(&mut circuits, now, 12);
    assert_eq!(rests[0], FIRST_REST);
    assert!(rests.is_sorted());
    assert_eq!(rests[11], LONGEST_REST);
    let later = now + Duration::from_secs(7200);
    assert_eq!(circuits.admit(ANY, later), Admission::Trial);
    assert_eq!(circuits.admit(ANY, later), Admission::Refused, "one at a time");
}

#[test]
fn rests_are_jittered() {
    assert!(rest(3, 0.0) < rest(3, 1.0));
}

#[test]
fn a_trial_that_is_never_heard_of_is_followed_by_another() {
    let (mut circuits, now) = opened();
    let trial = now + FIRST_REST;
    assert_eq!(circuits.admit(ANY, trial), Admission::Trial);
    assert_eq!(circuits.admit(ANY, trial + DEADLINE - Duration::from_millis(1)), Admission::Refused);
    assert_eq!(circuits.admit(ANY, trial + DEADLINE), Admission::Trial);
}

#[test]
fn what_was_under_way_when_it_opened_does_not_lengthen_the_rest() {
    let (mut circuits, now) = opened();
    let before = circuits.of_all.clone();
    assert!(circuits.failed(ANY, Failure { chance: 1.0, ..failure(Admission::Free, now) }));
    assert_eq!(circuits.of_all, before);
    assert!(circuits.answered(ANY), "an answer closes it all the same");
    assert_eq!(circuits.admit(ANY, now), Admission::Free);
}

#[test]
fn an_answer_to_the_trial_closes_it_and_all_is_forgotten() {
    let (mut circuits, now) = opened();
    rests(&mut circuits, now, 5);
    assert!(circuits.answered(ANY));
    assert_eq!(circuits.admit(ANY, now), Admission::Free);
    assert!(!circuits.failed(ANY, failure(Admission::Free, now)), "one failure is one failure again");
}

#[test]
fn a_store_is_left_alone_for_as_long_as_it_asks_but_not_for_ever() {
    for (asked, granted) in [(60, 60), (86_400, 300)] {
        let (mut circuits, now) = opened();
        let trial = now + FIRST_REST;
        assert_eq!(circuits.admit(ANY, trial), Admission::Trial);
        let asked = Some(Duration::from_secs(asked));
        circuits.failed(ANY, Failure { asked, ..failure(Admission::Trial, trial) });
        let granted = trial + Duration::from_secs(granted);
        assert_eq!(circuits.admit(ANY, granted - Duration::from_millis(1)), Admission::Refused);
        assert_eq!(circuits.admit(ANY, granted), Admission::Trial);
    }
}

#[test]
fn a_probe_that_succeeds_after_one_that_failed_brings_the_trial_forward() {
    let (mut circuits, now) = opened();
    assert!(!circuits.probed(true, now), "the store could be reached all the time: that says nothing new");
    assert_eq!(circuits.admit(ANY, now), Admission::Refused);
    assert!(!circuits.probed(false, now));
    assert!(circuits.probed(true, now));
    assert_eq!(circuits.admit(ANY, now), Admission::Trial);
    assert_eq!(circuits.admit(ANY, now), Admission::Refused);
}

#[test]
fn closed_circuits_have_nothing_to_try() {
    let mut circuits = Circuits::new(DEADLINE);
    circuits.probed(false, Instant::now());
    assert!(!circuits.probed(true, Instant::now()));
}
