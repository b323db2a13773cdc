//! The heat table: the number of times that each fault met a call, by scenario, grouped by the
//! phase of the scenario.

use maud::{Markup, html};

use crate::explorer::report::{CampaignReport, ScenarioCoverage};
use crate::explorer::scenario::ScenarioPhase;

/// Number of heat levels; level 0 means none at all.
const STEPS: u32 = 5;

/// Renders the table of faults by scenarios, with counts.
pub(super) fn table(report: &CampaignReport) -> Markup {
    let mut columns: Vec<(&String, &ScenarioCoverage)> = report.scenarios.iter().collect();
    columns.sort_by_key(|(name, row)| (row.phase, name.as_str()));
    let mut faults: Vec<&str> = report.cells_expected().into_iter().map(|(fault, _)| fault).collect();
    faults.dedup();
    let count = |row: &ScenarioCoverage, fault: &str| row.faults.get(fault).copied().unwrap_or_default();
    let most = columns.iter().flat_map(|(_, row)| row.faults.values()).max().copied().unwrap_or_default();
    html! {
        section id="heat" {
            h2 { "Faults met" }
            p { "In how many schedules a fault met a call, for each scenario and phase. Empty: it never did." }
            div.wide { table.heat {
                thead {
                    tr { th { "phase" } @for (phase, span) in phases(&columns) { th.phase colspan=(span) { (phase) } } }
                    tr { th { "fault" } @for (name, _) in &columns { th.turned { span { (name) } } } }
                }
                tbody { @for fault in faults { tr {
                    th { code { (fault) } }
                    @for (name, row) in &columns {
                        @let count = count(row, fault);
                        @let heat = heat(count, most);
                        td class=(format!("h{heat}")) title=(format!("{fault} in {name}: {count}")) {
                            @if count > 0 { (count) }
                        }
                    }
                } } }
            } }
        }
    }
}

/// Returns each phase with the number of its columns.
fn phases(columns: &[(&String, &ScenarioCoverage)]) -> Vec<(ScenarioPhase, usize)> {
    let mut phases: Vec<(ScenarioPhase, usize)> = Vec::new();
    for (_, row) in columns {
        match phases.last_mut() {
            Some((phase, span)) if *phase == row.phase => *span += 1,
            _ => phases.push((row.phase, 1)),
        }
    }
    phases
}

/// Returns the heat level of a count, by its logarithm: the step from zero to one is larger than
/// that from two to a thousand.
fn heat(count: u64, most: u64) -> u32 {
    if count == 0 {
        return 0;
    }
    let part = ((count + 1) as f64).ln() / ((most + 1) as f64).ln();
    ((part * f64::from(STEPS)).ceil() as u32).clamp(1, STEPS)
}

#[cfg(test)]
mod tests {
    use super::super::super::samples;
    use super::*;

    #[test]
    fn the_table_counts_faults_by_scenario_under_its_phase() {
        let table = table(&samples::report()).into_string();
        assert!(table.contains("title=\"lost-answer in rotate: 30\">30</td>"), "{table}");
        assert!(table.contains("<td class=\"h0\" title=\"lost-answer in create: 0\"></td>"), "{table}");
        assert!(table.contains("<th class=\"phase\" colspan=\"1\">rotate</th>"), "{table}");
        assert!(table.contains("<code>usurp</code>"), "faults that were never met have a row too");
    }

    #[test]
    fn heat_rises_with_the_count() {
        let steps = [0, 1, 10, 100, 1000].map(|count| heat(count, 1000));
        assert_eq!(steps[0], 0);
        assert_eq!(steps[4], STEPS);
        assert!(steps.is_sorted() && steps[1] > 0, "{steps:?}");
    }
}
