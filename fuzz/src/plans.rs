//! Plans of faults, as a user types them.

use faults::{Plan, Trace};

/// Parses a plan. Checks that a plan has one textual form, which is parsed as the same plan.
pub(crate) fn play(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    match text.parse::<Plan>() {
        Ok(plan) => {
            let told = plan.to_string();
            assert_eq!(told.parse().as_ref(), Ok(&plan), "{text:?} is {told:?}");
            assert_eq!(plan.is_empty(), told.is_empty());
            let (lasting, once) = plan.clone().lasting_and_once();
            assert_eq!(lasting.entries.len() + once.entries.len(), plan.entries.len(), "{told}");
            // A run without calls meets only faults of the whole run.
            let unmet = Trace::default().unmet(&plan);
            assert!(unmet.entries.iter().all(|entry| plan.entries.contains(entry)), "{told}");
        }
        Err(error) => {
            let columns = text.chars().count() + 1;
            assert!((1..=columns).contains(&error.column), "{text:?}: {error}");
        }
    }
}
