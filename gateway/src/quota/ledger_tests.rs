use proptest::prelude::*;
use stowage_api::{BucketName, Endpoint, Quantity};

use super::*;
use crate::registry::Table;

fn bucket() -> RecordName {
    let endpoint = Endpoint::parse("http://s3.example").expect("an endpoint");
    RecordName::of(&endpoint, &BucketName::parse("photos").expect("a name"))
}

fn limits(hard: u64) -> Limits {
    let hard = Quantity::Text(hard.to_string()).bytes().expect("a number");
    Limits { soft: None, hard: Some(hard) }
}

/// One of several gateways.
struct Replica {
    ledger: Ledger,
    view: View,
    /// The number of publications it has received.
    heard: usize,
    /// The number of replicas it knows of.
    replicas: u64,
    waiting: Option<u64>,
    stored: u64,
    /// The total of its last publication, including waiting writes.
    told: u64,
    /// The maximum of bytes it could have admitted without a publication, since its last one.
    share: u64,
}

/// A step of a simulation of several gateways.
#[derive(Clone, Debug)]
enum Step {
    /// A write of this many bytes arrives at one of them.
    Write(usize, u64),
    /// The write that waits at one of them is given up.
    GiveUp(usize),
    /// One of them publishes what is due.
    Tell(usize),
    /// The same, and the response is lost.
    TellUnanswered(usize),
    /// One of them tries to publish, and the request never reaches the API server.
    TellInVain(usize),
    /// One of them receives this many publications.
    Hear(usize, usize),
    /// One of them learns the number of replicas.
    Count(usize),
    /// One of them dies.
    Die(usize),
    /// A new one starts, which has received all publications so far.
    Begin,
    /// Time passes, in milliseconds.
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let who = || 0_usize..8;
    prop_oneof![
        8 => (who(), 1_u64..120).prop_map(|(who, length)| Step::Write(who, length)),
        1 => who().prop_map(Step::GiveUp),
        6 => who().prop_map(Step::Tell),
        1 => who().prop_map(Step::TellUnanswered),
        1 => who().prop_map(Step::TellInVain),
        // Frequent. A replica that is never chosen has a watch that hangs.
        6 => (who(), 1_usize..6).prop_map(|(who, count)| Step::Hear(who, count)),
        2 => who().prop_map(Step::Count),
        1 => who().prop_map(Step::Die),
        1 => Just(Step::Begin),
        4 => (1_u64..3000).prop_map(Step::Pass),
    ]
}

const HARD: u64 = 2000;

/// Returns a publication, as the API server stores it.
fn word(counters: &Counters, version: &str) -> k8s_openapi::api::core::v1::ConfigMap {
    let mut map = counters.config_map("system");
    map.metadata.resource_version = Some(version.to_owned());
    map
}

/// Several gateways, and the API server between them.
struct Several {
    now: Instant,
    replicas: Vec<Replica>,
    words: Vec<k8s_openapi::api::core::v1::ConfigMap>,
    begun: usize,
    /// Bytes stored by replicas that died, and the part of them that those had published.
    dead: (u64, u64),
    /// The overshoot allowed because publications came too late, or never.
    late: u64,
}

impl Several {
    fn new() -> Self {
        let (dead, late) = ((0, 0), 0);
        Self { now: Instant::now(), replicas: Vec::new(), words: Vec::new(), begun: 0, dead, late }
    }

    fn begin(&mut self) {
        self.begun += 1;
        let mut view = View::default();
        self.words.iter().for_each(|word| view.put(word.clone()));
        let (ledger, heard) = (Ledger::new(format!("g{}", self.begun)), self.words.len());
        let replicas = self.replicas.len() as u64 + 1;
        let none = Replica { ledger, view, heard, replicas, waiting: None, stored: 0, told: 0, share: 0 };
        self.replicas.push(none);
    }

    fn take(&mut self, step: &Step) {
        let count = self.replicas.len();
        match *step {
            Step::Begin if count < 5 => self.begin(),
            Step::Pass(millis) => self.now += Duration::from_millis(millis),
            _ if count == 0 => {}
            Step::Begin => {}
            Step::Write(who, length) => self.write(who % count, length),
            Step::GiveUp(who) => self.replicas[who % count].give_up(),
            Step::Tell(who) => self.tell(who % count, true, true),
            Step::TellUnanswered(who) => self.tell(who % count, true, false),
            Step::TellInVain(who) => self.tell(who % count, false, false),
            Step::Hear(who, words) => self.hear(who % count, words),
            Step::Count(who) => self.replicas[who % count].replicas = count as u64,
            Step::Die(who) => {
                let gone = self.replicas.remove(who % count);
                self.dead = (self.dead.0 + gone.stored, self.dead.1 + gone.told);
                self.late += gone.share;
            }
        }
    }

    fn write(&mut self, who: usize, length: u64) {
        let (bucket, now) = (bucket(), self.now);
        let it = &mut self.replicas[who];
        if it.waiting.is_some() {
            return;
        }
        match it.ledger.reserve(&bucket, limits(HARD), length, &it.view, it.replicas, now) {
            Ok(Reserved::Now) => it.store(length),
            Ok(Reserved::OnceTold) => it.waiting = Some(length),
            Err(_) => {}
        }
    }

