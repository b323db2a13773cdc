use rstest::rstest;

use super::*;

const TERMS: Terms = Terms {
    confirmed: Duration::from_secs(15),
    call: Duration::from_secs(30),
    renewal: Duration::from_secs(5),
    retry: Duration::from_secs(1),
};

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn candidate() -> Candidate {
    Candidate::new("a".to_owned(), TERMS)
}

/// Returns the Lease in its `version`th version.
fn lease(version: u32, holder: &str) -> Record {
    Record {
        uid: "u".to_owned(),
        resource_version: version.to_string(),
        holder: (!holder.is_empty()).then(|| holder.to_owned()),
        duration: TERMS.duration(),
        transitions: 0,
    }
}

/// Returns a candidate that has led since it wrote version 1 at this moment.
fn leader(since: u64) -> Candidate {
    let mut candidate = candidate();
    candidate.looks(None, at(since));
    candidate.wrote(lease(1, "a"), at(since), at(since));
    candidate
}

fn wait(seconds: u64) -> Move {
    Move::Wait(Some(at(seconds)))
}

// covers: 3.6.elect.acquire
#[test]
fn nothing_is_written_before_something_was_seen() {
    let candidate = candidate();
    assert_eq!(candidate.next(at(1000)), Move::Wait(None));
}

// covers: 3.6.elect.acquire
#[test]
fn where_there_has_been_no_lease_it_is_made_at_once() {
    let mut candidate = candidate();
    candidate.hears(News::Absent, at(100));
    assert_eq!(candidate.next(at(100)), Move::Create);
}

// covers: 3.6.elect.deleted
#[test]
fn a_lease_that_was_deleted_is_not_made_before_its_holder_has_had_its_time() {
    let mut candidate = candidate();
    candidate.hears(News::There(lease(1, "b")), at(100));
    candidate.hears(News::Absent, at(120));
    assert_eq!(candidate.next(at(120)), wait(165));
    // The same event again changes nothing.
    candidate.hears(News::Absent, at(150));
    assert_eq!(candidate.next(at(165)), Move::Create);
}

// covers: 3.6.elect.deleted
#[rstest]
#[case::its_holder_may_be_at_work(120, 145)]
#[case::its_holder_gave_no_sign_of_life(150, 150)]
fn a_deletion_of_a_lease_counts_at_once_where_its_holder_has_had_its_time(#[case] deleted: u64, #[case] free: u64) {
    let mut candidate = candidate();
    candidate.hears(News::There(lease(1, "b")), at(100));
    candidate.hears(News::Deleted, at(deleted));
    if free > deleted {
        assert_eq!(candidate.next(at(deleted)), wait(free));
    }
    assert_eq!(candidate.next(at(free)), Move::Create);
}

/// A user wrote a name and a long duration into the Lease, and it was deleted as in the runbook.
// covers: 3.6.elect.deleted
#[test]
fn a_lease_that_asks_for_long_is_not_waited_for_once_it_was_deleted() {
    let mut candidate = candidate();
    candidate.hears(News::There(Record { duration: at(99_999), ..lease(1, "x") }), at(100));
    candidate.hears(News::Deleted, at(145));
    assert_eq!(candidate.next(at(145)), Move::Create);
}

// covers: 3.6.elect.deleted
#[test]
fn a_leader_makes_its_lease_anew() {
    let mut leader = leader(100);
    leader.hears(News::Absent, at(102));
    assert_eq!(leader.next(at(102)), Move::Look);
    leader.looks(None, at(102));
    assert_eq!((leader.steps_down(at(102)), leader.next(at(102))), (None, Move::Create));
}

// covers: 3.6.elect.acquire
#[rstest]
#[case::released("", 100)]
#[case::its_own_by_a_try_whose_answer_was_lost("a", 100)]
#[case::anothers("b", 145)]
fn a_lease_is_taken_once_it_is_free(#[case] holder: &str, #[case] free: u64) {
    let mut candidate = candidate();
    candidate.hears(News::There(lease(7, holder)), at(100));
    if free > 100 {
        assert_eq!(candidate.next(at(free - 1)), wait(free));
    }
    assert_eq!(candidate.next(at(free)), Move::Take(lease(7, holder)));
}

// covers: 3.6.elect.acquire
#[test]
fn a_lease_that_changes_is_waited_for_from_there_and_one_that_does_not_is_not() {
    let mut candidate = candidate();
    candidate.hears(News::There(lease(1, "b")), at(100));
    candidate.hears(News::There(lease(1, "b")), at(130));
    assert_eq!(candidate.next(at(131)), wait(145));
    candidate.hears(News::There(lease(2, "b")), at(140));
    assert_eq!(candidate.next(at(145)), wait(185));
}

