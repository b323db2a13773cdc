//! Drawings of a report: schedules that are replayed to be drawn.

use stowage_world::effects::{GatewayPlan, Plan};

use super::{CampaignReport, KeyChart};
use crate::explorer::run::run;
use crate::explorer::scenario::ScenarioPhase;
use crate::explorer::scenarios;
use crate::explorer::schedule::Schedule;
use crate::explorer::timeline::Timeline;

/// Number of failures whose timelines are shown; further ones have only their lines.
const MOST_TIMELINES: usize = 20;

/// Drawings for a report.
#[derive(Clone, Debug, Default)]
pub struct Drawings {
    /// Charts of keys and tenants, by the name of a scenario that rotates keys; from its fault-free
    /// run.
    pub charts: Vec<(String, KeyChart)>,
    /// Timelines of failures, by the line of the failure; of the shrunk schedule if there is one.
    pub timelines: Vec<(String, Timeline)>,
}

impl Drawings {
    /// Plays the schedules to be drawn. Scenarios and faults that only another build knows are left
    /// out.
    pub fn play(report: &CampaignReport) -> Self {
        let rotations = report.scenarios.iter().filter(|(_, row)| row.phase == ScenarioPhase::Rotate);
        let charts = rotations.filter_map(|(name, _)| {
            let scenario = scenarios::named(name)?;
            let outcome =
                run(&Schedule { scenario, seed: report.seed, plan: Plan::default(), gateway: GatewayPlan::default() });
            Some((name.clone(), KeyChart::of(&outcome.history)?))
        });
        let timelines = report.failures.iter().take(MOST_TIMELINES).filter_map(|failure| {
            let schedule: Schedule = failure.shrunk.as_ref().unwrap_or(&failure.line).parse().ok()?;
            Some((failure.line.clone(), Timeline::of(&schedule, &run(&schedule))))
        });
        Self { charts: charts.collect(), timelines: timelines.collect() }
    }
}
