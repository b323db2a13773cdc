//! Explanation of the state of an access, entry by entry, with remedies. Shown by the `why`
//! command.

use k8s_openapi::jiff::Timestamp;

use crate::api::wire::{PAUSED, ROTATE, SERVED_BY};
use crate::api::{AccessEntryStatus, AccessReason, ClaimRef, Entry, EntryOf};

use super::keys::nothing_opens;
use super::status::{told, verdict};
use super::view::{AccessView, Stop};
use super::words::words;

/// Note for changes that no watch reports.
const TRIED_AGAIN: &str = "(it is tried again when something about the access changes, and at the slow resync)";

/// State of an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// Reason and message of a `Ready` condition that is False. `None` if the access is Ready, or
    /// if the pass has another step to carry out first.
    pub obstacle: Option<(AccessReason, String)>,
    /// Remedies for the obstacle, besides those for the entries. Each is sufficient by itself and
    /// completes the sentence "it goes on when …".
    pub remedies: Vec<String>,
    /// Entries in their order. Empty for an access that is being deleted.
    pub entries: Vec<EntryOutlook>,
}

/// State of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryOutlook {
    /// Description of what the entry requests.
    pub asks: String,
    /// Status of the entry.
    pub status: AccessEntryStatus,
    /// Reason that the entry is closed, in words. `None` if it is open.
    pub why: Option<&'static str>,
    /// Remedies that would open the entry. Each is sufficient by itself.
    pub remedies: Vec<String>,
}

impl Outlook {
    /// Returns the state of an access whose pass ends with this stop, or without one.
    pub(super) fn of(view: &AccessView, stop: Option<&Stop>, now: Timestamp) -> Self {
        let (reason, message) = verdict(stop, &told(view, now));
        Self {
            obstacle: (reason != AccessReason::Open).then_some((reason, message)),
            // If no entry opens, the remedies of the entries are shown.
            remedies: stop
                .filter(|stop| **stop != nothing_opens(view))
                .map(|stop| of_stop(view, stop.reason))
                .unwrap_or_default(),
            ..Self::of_entries(view, now)
        }
    }

    /// Returns the state of the entries, for a pass that has another step to carry out first.
    pub(super) fn of_entries(view: &AccessView, now: Timestamp) -> Self {
        let all = view.access.entries.iter().zip(told(view, now));
        let entries = all.map(|(entry, (status, why))| EntryOutlook {
            asks: asks(entry),
            status,
            why: why.map(words),
            remedies: why.map(|why| of_entry(view, entry, why)).unwrap_or_default(),
        });
        Self { obstacle: None, remedies: Vec::new(), entries: entries.collect() }
    }
}

/// Describes what an entry requests.
fn asks(entry: &Entry) -> String {
    let of = match &entry.of {
        Ok(EntryOf::Claim(claim)) => format!("claim {claim}"),
        Ok(EntryOf::Bucket(backend, bucket)) => format!("bucket {bucket} at S3Backend {backend}"),
        Err(_) => "nothing that can be read".to_owned(),
    };
    match &entry.wants {
        Ok((mode, None)) => format!("{of}, {}", mode.as_str()),
        Ok((mode, Some(prefix))) => format!("{of}, {} under {}", mode.as_str(), prefix.as_str()),
        Err(_) => of,
    }
}

/// Returns the remedies for a closed entry.
fn of_entry(view: &AccessView, entry: &Entry, why: AccessReason) -> Vec<String> {
    let namespace = &view.access.at.namespace;
    match &entry.of {
        Err(error) => vec![format!("the entry is mended: {error}")],
        Ok(EntryOf::Claim(claim)) => of_claim(namespace, claim, entry, why),
        Ok(EntryOf::Bucket(backend, bucket)) => {
            let shared = format!("sharedBuckets of S3Backend {backend}");
            match why {
                AccessReason::NotShared => {
                    vec![format!("{shared} share bucket {bucket} with namespace {namespace}")]
                }
                AccessReason::BeyondConsent => beyond(&shared, entry),
                AccessReason::HeldByClaim => vec![
                    format!("the claim that holds bucket {bucket} is deleted"),
                    "the entry names that claim instead, which its owner shares".to_owned(),
                ],
                AccessReason::BackendNotReady
                | AccessReason::SameBucket
                | AccessReason::KeyPending
                | AccessReason::SpecInvalid
                | AccessReason::ClaimNotBound
                | AccessReason::NotWatched
                | AccessReason::ConsentPending
                | AccessReason::Open
                | AccessReason::SecretConflict
                | AccessReason::CreationInconsistent
                | AccessReason::ServedByAnother
                | AccessReason::OperatorNamespace
                | AccessReason::ServerError
                | AccessReason::DeletionBlocked
                | AccessReason::Paused => of_any(entry, why),
            }
        }
    }
}