// covers: 3.6.elect.renew
#[test]
fn a_leader_writes_before_its_time_is_up_and_counts_from_when_it_began() {
    let mut leader = leader(100);
    assert_eq!(leader.next(at(101)), wait(105));
    assert_eq!(leader.next(at(105)), Move::Take(lease(1, "a")));
    leader.wrote(lease(2, "a"), at(105), at(109));
    assert_eq!(leader.ends(), Some(at(120)));
    assert_eq!(leader.next(at(110)), Move::Take(lease(2, "a")));
}

// covers: 3.6.elect.renew
#[test]
fn after_a_try_that_failed_the_lease_is_read_and_not_at_once() {
    let mut leader = leader(100);
    leader.failed(at(105));
    assert_eq!(leader.next(at(105)), wait(106));
    assert_eq!(leader.next(at(106)), Move::Look);
    leader.looks(Some(lease(2, "a")), at(106));
    assert_eq!(leader.next(at(106)), Move::Take(lease(2, "a")));
}

// covers: 3.6.elect.renew
#[test]
fn one_that_does_not_lead_tries_as_seldom_as_a_leader_renews() {
    let mut candidate = leader(100);
    let end = candidate.ends().expect("it leads");
    assert!(candidate.steps_down(end).is_some());
    candidate.failed(end);
    assert_eq!(candidate.next(end), Move::Wait(Some(end + TERMS.renewal)));
    assert_eq!(candidate.next(end + TERMS.renewal), Move::Look);
}

// covers: 3.6.elect.unconfirmed
#[test]
fn who_is_not_confirmed_in_time_leads_no_longer() {
    let mut leader = leader(100);
    assert_eq!(leader.steps_down(at(114)), None);
    assert_eq!(leader.steps_down(at(115)), Some(Loss::Unconfirmed(TERMS.confirmed)));
    assert_eq!((leader.ends(), leader.next(at(115))), (None, Move::Look));
}

// covers: 3.6.elect.unconfirmed
#[rstest]
#[case::renewed(Some(lease(1, "a")), false)]
#[case::its_own_lost_write(Some(lease(2, "a")), false)]
#[case::another(Some(lease(2, "b")), true)]
#[case::another_has_let_it_go(Some(Record { transitions: 1, ..lease(3, "") }), true)]
#[case::changed_hands(Some(Record { transitions: 2, ..lease(4, "a") }), true)]
#[case::made_anew(Some(Record { uid: "v".to_owned(), ..lease(5, "a") }), true)]
#[case::deleted(None, true)]
fn a_term_goes_on_where_the_lease_is_as_it_was_left(#[case] seen: Option<Record>, #[case] is_over: bool) {
    let mut leader = leader(100);
    let term = leader.term().expect("it leads");
    assert!(leader.steps_down(at(115)).is_some() && !leader.is_over(&term), "nothing else was seen yet");
    leader.looks(seen.clone(), at(120));
    assert_eq!(leader.is_over(&term), is_over);
    if let Some(seen) = seen.filter(|_| !is_over) {
        assert_eq!(leader.next(at(120)), Move::Take(seen));
        leader.wrote(lease(9, "a"), at(120), at(121));
        assert_eq!((leader.is_over(&term), leader.term()), (false, Some(term)));
    }
}

// covers: 3.6.elect.lost
#[test]
fn who_is_not_named_leads_no_longer_once_that_is_sure() {
    let mut leader = leader(100);
    // A watch may show the time before the first write.
    leader.hears(News::There(lease(0, "b")), at(101));
    assert_eq!((leader.steps_down(at(101)), leader.next(at(101))), (None, Move::Look));
    leader.looks(Some(lease(1, "a")), at(101));
    assert_eq!((leader.steps_down(at(101)), leader.next(at(101))), (None, wait(105)));
    leader.hears(News::There(lease(2, "b")), at(102));
    leader.looks(Some(lease(2, "b")), at(102));
    assert_eq!(leader.steps_down(at(102)), Some(Loss::Another(Some("b".to_owned()))));
}

/// A simulation of candidates that share a Lease over a network with losses and delays, and are
/// suspended now and then.
struct Town {
    random: fastrand::Rng,
    now: Duration,
    /// Every version of the Lease so far.
    versions: Vec<Record>,
    people: Vec<Person>,
}

struct Person {
    candidate: Candidate,
    /// The last version that its watch has shown.
    heard: usize,
    request: Option<Request>,
    /// Moment until which the candidate is suspended.
    asleep_until: Duration,
}

/// A request in progress. It reaches the Lease at one moment, and is answered or times out at
/// another.
struct Request {
    wanted: Move,
    began: Duration,
    arrives: Duration,
    ends: Duration,
    is_lost: bool,
    came: Option<Result<Option<Record>, ()>>,
}

const TICK: Duration = Duration::from_millis(500);

impl Town {
    fn new(seed: u64) -> Self {
        let person = |name: &str| Person {
            candidate: Candidate::new(name.to_owned(), TERMS),
            heard: 0,
            request: None,
            asleep_until: Duration::ZERO,
        };
        let people = ["a", "b", "c"].map(person).into();
        Self { random: fastrand::Rng::with_seed(seed), now: at(1000), versions: Vec::new(), people }
    }

