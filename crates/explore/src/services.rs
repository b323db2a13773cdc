//! What the simulated services and other people do where a fault says so.

use faults::{Fault, KubeFault, Rival, S3Fault, Vocabulary};
use http::request::Parts;
use s3_sim::{Protection, Store};

/// Marks a request with what the service that it goes to is to do to it, if the fault is one that
/// the service plays.
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

/// What the API server does to a request.
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

/// What the store does to a request.
fn of_store(fault: S3Fault) -> Option<s3_sim::Disturbance> {
    use s3_sim::Disturbance;
    Some(match fault {
        S3Fault::StaleRead => Disturbance::Stale,
        S3Fault::PartialDelete => Disturbance::PartialDelete,
        S3Fault::Truncated => Disturbance::Truncated,
        _ => return None,
    })
}

/// Does to the bucket of a call what the fault says, in the name of its own account or of a
/// stranger.
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
