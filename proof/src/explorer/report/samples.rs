//! A small handwritten report, for tests.

use std::collections::{BTreeMap, BTreeSet};

use crate::explorer::scenario::{Scenario, ScenarioPhase};
use crate::explorer::{Profile, Shard, scenarios};

use super::{CampaignReport, Failure, ScenarioCoverage, Slow};

/// The line of the failure.
pub(super) const LINE: &str = "rotate 1 #17 crash(before); kube:patch secrets@2 lost-answer";

/// Returns the report of the first of two shards, with one failure and with characters that are
/// special in HTML and XML.
pub(super) fn report() -> CampaignReport {
    let failure = Failure {
        line: LINE.to_owned(),
        promise: "I6".to_owned(),
        message: "key <b>#1</b> & its \"friend\" were refused".to_owned(),
        shrunk: Some("rotate 1 #17 crash(before)".to_owned()),
    };
    CampaignReport {
        schedules: 700,
        seconds: 2.5,
        jobs: 2,
        job_seconds: 5.0,
        cpu: "Test CPU <fast>".to_owned(),
        profile: Profile::Default,
        seed: 1,
        build: "0123456789abcdef".to_owned(),
        shard: Shard { index: 0, of: 2 },
        complete: true,
        numbered: 1400,
        scenarios: BTreeMap::from([
            ("create".to_owned(), scenario("a claim comes to be bound", ScenarioPhase::Create, 300, &["conflict"])),
            (
                "rotate".to_owned(),
                scenario("a key is replaced", ScenarioPhase::Rotate, 400, &["conflict", "lost-answer"]),
            ),
        ]),
        judged: BTreeMap::from([("I1", 700), ("I6", 700)].map(|(name, count)| (name.to_owned(), count))),
        limited: BTreeMap::from([("I1".to_owned(), 4)]),
        reasons: BTreeSet::from(["Bound", "BackendError"].map(str::to_owned)),
        failures: vec![failure],
        hashes: BTreeMap::new(),
    }
}

/// Returns the report of a campaign that ended before its first schedule.
pub(super) fn nothing() -> CampaignReport {
    let (judged, limited) = (BTreeMap::new(), BTreeMap::new());
    let (scenarios, reasons) = (BTreeMap::new(), BTreeSet::new());
    CampaignReport {
        schedules: 0,
        complete: false,
        failures: Vec::new(),
        scenarios,
        judged,
        limited,
        reasons,
        ..report()
    }
}

/// Returns a report of a complete campaign: no promise was broken, and almost nothing was met.
pub(super) fn gaps() -> CampaignReport {
    let row = |it: &&Scenario| (it.name.to_owned(), scenario(it.about, it.phase, 10, &["conflict"]));
    let scenarios = scenarios::ALL.iter().map(row).collect();
    CampaignReport { shard: Shard::WHOLE, failures: Vec::new(), scenarios, ..report() }
}

fn scenario(about: &str, phase: ScenarioPhase, schedules: u64, faults: &[&str]) -> ScenarioCoverage {
    let slow = |seconds| Some(Slow { line: format!("{phase} 1 #3 hang"), seconds });
    ScenarioCoverage {
        about: about.to_owned(),
        phase,
        hash: "abc".to_owned(),
        schedules,
        effects: 30,
        crash_points: 45,
        crash_points_expected: 90,
        limits: 2,
        unmet: 0,
        faults: faults.iter().map(|fault| ((*fault).to_owned(), 30)).collect(),
        slowest: slow(0.125),
        longest: slow(905.0),
    }
}
