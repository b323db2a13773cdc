//! How an access stands, entry by entry, and what would change it: for whoever asks why.

use k8s_openapi::jiff::Timestamp;

use crate::api::wire::{PAUSED, ROTATE, SERVED_BY};
use crate::api::{AccessEntryStatus, AccessReason, ClaimRef, Entry, EntryOf};

use super::keys::nothing_opens;
use super::status::{told, verdict};
use super::view::{AccessView, Stop};
use super::words::words;

/// What nobody tells of when it changes.
const TRIED_AGAIN: &str = "(it is tried again when something about the access changes, and at the slow resync)";

/// How an access stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// Why it is not Ready: reason and message of the condition. `None` = it is, or there is
    /// something to do first.
    pub obstacle: Option<(AccessReason, String)>,
    /// What would change that, besides what would open its entries: each by itself, in words that
    /// complete "it goes on when …".
    pub remedies: Vec<String>,
    /// Its entries, in their order. Of an access that is deleted none are told.
    pub entries: Vec<EntryOutlook>,
}

/// How an entry stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryOutlook {
    /// What it asks for.
    pub asks: String,
    /// What is told of it.
    pub status: AccessEntryStatus,
    /// Why it is closed, in words; `None` = it is open.
    pub why: Option<&'static str>,
    /// What would open it, each by itself.
    pub remedies: Vec<String>,
}

impl Outlook {
    /// Of an access whose pass ends with this stop, or without one.
    pub(super) fn of(view: &AccessView, stop: Option<&Stop>, now: Timestamp) -> Self {
        let (reason, message) = verdict(stop, &told(view, now));
        Self {
            obstacle: (reason != AccessReason::Open).then_some((reason, message)),
            // Where no entry opens, the entries tell.
            remedies: stop
                .filter(|stop| **stop != nothing_opens(view))
                .map(|stop| of_stop(view, stop.reason))
                .unwrap_or_default(),
            ..Self::of_entries(view, now)
        }
    }

    /// Of an access whose pass has something to do first: of its entries alone.
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

/// What an entry asks for, in words.
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

/// What would open an entry that is closed.
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

/// What would open an entry, whatever it names.
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

/// What would let a pass go on.
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