    fn tick(&mut self) {
        self.now += TICK;
        for index in 0..self.people.len() {
            self.carry_out(index);
            if self.random.u32(0..400) == 0 {
                self.people[index].asleep_until = self.now + at(self.random.u64(1..90));
            }
            if self.people[index].asleep_until <= self.now {
                self.turn(index);
            }
        }
    }

    /// Applies a request that arrives, whatever its sender does meanwhile.
    fn carry_out(&mut self, index: usize) {
        let (now, id) = (self.now, self.people[index].candidate.id.clone());
        let Some(request) = &mut self.people[index].request else { return };
        if request.came.is_some() || request.arrives > now {
            return;
        }
        let version = u32::try_from(self.versions.len()).unwrap();
        let came = match (&request.wanted, self.versions.last()) {
            (Move::Create, None) => Ok(Some(lease(version, &id))),
            (Move::Take(record), Some(last)) if is_same(record, last) => {
                let transitions = last.transitions + i32::from(last.holder.as_ref() != Some(&id));
                Ok(Some(Record { transitions, ..lease(version, &id) }))
            }
            (Move::Look, last) => Ok(last.cloned()),
            _ => Err(()),
        };
        if let (Ok(Some(written)), Move::Create | Move::Take(_)) = (&came, &request.wanted) {
            self.versions.push(written.clone());
        }
        request.came = Some(came);
    }

    fn turn(&mut self, index: usize) {
        let now = self.now;
        let person = &mut self.people[index];
        if person.heard < self.versions.len() && self.random.bool() {
            person.candidate.hears(News::There(self.versions[person.heard].clone()), now);
            person.heard += 1;
        } else if self.versions.is_empty() {
            person.candidate.hears(News::Absent, now);
        }
        if person.candidate.steps_down(now).is_some() {
            person.request = None;
        }
        if let Some(request) = person.request.take_if(|request| request.ends <= now) {
            match request.came.filter(|_| !request.is_lost) {
                Some(Ok(seen)) if request.wanted == Move::Look => person.candidate.looks(seen, now),
                Some(Ok(Some(record))) => person.candidate.wrote(record, request.began, now),
                Some(Ok(None) | Err(())) | None => person.candidate.failed(now),
            }
        }
        if person.request.is_none() {
            let wanted = person.candidate.next(now);
            if !matches!(wanted, Move::Wait(_)) {
                let (arrives, ends) = (now + TICK * self.random.u32(0..8), now + TICK * self.random.u32(1..9));
                let is_lost = self.random.u32(0..6) == 0;
                person.request = Some(Request { wanted, began: now, arrives, ends, is_lost, came: None });
            }
        }
    }

    /// Returns the moment until which a candidate may begin changes. A suspended one begins none,
    /// and checks the time first when it wakes up.
    fn leads_until(&self, index: usize) -> Option<Duration> {
        self.people[index].candidate.ends()
    }
}

// covers: 3.6.elect.one, 3.6.elect.unconfirmed
#[test]
fn no_two_change_anything_at_once() {
    let (mut terms, mut changes_of_hands, mut resumed) = (0_u32, 0_u32, 0_u32);
    for seed in 0..400 {
        let mut town = Town::new(seed);
        // For each candidate, the term that it was last confirmed in, and if it is confirmed now.
        let mut lives: Vec<Option<(Term, bool)>> = vec![None; town.people.len()];
        // The last leader, and the moment until which its changes may be in progress.
        let mut last: Option<(usize, Duration)> = None;
        for _ in 0..2000 {
            town.tick();
            for (index, life) in lives.iter_mut().enumerate() {
                let candidate = &town.people[index].candidate;
                life.take_if(|(term, _)| candidate.is_over(term));
                if let (Some((_, leads)), None) = (life.as_mut(), candidate.ends()) {
                    *leads = false;
                }
                let Some(end) = town.leads_until(index).filter(|end| *end > town.now) else { continue };
                if let Some((other, until)) = last.filter(|(other, _)| *other != index) {
                    assert!(life.is_none(), "seed {seed}: {index} goes on with what it knew before {other}");
                    assert!(town.now >= until, "seed {seed}: {index} leads at {:?}, {other} until {until:?}", town.now);
                    changes_of_hands += 1;
                }
                terms += u32::from(last.is_none());
                resumed += u32::from(life.as_ref().is_some_and(|(_, leads)| !leads));
                *life = town.people[index].candidate.term().map(|term| (term, true));
                last = Some((index, end + TERMS.call));
            }
        }
    }
    assert!(terms == 400 && changes_of_hands > 400, "{terms} led at all, {changes_of_hands} followed another");
    assert!(resumed > 100, "{resumed} went on");
}
