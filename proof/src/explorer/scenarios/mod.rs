//! All scenarios.

mod accesses;
mod basic;
mod elections;
mod names;
mod namespaced;
mod notes;
mod obc;
mod operators;
mod orphans;
mod recovery;
mod removal;
mod requests;
mod rotation;
mod stores;
mod stuck;
mod words;

use super::scenario::Scenario;

/// All scenarios, in the order in which they are explored.
pub static ALL: &[&Scenario] = &[
    &basic::CREATE,
    &names::CONFLICT,
    &names::RACE,
    &names::SHARED_SECRET,
    &basic::ADOPT,
    &names::ADOPT_OWNED,
    &names::ADOPT_NEVER,
    &names::ADOPT_NEVER_EMPTY,
    &names::ADOPT_ELSEWHERE,
    &names::ADOPT_LURED,
    &basic::ROTATE,
    &rotation::BY_TIME,
    &rotation::SPAMMED,
    &rotation::WITHOUT_OVERLAP,
    &rotation::OVERLAPPING,
    &rotation::REVOKED,
    &rotation::REVOKED_IN_ROTATION,
    &notes::REVOKED,
    &operators::RESTART,
    &operators::TEN_YEARS,
    &operators::VERSIONS,
    &rotation::ANONYMOUS,
    &names::ANY_ORDER,
    &basic::QUOTA,
    &basic::QUOTA_TAKEN,
    &basic::RENAME,
    &stores::MOVE,
    &stores::MOVE_PUBLIC,
    &stores::ENDPOINT,
    &removal::DELETE,
    &removal::DELETE_PUBLIC,
    &removal::DELETE_EMPTY,
    &removal::DELETE_FORCED,
    &notes::DELETED,
    &removal::PURGE_SLICES,
    &removal::DELETE_FULL,
    &removal::DELETE_LOCKED,
    &removal::WITHOUT_TAGGING,
    &removal::MISSING_UNTAGGED,
    &stuck::DELETE_PAUSED,
    &stuck::DELETE_WAITING,
    &stuck::DELETE_REFUSED,
    &stuck::DELETE_NOT_ALLOWED,
    &stuck::DELETE_LOST,
    &recovery::BACKEND_FIRST,
    &recovery::NAMESPACE_GONE,
    &recovery::RESTORE,
    &recovery::BURST,
    &operators::MANY_KEYS,
    &operators::FIRST_SERVED,
    &operators::TWO_OPERATORS,
    &operators::TWO_AT_REST,
    &operators::SLOW_TWINS,
    &elections::ELECTED,
    &elections::LEASE_DELETED,
    &recovery::OLDER_VERSION,
    &recovery::OLDER_PAUSED,
    &recovery::NOT_ALLOWED,
    &recovery::SECRET_TAKEN,
    &recovery::BUCKET_LOST,
    &recovery::PAUSED,
    &stores::ADMIN_KEY,
    &stores::STOLEN_ENDPOINT,
    &stores::ANOTHER_STORE,
    &stores::HANGING_STORE,
    &removal::PURGE_VERSIONS,
    &orphans::ORPHANS,
    &namespaced::NAMESPACED,
    &requests::OBJECTS,
    &requests::OBJECTS_PUBLIC,
    &requests::OBJECTS_QUOTA,
    &requests::TWO_GATEWAYS,
    &accesses::MADE,
    &accesses::WITHDRAWN,
    &accesses::DELETED_UNDER,
    &accesses::REMOVED,
    &accesses::NARROWED,
    &accesses::REVOKED,
    &notes::LEFT_BEHIND,
    &obc::MADE,
    &obc::EDITED,
    &obc::DELETED,
    &obc::RETAINED,
    &obc::BROWNFIELD,
];

/// Returns the scenario of this name.
pub fn named(name: &str) -> Option<&'static Scenario> {
    ALL.iter().copied().find(|scenario| scenario.name == name)
}

/// Returns the names of all scenarios.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|scenario| scenario.name).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use stowage_world::effects::{GatewayPlan, Plan};
    use stowage_world::scenes::Scene;
    use stowage_world::scenes::names::taken_over;
    use stowage_world::scenes::removal::edited;

    use super::super::run;
    use super::super::scenario::{ScenarioPhase, WorldStep};
    use super::super::schedule::Schedule;
    use super::words::{no_other, played, usual};
    use super::*;

    const fn of(scene: &Scene<WorldStep>) -> Scenario {
        Scenario {
            name: "scene",
            about: scene.about,
            phase: ScenarioPhase::Edit,
            world: usual,
            script: Vec::new,
            goal: scene.goal,
            otherwise: no_other,
            ends_alike: true,
            check: scene.check,
        }
    }

    static TAKEN_OVER: Scenario = Scenario { script: || played(&taken_over()), ..of(&taken_over()) };
    static EDITED: Scenario = Scenario { script: || played(&edited()), ..of(&edited()) };

    #[rstest]
    #[case::taken_over(&TAKEN_OVER)]
    #[case::edited(&EDITED)]
    fn a_scene_that_no_campaign_plays_comes_to_its_goal(#[case] scenario: &'static Scenario) {
        let schedule = Schedule { scenario, seed: 1, plan: Plan::default(), gateway: GatewayPlan::default() };
        assert_eq!(run(&schedule).violations, []);
    }
}
