//! The scope of a campaign: its scenarios, and the extent of the exploration.

use std::time::Duration;

use explore::Shard;
use serde::{Deserialize, Serialize};

use crate::explorer::scenario::Scenario;
use crate::explorer::scenarios;
use crate::explorer::schedule::Schedule;
use crate::explorer::transcript::Detail;

/// The settings of a campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The scenarios, in the order in which they are explored.
    pub scenarios: Vec<&'static Scenario>,
    /// The extent of the exploration.
    pub profile: Profile,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Number of schedules that run at once, each on its own thread; at least 1.
    pub jobs: usize,
    /// Time after which no schedule is started.
    pub time_limit: Option<Duration>,
    /// The part of the schedules to run.
    pub shard: Shard,
    /// True to stop at the first failure.
    pub fail_fast: bool,
    /// The order of single faults.
    pub order: Order,
    /// Number of random plans of three faults to run; the default of the profile if absent.
    pub random: Option<usize>,
    /// The hash to keep of each schedule, if any.
    pub hashes: Option<Detail>,
}

impl Campaign {
    /// Returns a schedule's line as it is printed after its hash. If only behaviour counts, the
    /// scenario's number replaces its name.
    pub(super) fn schedule_line(&self, schedule: &Schedule) -> String {
        let line = schedule.to_string();
        let (Some(Detail::Behaviour), Some(rest)) = (self.hashes, line.strip_prefix(schedule.scenario.name)) else {
            return line;
        };
        let number = scenarios::ALL.iter().position(|it| it.name == schedule.scenario.name);
        format!("{}{rest}", number.unwrap_or_default())
    }
}

/// Order of the single faults of several scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Scenario by scenario, and fault by fault.
    Listed,
    /// Random order, from the seed: a bug that breaks a promise in many places is found soon.
    Shuffled,
}

/// Extent of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Every fault once in every phase, in two minutes.
    Quick,
    /// Every single fault and crash at every call of every scenario.
    Singles,
    /// Like `singles`, with lasting faults, overtaken calls, and some random triples.
    Default,
    /// Like `default`, with pairs except independent ones, and many random triples.
    Deep,
}
