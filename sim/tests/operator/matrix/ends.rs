//! What a fault may make of a scenario's end, where that can't or need not be what the user wanted first.

use stowage_sim::effects::{Edit, Fault, Rival, Tampering};
use stowage_sim::world::World;

use crate::support::{object, ready};

/// Reasons of `Ready` with which a claim may rest after a fault, besides what the user wanted.
fn reasons(fault: Fault) -> &'static [&'static str] {
    match fault {
        // A stranger has the name: of the bucket, the record, the credential or the consumer Secret.
        Fault::BucketExists => &["BucketExists"],
        Fault::AlreadyExists(Rival::Foreign) => &["BucketNameConflict", "CreationInconsistent", "SecretConflict"],
        Fault::Usurp => &["BucketExists", "BucketMissing", "BucketNameConflict"],
        // A bucket that was bound is never replaced by an empty one.
        Fault::Vanish => &["BucketMissing"],
        // Without its owner reference it is nobody's.
        Fault::Tamper(Tampering::DisownConsumer) => &["SecretConflict"],
        // Until the former UID's record is swept.
        Fault::Recreate => &["BucketNameConflict"],
        Fault::Edit(Edit::Pause) => &["Paused"],
        _ => &[],
    }
}

/// Whether the claim rests as this fault may leave it.
pub(super) fn has_come(world: &World, fault: Option<Fault>) -> bool {
    let Some(fault) = fault else { return false };
    let reason = ready(world, "team-a", "photos");
    let gone = object(world, "bucketclaims", "team-a", "photos").is_null();
    reasons(fault).contains(&reason.as_str()) || (gone && fault == Fault::Tamper(Tampering::StripFinalizers))
}
