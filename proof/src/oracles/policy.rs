//! Data that is to be kept is kept: none is destroyed under `Retain` (I2), and no bucket is emptied
//! without force (I3).

use stowage_world::history::Called;

use super::Promise;
use super::findings::Findings;
use super::ground::{Ground, described, empties};
use super::rest::is_of_the_past;
use super::state::{HistoryStep, Life, State};
use super::views::Policy;

/// Judges a destroying call by the version of the claim that was read last before the slice.
pub(super) fn judge(
    state: &State<'_>,
    step: &HistoryStep<'_>,
    called: &Called,
    life: &Life<'_>,
    ground: Ground,
    found: &mut Findings,
) {
    let policy = life.claim.policy();
    let (promise, edit) = match policy {
        Policy::Retain => (Promise::I2, life.retained),
        Policy::Delete if empties(called.operation) => (Promise::I3, life.unforced),
        Policy::Delete | Policy::Force => return,
    };
    let Some(edit) = edit else { return };
    let what = described(called);
    let claim = life.claim.full_name();
    let wanted = if promise == Promise::I2 { "whose policy is Retain" } else { "which does not force it" };
    let read = ground.read;
    let read_after = read.is_some_and(|read| edit.precedes(read));
    let read_old = read.and_then(|read| state.line(read)).is_some_and(is_of_the_past);
    match (read_after, ground.confirmed) {
        (true, _) if read_old => {
            found.limit(promise, step, format!("{what} is called for claim {claim}, {wanted}: it was read old"));
        }
        (true, _) => found.broken(promise, step, format!("{what} is called for claim {claim}, {wanted}")),
        (false, false) => {
            let message = format!("{what} is called for claim {claim}, {wanted}, without reading it again before");
            found.broken(promise, step, message);
        }
        (false, true) => {}
    }
}