    fn hear(&mut self, who: usize, words: usize) {
        let it = &mut self.replicas[who];
        for word in self.words.iter().skip(it.heard).take(words) {
            it.view.put(word.clone());
            it.heard += 1;
        }
        let Some(length) = it.waiting else { return };
        match it.ledger.room(&bucket(), HARD, length, &it.view, it.replicas) {
            Ok(Reserved::Now) => {
                it.waiting = None;
                it.store(length);
            }
            Ok(Reserved::OnceTold) => {}
            Err(_) => it.give_up(),
        }
    }

    fn tell(&mut self, who: usize, is_taken: bool, is_answered: bool) {
        let version = self.words.len().to_string();
        let it = &mut self.replicas[who];
        let Some(counters) = it.ledger.due(&it.view, self.now) else { return };
        it.ledger.saying(&counters, &it.view, self.now);
        if !is_taken {
            it.ledger.unsaid(&counters);
            return;
        }
        if is_answered {
            it.ledger.said(&counters, &version);
        } else {
            it.ledger.unsaid(&counters);
        }
        it.told = counters.of.values().map(|figures| figures.total()).sum();
        let share = std::mem::take(&mut it.share);
        self.words.push(word(&counters, &version));
        let told: u64 = self.replicas.iter().map(|it| it.told).sum();
        if told + self.dead.1 > HARD {
            self.late += share;
        }
    }

    fn stored(&self) -> u64 {
        self.replicas.iter().map(|it| it.stored).sum::<u64>() + self.dead.0
    }

    fn bound(&self) -> u64 {
        HARD + self.late + self.replicas.iter().map(|it| it.share).sum::<u64>()
    }
}

impl Replica {
    fn give_up(&mut self) {
        if let Some(length) = self.waiting.take() {
            self.ledger.release(&bucket(), length);
        }
    }

    fn store(&mut self, length: u64) {
        let Reach { untold, head, .. } = self.ledger.reach(&bucket(), HARD, &self.view);
        if untold > 0 {
            self.share = self.share.max(head / (2 * self.replicas));
        }
        self.ledger.commit(&bucket(), length);
        self.stored += length;
    }
}

proptest! {
    // covers: 6.quota.hard, 6.quota.counted
    /// The known usage never exceeds the limit, and is the sum of all events.
    #[test]
    fn a_ledger_holds_what_was_admitted(
        hard in 0_u64..1000,
        steps in prop::collection::vec((0_u64..200, 0_u8..3, 0_u64..2000), 1..60),
    ) {
        let (bucket, mut view, mut now) = (bucket(), View::default(), Instant::now());
        let mut ledger = Ledger::new("a".to_owned());
        let (mut naive, mut written) = (0, 0);
        for (length, fate, later) in steps {
            now += Duration::from_secs(later);
            let mut reserved = ledger.reserve(&bucket, limits(hard), length, &view, 1, now);
            if reserved == Ok(Reserved::OnceTold) {
                now += AWAITED;
                let counters = ledger.due(&view, now).expect("somebody waits");
                ledger.saying(&counters, &view, now);
                ledger.said(&counters, "1");
                view.put(word(&counters, "1"));
                reserved = ledger.room(&bucket, hard, length, &view, 1);
                prop_assert_eq!(reserved, Ok(Reserved::Now), "it was told");
            }
            prop_assert_eq!(reserved.is_ok(), naive + length <= hard);
            if reserved.is_ok() {
                match fate {
                    0 => ledger.release(&bucket, length),
                    1 => {
                        ledger.commit(&bucket, length);
                        naive += length;
                    }
                    _ => {
                        ledger.doubt(&bucket, length, now);
                        naive += length;
                    }
                }
            }
            prop_assert_eq!(ledger.used(&bucket, &view), naive);
            prop_assert!(naive <= hard && ledger.figures(&bucket).written >= written);
            written = ledger.figures(&bucket).written;
        }
    }

    // covers: 6.quota.bound, 6.quota.alone
    /// Replicas that start, die and receive publications late or never together exceed a limit by
    /// no more than the bytes that they had admitted before they could know that it is reached.
    #[test]
    fn replicas_pass_a_limit_by_no_more_than_their_shares(steps in prop::collection::vec(step(), 50..400)) {
        let mut several = Several::new();
        several.begin();
        several.begin();
        for (at, step) in steps.iter().enumerate() {
            several.take(step);
            let (stored, bound) = (several.stored(), several.bound());
            prop_assert!(stored <= bound, "{stored} of {bound} after step {at}, {step:?}");
        }
    }

    /// If every replica receives everything within a second, a limit is exceeded by no more than a
    /// twentieth of the largest write for each of the others; and no write waits for long.
    #[test]
    fn replicas_that_hear_each_other_in_time_hold_the_limit(
        count in 1_usize..6,
        writes in prop::collection::vec((0_usize..5, 1_u64..120), 50..200),
    ) {
        let mut several = Several::new();
        (0..count).for_each(|_| several.begin());
        several.replicas.iter_mut().for_each(|it| it.replicas = count as u64);
        for (who, length) in writes {
            several.take(&Step::Write(who, length));
            several.take(&Step::Pass(1000));
            (0..count).for_each(|who| several.take(&Step::Tell(who)));
            (0..count).for_each(|who| several.take(&Step::Hear(who, usize::MAX)));
            let bound = HARD + (count as u64 - 1) * 120 / 20;
            prop_assert!(several.stored() <= bound, "{} of {bound}", several.stored());
            prop_assert!(several.replicas.iter().all(|it| it.waiting.is_none()));
        }
    }
}

