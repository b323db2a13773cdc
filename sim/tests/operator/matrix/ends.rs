//! What a fault may make of a scenario's end, where that can't or need not be what the user wanted first.

use stowage_sim::effects::{Edit, Fault, Feature, KubeFault, Rival, S3Fault, StowageFault, Tampering};
use stowage_sim::world::World;

use super::Scenario;
use crate::support::{object, ready};

/// Reasons of `Ready` with which a claim may rest after a fault, besides what the user wanted.
fn reasons(fault: Fault) -> &'static [&'static str] {
    match fault {
        // A stranger has the name: of the bucket, the record, the credential or the consumer Secret.
        Fault::S3(S3Fault::BucketExists) => &["BucketExists"],
        Fault::Kube(KubeFault::AlreadyExists(Rival::Foreign)) => {
            &["BucketNameConflict", "CreationInconsistent", "SecretConflict"]
        }
        Fault::Project(StowageFault::Usurp { .. }) => &["BucketExists", "BucketMissing", "BucketNameConflict"],
        // A bucket that was bound is never replaced by an empty one.
        Fault::S3(S3Fault::Vanish) => &["BucketMissing"],
        // Without its owner reference it is nobody's.
        Fault::Project(StowageFault::Tamper(Tampering::DisownConsumer)) => &["SecretConflict"],
        // Until the former UID's record is swept.
        Fault::Project(StowageFault::Recreate) => &["BucketNameConflict"],
        Fault::Project(StowageFault::Edit(Edit::Pause)) => &["Paused"],
        // While the claim goes, without force: somebody has to decide.
        Fault::Project(StowageFault::Edit(Edit::Delete | Edit::NoForce)) | Fault::S3(S3Fault::LateWrite) => {
            &["BucketNotEmpty"]
        }
        Fault::S3(S3Fault::Locked) => &["DeletionBlocked"],
        // Versions that can't be listed can't be deleted.
        Fault::S3(S3Fault::NotImplemented(Feature::Versioning)) => &["Purging"],
        _ => &[],
    }
}

/// Whether the claim rests as this fault may leave it.
pub(super) fn has_come(scenario: &Scenario, world: &World, fault: Option<Fault>) -> bool {
    let Some(fault) = fault else { return false };
    let claim = object(world, "bucketclaims", "team-a", "photos");
    let reason = ready(world, "team-a", "photos");
    let goes = scenario.name.starts_with("delete");
    reasons(fault).contains(&reason.as_str())
        || match fault {
            Fault::Project(StowageFault::Tamper(Tampering::StripFinalizers)) => claim.is_null(),
            // What is nobody's stays where it is.
            Fault::Project(StowageFault::Tamper(Tampering::DisownConsumer)) if goes => claim.is_null(),
            Fault::Project(StowageFault::Tamper(Tampering::DisownConsumer)) => {
                scenario.name == "rename"
                    && claim["status"]["boundSecretName"] == claim["spec"]["writeConnectionSecretToRef"]["name"]
            }
            // The one that was made again is nobody's to delete.
            Fault::Project(StowageFault::Recreate) => {
                goes && reason == "Bound" && claim["metadata"]["deletionTimestamp"].is_null()
            }
            _ => false,
        }
}

/// How many keys without an end there may be: a rotation that can't go on stops before it stamps the old one.
pub(super) fn most_keys(fault: Option<Fault>) -> usize {
    match fault {
        // The former UID's key goes with its record.
        Some(Fault::Project(StowageFault::Recreate)) => 2,
        Some(Fault::Project(StowageFault::Tamper(Tampering::DisownConsumer) | StowageFault::Edit(Edit::Pause))) => 2,
        _ => 1,
    }
}
