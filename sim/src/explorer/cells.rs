//! Cells: pairs of a fault and a phase of a claim's life. Every one that there can be has to be met by some schedule.

use super::scenario::Phase;

/// Why no call of a phase can meet a fault of this name; `None` where one can.
pub fn why_never(fault: &str, phase: Phase) -> Option<&'static str> {
    use Phase::{Adopt, Create, Edit, Recover, Rotate};
    match (fault, phase) {
        ("already-owned" | "ok-on-existing", Adopt) => Some("the bucket is there: none is created"),
        ("already-owned" | "ok-on-existing", Rotate) => Some("no bucket is created for a new key"),
        ("late-write", Adopt | Recover | Rotate) => Some("nothing is emptied, and no bucket looked into"),
        ("locked" | "partial-delete", Adopt | Create | Edit | Recover | Rotate) => Some("no object is deleted"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::Fault;

    #[test]
    fn what_is_never_met_are_faults_that_there_are() {
        let of_phase = |phase| {
            let all = Fault::all_single();
            all.into_iter().filter(|fault| why_never(fault.name(), phase).is_some()).count()
        };
        assert_eq!(of_phase(Phase::Adopt), 5);
        assert_eq!(of_phase(Phase::Create), 2);
        assert_eq!((of_phase(Phase::Delete), of_phase(Phase::Purge)), (0, 0));
    }
}
