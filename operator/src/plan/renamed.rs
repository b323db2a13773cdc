//! A consumer Secret of a name that the spec gives no more (spec §3.7).

use crate::api::wire;

use super::halt::Halt;
use super::secret::Stored;
use super::step::{Act, Look};
use super::view::{Knowledge, View};

/// After `writeConnectionSecretToRef` was edited, and the new Secret is there: the one of the old
/// name goes, if this claim controls it (spec §3.7). It would go on publishing a key that the next
/// rotation replaces.
pub(super) fn remove(view: &View) -> Result<(), Halt> {
    let bound = view.status_before().bound_secret_name.as_ref();
    let is_unknown = |name: &&String| matches!(view.consumer(name), Knowledge::Unknown | Knowledge::Taken);
    if let Some(name) = bound.filter(is_unknown) {
        // Its labels may have been taken off: then only the name finds it.
        return Err(Look::Consumer(name.clone()).into());
    }
    let is_ours = |secret: &&Stored| {
        let labelled = secret.label(wire::ROLE) == Some(wire::Role::ConsumerSecret.as_str());
        labelled || bound.is_some_and(|name| name == secret.name())
    };
    let is_renamed = |secret: &&Stored| secret.name() != view.claim().consumer_secret;
    let Some(secret) = view.own_consumers().filter(is_ours).find(is_renamed) else { return Ok(()) };
    view.require_live_claim()?;
    Err(Act::Delete(secret.reference()).into())
}
