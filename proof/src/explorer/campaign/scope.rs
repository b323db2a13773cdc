//! The scope of a campaign: what is to be explored, and how much of it.

use std::time::Duration;

use explore::Shard;
use serde::{Deserialize, Serialize};

use crate::explorer::scenario::Scenario;
use crate::explorer::scenarios;
use crate::explorer::schedule::Schedule;
use crate::explorer::transcript::Detail;

/// What is to be explored.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The scenarios, in the order in which they are explored.
    pub scenarios: Vec<&'static Scenario>,
    /// How much.
    pub profile: Profile,
    /// What everything that is drawn is drawn from.
    pub seed: u64,
    /// Schedules that run at once, each on a thread of its own; at least 1.
    pub jobs: usize,
    /// No schedule is begun after this.
    pub time_limit: Option<Duration>,
    /// Which part of the schedules is run.
    pub shard: Shard,
    /// Whether to stop at the first failure.
    pub fail_fast: bool,
    /// In which order single faults come.
    pub order: Order,
    /// How many random plans of three faults to run; as many as the profile says if absent.
    pub random: Option<usize>,
    /// The hash to keep of each schedule, if any.
    pub hashes: Option<Detail>,
}

impl Campaign {
    /// A schedule as it stands behind its hash. Where only behaviour counts, the scenario has its
    /// number in place of its name.
    pub(super) fn schedule_line(&self, schedule: &Schedule) -> String {
        let line = schedule.to_string();
        let (Some(Detail::Behaviour), Some(rest)) = (self.hashes, line.strip_prefix(schedule.scenario.name)) else {
            return line;
        };
        let number = scenarios::ALL.iter().position(|it| it.name == schedule.scenario.name);
        format!("{}{rest}", number.unwrap_or_default())
    }
}

/// In which order the single faults of several scenarios come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One scenario after the other, one fault after the other.
    Listed,
    /// Drawn from the seed: whatever breaks a promise in many places is met soon.
    Shuffled,
}

/// How much is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Every fault in every phase once, in two minutes.
    Quick,
    /// Every single fault and crash at every effect of every scenario.
    Singles,
    /// The same, faults that last, calls that are overtaken, some random triples.
    Default,
    /// Pairs as well, but for those that are independent, and many random triples.
    Deep,
}