fn of_claim(namespace: &str, claim: &ClaimRef, entry: &Entry, why: AccessReason) -> Vec<String> {
    match why {
        AccessReason::NotShared => {
            vec![format!("there is a claim {claim}, and its spec.sharing lets namespace {namespace} in")]
        }
        AccessReason::NotWatched => {
            vec![format!("this operator serves namespace {} too (--watch-namespace)", claim.namespace)]
        }
        AccessReason::ClaimNotBound => vec![format!("claim {claim} is there and is bound: why {claim} tells of that")],
        AccessReason::BackendNotReady => {
            vec![format!("the S3Backend of claim {claim} is there, and is or was at the endpoint of its bucket")]
        }
        AccessReason::ConsentPending => vec![
            format!(
                "the operator's next pass over claim {claim} opens its bucket: plan {claim} tells what comes first"
            ),
            format!("allowedNamespaces of the claim's S3Backend lets namespace {namespace} in, if it does not"),
        ],
        AccessReason::BeyondConsent => beyond(&format!("spec.sharing of claim {claim}"), entry),
        AccessReason::SameBucket
        | AccessReason::KeyPending
        | AccessReason::SpecInvalid
        | AccessReason::HeldByClaim
        | AccessReason::Open
        | AccessReason::SecretConflict
        | AccessReason::CreationInconsistent
        | AccessReason::ServedByAnother
        | AccessReason::OperatorNamespace
        | AccessReason::ServerError
        | AccessReason::DeletionBlocked
        | AccessReason::Paused => of_any(entry, why),
    }
}

fn beyond(consent: &str, entry: &Entry) -> Vec<String> {
    let wants = match &entry.wants {
        Ok((mode, None)) => format!("{} of the whole bucket", mode.as_str()),
        Ok((mode, Some(prefix))) => format!("{} of {}", mode.as_str(), prefix.as_str()),
        Err(_) => "what the entry asks for".to_owned(),
    };
    vec![
        format!("{consent} consents to {wants}, by maxMode and prefixes"),
        "the entry asks for no more than is consented to".to_owned(),
    ]
}

/// Returns the remedies for a closed entry that depend only on the reason.
fn of_any(entry: &Entry, why: AccessReason) -> Vec<String> {
    match why {
        AccessReason::BackendNotReady => vec!["the S3Backend is there, at the endpoint of the bucket".to_owned()],
        AccessReason::SameBucket => {
            vec!["the other entry for this bucket, or for one of its name, is taken out".to_owned()]
        }
        AccessReason::KeyPending => vec![
            "the next key is made: not within a minute of the last, nor before the one before that has ended"
                .to_owned(),
        ],
        AccessReason::SpecInvalid => {
            let error = entry.wants.as_ref().err().map_or_else(String::new, |error| format!(": {error}"));
            vec![format!("the entry is mended{error}")]
        }
        AccessReason::NotShared
        | AccessReason::NotWatched
        | AccessReason::ClaimNotBound
        | AccessReason::ConsentPending
        | AccessReason::BeyondConsent
        | AccessReason::HeldByClaim
        | AccessReason::Open
        | AccessReason::SecretConflict
        | AccessReason::CreationInconsistent
        | AccessReason::ServedByAnother
        | AccessReason::OperatorNamespace
        | AccessReason::ServerError
        | AccessReason::DeletionBlocked
        | AccessReason::Paused => Vec::new(),
    }
}

/// Returns the remedies for a stop.
fn of_stop(view: &AccessView, why: AccessReason) -> Vec<String> {
    match why {
        AccessReason::Paused => vec![format!("annotation {PAUSED} is taken off the access")],
        AccessReason::OperatorNamespace => vec!["the access is made in another namespace".to_owned()],
        AccessReason::SpecInvalid => vec!["the spec of the access is mended".to_owned()],
        AccessReason::SecretConflict => vec![
            format!("Secret {} is deleted", view.access.consumer_secret),
            "spec.writeConnectionSecretToRef names another".to_owned(),
        ],
        AccessReason::CreationInconsistent => vec![
            "the Secret of the operator's namespace that the message names is mended".to_owned(),
            format!("annotation {ROTATE} of the access asks for another key, where it is a key that is damaged"),
        ],
        AccessReason::ServedByAnother => {
            vec![format!("annotation {SERVED_BY} of the access names this operator, {}", view.setting.operator())]
        }
        AccessReason::DeletionBlocked => {
            vec!["the finalizers that the message names are taken off by those who put them on".to_owned()]
        }
        AccessReason::ServerError => vec![format!("the API server lets the operator do it {TRIED_AGAIN}")],
        AccessReason::Open
        | AccessReason::NotShared
        | AccessReason::NotWatched
        | AccessReason::ClaimNotBound
        | AccessReason::BackendNotReady
        | AccessReason::ConsentPending
        | AccessReason::BeyondConsent
        | AccessReason::SameBucket
        | AccessReason::HeldByClaim
        | AccessReason::KeyPending => Vec::new(),
    }
}
