//! Plans of faults, as they are typed.

use faults::{Plan, Trace};

/// Reads a plan. What was read is written in one way, which is read as the same.
pub(crate) fn play(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    match text.parse::<Plan>() {
        Ok(plan) => {
            let told = plan.to_string();
            assert_eq!(told.parse().as_ref(), Ok(&plan), "{text:?} is {told:?}");
            assert_eq!(plan.is_empty(), told.is_empty());
            let (lasting, once) = plan.clone().lasting_and_once();
            assert_eq!(lasting.entries.len() + once.entries.len(), plan.entries.len(), "{told}");
            // Of a run without calls nothing is met but what is of the whole run.
            let unmet = Trace::default().unmet(&plan);
            assert!(unmet.entries.iter().all(|entry| plan.entries.contains(entry)), "{told}");
        }
        Err(error) => {
            let columns = text.chars().count() + 1;
            assert!((1..=columns).contains(&error.column), "{text:?}: {error}");
        }
    }
}
