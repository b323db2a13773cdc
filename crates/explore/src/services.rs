//! Effects of faults on the simulated services and their data.

use faults::{Fault, KubeFault, Rival, S3Fault, Vocabulary};
use http::request::Parts;
use s3_sim::{Protection, Store};

/// Marks a request with the disturbance that its service is to play, if the fault is one that the
/// service plays.
pub fn mark<V: Vocabulary>(fault: Fault<V>, request: &mut Parts) {
    match fault {
        Fault::Kube(fault) => {
            if let Some(disturbance) = of_cluster(fault) {
                request.extensions.insert(disturbance);
            }
        }
        Fault::S3(fault) => {
            if let Some(disturbance) = of_store(fault) {
                request.extensions.insert(disturbance);
            }
        }
        Fault::Call(_) | Fault::Process(_) | Fault::Clock(_) | Fault::Project(_) => {}
    }
}

/// Returns the disturbance that the API server plays for a fault.
fn of_cluster(fault: KubeFault) -> Option<kube_sim::Disturbance> {
    use kube_sim::Disturbance;
    Some(match fault {
        KubeFault::AlreadyExists(Rival::Foreign) => Disturbance::TakenByStranger,
        KubeFault::AlreadyExists(Rival::Own) => Disturbance::TakenByTwin,
        KubeFault::Stale { changes } => Disturbance::Behind(changes.into()),
        KubeFault::Rewind => Disturbance::Rewound,
        KubeFault::Collapse => Disturbance::Collapsed,
        KubeFault::WatchCut => Disturbance::Cut,
        KubeFault::WatchGone => Disturbance::Gone,
        KubeFault::WatchSilent => Disturbance::Silent,
        KubeFault::WatchDuplicate => Disturbance::Duplicated,
        KubeFault::Shuffle => Disturbance::Shuffled,
        _ => return None,
    })
}

/// Returns the disturbance that the store plays for a fault.
fn of_store(fault: S3Fault) -> Option<s3_sim::Disturbance> {
    use s3_sim::Disturbance;
    Some(match fault {
        S3Fault::StaleRead => Disturbance::Stale,
        S3Fault::PartialDelete => Disturbance::PartialDelete,
        S3Fault::Truncated => Disturbance::Truncated,
        _ => return None,
    })
}

/// Changes the bucket of a call as the fault demands, as the bucket's own account or as a stranger.
pub fn change_bucket(fault: S3Fault, store: &Store, bucket: &str, account: &str, stranger: &str) {
    let make = |account| {
        if store.bucket(bucket).is_none() {
            store.put_bucket(account, bucket);
        }
    };
    match fault {
        S3Fault::AlreadyOwned | S3Fault::OkOnExisting => make(account),
        S3Fault::BucketExists => make(stranger),
        S3Fault::Locked => lock_first(store, bucket),
        S3Fault::LateWrite => {
            store.put_object(bucket, "late", "late");
            store.start_upload(bucket, "late");
        }
        S3Fault::Vanish => {
            store.remove_bucket(bucket);
        }
        _ => {}
    }
}

fn lock_first(store: &Store, bucket: &str) {
    if let Some(key) = store.objects(bucket).into_keys().next() {
        store.protect(bucket, &key, Protection { retention: None, legal_hold: true });
    }
}
