//! The command that replays a scenario's plan in the simulator.

use stowage_proof::explorer::{Schedule, run};
use stowage_testbed::fault_proxy::Play;
use stowage_world::effects::{EffectPattern, Line, Plan};

/// Seed of a replayed schedule. No random numbers are used, so any seed will do.
const SEED: u64 = 1;

/// Returns the command that plays a plan in the simulator, or a message that none does.
pub(crate) fn command(play: &Play) -> String {
    let scenario = play.like.and_then(|name| format!("{name} {SEED}").parse::<Schedule>().ok());
    let Some(scenario) = scenario else {
        return format!("the simulator has no scenario with these steps; the plan was '{}'", play.plan);
    };
    let mut plan = play.plan.clone();
    if play.from_here {
        count_from_first_call(&mut plan, &scenario);
    }
    format!("stowage-proof replay '{}'", Schedule { plan, ..scenario })
}

/// Adds the calls before the point at which faults may begin: the simulator's patterns count those
/// too.
fn count_from_first_call(plan: &mut Plan, scenario: &Schedule) {
    let undisturbed = run(scenario);
    let lines = undisturbed.history.trace.lines();
    let before: Vec<&Line> = lines.iter().filter(|line| line.number <= undisturbed.before).collect();
    for entry in &mut plan.entries {
        if let EffectPattern::Call { call, occurrence: Some(occurrence) } = &mut entry.effect {
            let matched = before.iter().filter(|line| call.matches(&line.call)).count();
            *occurrence = occurrence.saturating_add(matched as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_replays_a_plan_is_a_line_that_the_simulator_reads() {
        let plan: Plan = "s3:CreateBucket@1 lost-answer; #17 crash(before)".parse().unwrap();
        let command = command(&Play { plan: plan.clone(), like: Some("create"), from_here: true });
        let line = command.strip_prefix("stowage-proof replay '").and_then(|line| line.strip_suffix('\'')).unwrap();
        let schedule: Schedule = line.parse().unwrap();
        assert_eq!((schedule.scenario.name, schedule.plan), ("create", plan));
    }

    /// A rotation patches record, consumer Secret and old key. In the simulator the record was
    /// patched once before that.
    #[test]
    fn what_counts_from_here_is_counted_from_the_first_call_there() {
        let plan: Plan = "kube:patch secrets@3 crash(before); s3:CreateBucket lost-answer".parse().unwrap();
        let told = command(&Play { plan, like: Some("rotate"), from_here: true });
        let expected =
            "stowage-proof replay 'rotate 1 kube:patch secrets@4 crash(before); s3:CreateBucket lost-answer'";
        assert_eq!(told, expected);
    }

    #[test]
    fn where_no_scenario_is_alike_that_is_said() {
        let plan: Plan = "#1 hang".parse().unwrap();
        let told = command(&Play { plan, ..Play::default() });
        assert_eq!(told, "the simulator has no scenario with these steps; the plan was '#1 hang'");
    }
}
