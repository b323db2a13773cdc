//! Required coverage of an exploration: every possible cell, which is a pair of a fault and a phase
//! of a claim's life, and every reason of a claim's `Ready` condition.

use stowage_operator::api::Reason;

use super::scenario::ScenarioPhase;

/// The reasons of a claim's `Ready` condition (spec §1). Some schedule has to reach each.
pub const REASONS: [Reason; 15] = [
    Reason::Bound,
    Reason::BackendNotReady,
    Reason::BackendNotAllowed,
    Reason::TemplateInvalid,
    Reason::BucketNameConflict,
    Reason::BucketExists,
    Reason::BucketMissing,
    Reason::SecretConflict,
    Reason::CreationInconsistent,
    Reason::ServedByAnother,
    Reason::BackendError,
    Reason::BucketNotEmpty,
    Reason::Purging,
    Reason::DeletionBlocked,
    Reason::Paused,
];

/// Returns the reason why no call of a phase can meet a fault of this name; `None` if one can.
pub fn why_never(fault: &str, phase: ScenarioPhase) -> Option<&'static str> {
    use ScenarioPhase::{Adopt, Create, Edit, Purge, Recover, Rotate};
    match (fault, phase) {
        ("already-owned" | "bucket-exists" | "ok-on-existing", Adopt) => Some("the bucket is there: none is created"),
        ("late-write", Adopt | Recover | Rotate) => Some("nothing is emptied, and no bucket looked into"),
        ("expired-continue" | "rewind" | "shuffle", Purge) => Some("a deletion goes by name: nothing is listed"),
        ("locked" | "partial-delete", Adopt | Create | Edit | Recover | Rotate) => Some("no object is deleted"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use stowage_world::effects::Fault;

    use super::*;

    #[test]
    fn what_is_never_met_are_faults_that_there_are() {
        let of_phase = |phase| {
            let all = Fault::all_single();
            all.into_iter().filter(|fault| why_never(fault.kind(), phase).is_some()).count()
        };
        assert_eq!(of_phase(ScenarioPhase::Adopt), 6);
        assert_eq!(of_phase(ScenarioPhase::Create), 2);
        assert_eq!((of_phase(ScenarioPhase::Delete), of_phase(ScenarioPhase::Purge)), (0, 3));
    }
}
