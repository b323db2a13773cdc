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

const ALONE: Standing = Standing { replicas: 1, is_fresh: true };

proptest! {
    // covers: 6.quota.hard, 6.quota.counted
    /// What is known never passes the limit, and is what a list of all that happened adds up to.
    #[test]
    fn a_ledger_holds_what_was_admitted(
        hard in 0_u64..1000,
        steps in prop::collection::vec((0_u64..200, 0_u8..3, 0_u64..2000), 1..60),
    ) {
        let (bucket, view, mut now) = (bucket(), View::default(), Instant::now());
        let mut ledger = Ledger::new("a".to_owned());
        let (mut naive, mut written) = (0, 0);
        for (length, fate, later) in steps {
            now += Duration::from_secs(later);
            let reserved = ledger.reserve(&bucket, limits(hard), length, &view, ALONE, now);
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
    /// Replicas whose words come late, some of them cut off: together they pass the limit by what
    /// the others take while they don't hear of each other, and no more.
    #[test]
    fn replicas_pass_a_limit_by_no_more_than_they_have_not_heard(
        replicas in 2_usize..5,
        lag in 0_u64..20,
        is_cut in any::<bool>(),
        writes in prop::collection::vec((0_usize..5, 1_u64..40), 50..400),
    ) {
        const HARD: u64 = 2000;
        let (bucket, begin) = (bucket(), Instant::now());
        let mut ledgers: Vec<Ledger> = (0..replicas).map(|at| Ledger::new(at.to_string())).collect();
        let mut views: Vec<View> = (0..replicas).map(|_| View::default()).collect();
        let mut waiting: Vec<Option<u64>> = vec![None; replicas];
        let mut stored = 0;
        // What each one has stored lately: who, when, how much.
        let mut lately: Vec<(usize, u64, u64)> = Vec::new();
        let mut on_the_way: Vec<(u64, k8s_openapi::api::core::v1::ConfigMap)> = Vec::new();
        for (second, (who, length)) in writes.into_iter().enumerate() {
            let (second, who) = (second as u64, who % replicas);
            let now = begin + Duration::from_secs(second);
            let standing = Standing { replicas: replicas as u64, is_fresh: !is_cut };
            let ledger = &mut ledgers[who];
            if let Some(length) = waiting[who] {
                let room = ledger.room(&bucket, HARD, &views[who], standing);
                if room == Ok(Reserved::Now) {
                    ledger.commit(&bucket, length);
                    (waiting[who], stored) = (None, stored + length);
                    lately.push((who, second, length));
                }
            } else {
                match ledger.reserve(&bucket, limits(HARD), length, &views[who], standing, now) {
                    Ok(Reserved::Now) => {
                        ledger.commit(&bucket, length);
                        stored += length;
                        lately.push((who, second, length));
                    }
                    Ok(Reserved::OnceTold) => waiting[who] = Some(length),
                    Err(_) => {}
                }
            }
            for (at, ledger) in ledgers.iter_mut().enumerate().filter(|_| !is_cut) {
                if let Some(counters) = ledger.due(&views[at], now) {
                    ledger.said(&counters, now);
                    on_the_way.push((second + lag, counters.config_map("system")));
                }
            }
            on_the_way.retain(|(due, map)| {
                let is_here = *due <= second;
                if is_here {
                    views.iter_mut().for_each(|view| view.put(map.clone()));
                }
                !is_here
            });
            // Whoever stores something knows all that is older than this.
            let unheard = OFTEN.as_secs() + 2 * lag + 2;
            let is_recent = |(other, at, _): &&(usize, u64, u64)| *other != who && at + unheard >= second;
            let recent: u64 = lately.iter().filter(is_recent).map(|(_, _, length)| length).sum();
            if lately.last().is_some_and(|(_, at, _)| *at == second) {
                let bound = if is_cut { HARD } else { HARD + recent };
                prop_assert!(stored <= bound, "{stored} of {bound} after {second} s");
            }
        }
    }
}

#[test]
fn a_count_that_begins_again_begins_above_the_one_before() {
    let (bucket, view, now) = (bucket(), View::default(), Instant::now());
    let mut ledger = Ledger::new("a".to_owned());
    ledger.reserve(&bucket, limits(100), 70, &view, ALONE, now).expect("there is room");
    ledger.commit(&bucket, 70);
    ledger.keep(|_| false, now + REMEMBERED + Duration::from_secs(1));
    assert_eq!(ledger.figures(&bucket), Figures::default());
    ledger.reserve(&bucket, limits(100), 5, &view, ALONE, now).expect("there is room");
    assert_eq!(ledger.figures(&bucket), Figures { base: 70, written: 70, open: 5, removals: 0 });
}

#[test]
fn what_may_turn_up_late_is_not_seen_by_a_scan() {
    let (bucket, view, now) = (bucket(), View::default(), Instant::now());
    let mut ledger = Ledger::new("a".to_owned());
    ledger.reserve(&bucket, limits(100), 7, &view, ALONE, now).expect("there is room");
    ledger.doubt(&bucket, 7, now);
    ledger.keep(|_| true, now + DOUBT - Duration::from_secs(1));
    assert_eq!(ledger.figures(&bucket).written, 0);
    ledger.keep(|_| true, now + DOUBT);
    ledger.keep(|_| true, now + DOUBT + DOUBT);
    assert_eq!((ledger.figures(&bucket).written, ledger.figures(&bucket).open), (7, 0));
}
