//! What a report shows besides its figures: schedules that are played again to be drawn.

use stowage_world::effects::{GatewayPlan, Plan};

use super::{CampaignReport, KeyChart};
use crate::explorer::run::run;
use crate::explorer::scenario::ScenarioPhase;
use crate::explorer::scenarios;
use crate::explorer::schedule::Schedule;
use crate::explorer::timeline::Timeline;

/// Failures whose timelines are shown; the others have their lines.
const MOST_TIMELINES: usize = 20;

/// Drawings for a report.
#[derive(Clone, Debug, Default)]
pub struct Drawings {
    /// Keys and tenants of the scenarios that rotate keys, without faults: name and chart.
    pub charts: Vec<(String, KeyChart)>,
    /// Timelines of failures, of the smaller schedule where there is one, by the line of the
    /// failure.
    pub timelines: Vec<(String, Timeline)>,
}

impl Drawings {
    /// Plays what is to be drawn. What another build has explored and this one doesn't know is left
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