#[test]
fn a_count_that_begins_again_begins_above_the_one_before() {
    let (bucket, view, now) = (bucket(), View::default(), Instant::now());
    let mut ledger = Ledger::new("a".to_owned());
    ledger.reserve(&bucket, limits(100), 50, &view, 1, now).expect("there is room");
    ledger.commit(&bucket, 50);
    ledger.keep(|_| false, now + REMEMBERED + Duration::from_secs(1));
    assert_eq!(ledger.figures(&bucket), Figures::default());
    ledger.reserve(&bucket, limits(100), 5, &view, 1, now).expect("there is room");
    assert_eq!(ledger.figures(&bucket), Figures { base: 50, written: 50, open: 5, removals: 0 });
}

#[test]
fn what_may_turn_up_late_is_not_seen_by_a_scan() {
    let (bucket, view, now) = (bucket(), View::default(), Instant::now());
    let mut ledger = Ledger::new("a".to_owned());
    ledger.reserve(&bucket, limits(100), 7, &view, 1, now).expect("there is room");
    ledger.doubt(&bucket, 7, now);
    ledger.keep(|_| true, now + DOUBT - Duration::from_secs(1));
    assert_eq!(ledger.figures(&bucket).written, 0);
    ledger.keep(|_| true, now + DOUBT);
    ledger.keep(|_| true, now + DOUBT + DOUBT);
    assert_eq!((ledger.figures(&bucket).written, ledger.figures(&bucket).open), (7, 0));
}

#[test]
fn who_asks_again_waits_no_longer_than_the_watch_is_late() {
    let (bucket, mut view, begin) = (bucket(), View::default(), Instant::now());
    let mut ledger = Ledger::new("a".to_owned());
    let reserve = |ledger: &mut Ledger, view: &View, now| ledger.reserve(&bucket, limits(200), 150, view, 1, now);
    assert_eq!(reserve(&mut ledger, &view, begin), Ok(Reserved::OnceTold));
    let said = ledger.due(&view, begin).expect("a word");
    ledger.saying(&said, &view, begin);
    ledger.said(&said, "1");
    // It is given up and requested again while its first publication is on its way.
    let later = begin + AGAIN;
    ledger.release(&bucket, 150);
    assert_eq!(ledger.due(&view, later), Some(said.clone()), "what is under way is said again");
    assert_eq!(reserve(&mut ledger, &view, later), Ok(Reserved::OnceTold));
    view.put(word(&said, "1"));
    assert_eq!(ledger.room(&bucket, 200, 150, &view, 1), Ok(Reserved::Now));
    // If it is given up for good, that is published, too.
    ledger.release(&bucket, 150);
    let last = ledger.due(&view, later + OFTEN + SELDOM).expect("a word");
    assert_eq!(last.of[&bucket], Figures::default());
}

/// Publishes all that is due, as the API server stores it. Returns the number of ConfigMaps.
fn tell_all(ledger: &mut Ledger, view: &mut View, now: Instant) -> usize {
    let mut told = 0;
    while let Some(counters) = ledger.due(view, now) {
        told += 1;
        assert!(told < 100, "it comes to an end");
        ledger.saying(&counters, view, now);
        let mut map = counters.config_map("system");
        let version = format!("{told}-{now:?}");
        map.metadata.resource_version = Some(version.clone());
        view.put(map);
        ledger.said(&counters, &version);
    }
    told
}

// covers: 6.quota.exchange
#[test]
fn what_one_bucket_has_to_tell_is_one_write_beside_a_thousand_others() {
    let (mut ledger, mut view) = (Ledger::new("me".to_owned()), View::default());
    let begin = Instant::now();
    let name = |number: usize| RecordName::parse(&format!("br-{number:040x}")).expect("a name");
    let store = |ledger: &mut Ledger, view: &View, number: usize| {
        ledger.reserve(&name(number), limits(1 << 40), 10, view, 1, begin).expect("there is room");
        ledger.commit(&name(number), 10);
    };
    for number in 0..1000 {
        store(&mut ledger, &view, number);
    }
    assert_eq!(tell_all(&mut ledger, &mut view, begin + SELDOM), 4, "a ConfigMap has room for 256");
    store(&mut ledger, &view, 500);
    assert_eq!(tell_all(&mut ledger, &mut view, begin + 2 * SELDOM), 1);
}
