//! The state of a scan of a bucket, page by page. Pure: pages are passed in, and the next one is
//! named.
//!
//! Multipart uploads come before objects, so that one that is completed meanwhile is seen twice,
//! and never missed.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use stowage_api::{Figures, Limits, Snapshot};

use super::list::Page;
use crate::uri::Pair;

/// Interval between two scans of a bucket without changes: other clients may have written to the
/// store directly.
const QUIET: SignedDuration = SignedDuration::from_hours(6);
/// Minimum interval between two scans of a bucket with changes.
const BUSY: SignedDuration = SignedDuration::from_mins(10);
/// Minimum interval between two scans of a bucket with changes that is nearly full.
const NEAR: SignedDuration = SignedDuration::from_secs(60);
/// The pause after a scan, as a multiple of its duration.
const REST: i32 = 10;

/// A request for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The root of the expected document.
    pub root: &'static str,
    /// The object's key, for a list of parts.
    pub key: Option<Vec<u8>>,
    /// The parameters.
    pub query: Vec<Pair>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    Uploads,
    Versions,
    Objects,
}

#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    stage: Stage,
    next: Vec<(String, Vec<u8>)>,
}

/// A scan in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    stage: Stage,
    /// Continuation of the stage's list.
    next: Vec<Pair>,
    /// Continuation of the list after the uploads of this page.
    after: Option<Vec<Pair>>,
    /// Uploads whose parts are to be listed, each with the continuation of that list.
    uploads: VecDeque<(Vec<u8>, Vec<u8>, Vec<Pair>)>,
    /// Uploads of the page whose parts the store doesn't list. They were completed or aborted if a
    /// repeated request for the page doesn't have them any more.
    lost: Vec<(Vec<u8>, Vec<u8>)>,
    /// Bytes found so far.
    pub bytes: u64,
    /// Objects found so far.
    pub objects: u64,
    is_over: bool,
}

/// The store doesn't reveal the usage of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store refuses a list")]
pub struct Refused;

fn pair(name: &str, value: &[u8]) -> Pair {
    Pair { name: name.as_bytes().to_vec(), value: value.to_vec() }
}

impl Scan {
    /// Starts a scan from the beginning.
    #[must_use]
    pub fn begin() -> Self {
        Self {
            stage: Stage::Uploads,
            next: Vec::new(),
            after: None,
            uploads: VecDeque::new(),
            lost: Vec::new(),
            bytes: 0,
            objects: 0,
            is_over: false,
        }
    }

    /// Resumes a scan at a marker. Returns `None` if the marker can't be parsed.
    #[must_use]
    pub fn resume(marker: &str, bytes: u64, objects: u64) -> Option<Self> {
        let Marker { stage, next } = serde_json::from_str(marker).ok()?;
        let next = next.iter().map(|(name, value)| pair(name, value)).collect();
        Some(Self { stage, next, bytes, objects, ..Self::begin() })
    }

    /// Returns a marker to resume at, or `None` within a page and at the end.
    #[must_use]
    pub fn marker(&self) -> Option<String> {
        if self.is_over || self.after.is_some() || !self.uploads.is_empty() {
            return None;
        }
        let name = |pair: &Pair| String::from_utf8_lossy(&pair.name).into_owned();
        let next = self.next.iter().map(|pair| (name(pair), pair.value.clone())).collect();
        serde_json::to_string(&Marker { stage: self.stage, next }).ok()
    }

    /// Returns the next request, or `None` at the end.
    #[must_use]
    pub fn question(&self) -> Option<Question> {
        if self.is_over {
            return None;
        }
        if let Some((key, id, next)) = self.uploads.front() {
            let mut query = vec![pair("max-parts", b"1000"), pair("uploadId", id)];
            query.extend(next.iter().cloned());
            query.sort_unstable();
            return Some(Question { root: "ListPartsResult", key: Some(key.clone()), query });
        }
        let (root, mut query) = match self.stage {
            Stage::Uploads => ("ListMultipartUploadsResult", vec![pair("uploads", b""), pair("max-uploads", b"1000")]),
            Stage::Versions => ("ListVersionsResult", vec![pair("versions", b""), pair("max-keys", b"1000")]),
            Stage::Objects => ("ListBucketResult", vec![pair("list-type", b"2"), pair("max-keys", b"1000")]),
        };
        query.push(pair("encoding-type", b"url"));
        query.extend(self.next.iter().cloned());
        query.sort_unstable();
        Some(Question { root, key: None, query })
    }

    /// Adds the requested page.
    ///
    /// # Errors
    /// Returns an error if the list leads back to itself, if nothing follows a version that was not
    /// the last, or if the store lists an upload but not its parts.
    pub fn take(&mut self, page: Page) -> Result<(), Refused> {
        self.bytes = self.bytes.saturating_add(page.bytes);
        if let Some((_, _, next)) = self.uploads.front_mut() {
            match page.next {
                Some(further) if further == *next => return Err(Refused),
                Some(further) => *next = further,
                None => self.leave_upload(),
            }
            return Ok(());
        }
        if let Some(after) = self.after.take() {
            return self.look_for_lost(&page, after);
        }
        self.objects = self.objects.saturating_add(page.objects);
        // versitygw 1.8.0 continues after the marker's version. If that was deleted, it lists
        // nothing.
        let is_behind = self.next.iter().any(|pair| pair.name == b"version-id-marker" && !pair.value.is_empty());
        if is_behind && page.entries == 0 {
            return Err(Refused);
        }
        if page.next.as_ref() == Some(&self.next) {
            return Err(Refused);
        }
        let uploads = page.uploads.into_iter().map(|(key, id)| (key, id, Vec::new()));
        self.uploads.extend(uploads);
        if self.uploads.is_empty() {
            self.turn(page.next);
        } else {
            self.after = Some(page.next.unwrap_or_default());
        }
        Ok(())
    }

    fn leave_upload(&mut self) {
        self.uploads.pop_front();
        // If some were lost, the page is requested again.
        if self.uploads.is_empty() && self.lost.is_empty() {
            let after = self.after.take().filter(|after| !after.is_empty());
            self.turn(after);
        }
    }

    /// Searches the same page of uploads again for those that were lost.
    fn look_for_lost(&mut self, page: &Page, after: Vec<Pair>) -> Result<(), Refused> {
        if page.uploads.iter().any(|upload| self.lost.contains(upload)) {
            return Err(Refused);
        }
        self.lost.clear();
        self.turn(Some(after).filter(|after| !after.is_empty()));
        Ok(())
    }

    fn turn(&mut self, next: Option<Vec<Pair>>) {
        match (next, self.stage) {
            (Some(next), _) => self.next = next,
            (None, Stage::Uploads) => (self.stage, self.next) = (Stage::Versions, Vec::new()),
            (None, Stage::Versions | Stage::Objects) => self.is_over = true,
        }
    }

    /// Handles an error status in place of the page.
    ///
    /// # Errors
    /// Returns an error if the status says nothing about the usage of the bucket.
    pub fn refused(&mut self, status: u16) -> Result<(), Refused> {
        let is_unknown = matches!(status, 400 | 405 | 501);
        let is_first = self.next.is_empty() && self.after.is_none();
        match (self.stage, self.uploads.is_empty()) {
            // The upload was completed or aborted, or the store lists it under another key.
            (_, false) if status == 404 => {
                self.lost.extend(self.uploads.front().map(|(key, id, _)| (key.clone(), id.clone())));
                self.leave_upload();
            }
            // A store that doesn't support multipart uploads has none.
            (Stage::Uploads, true) if is_unknown && is_first => self.turn(None),
            // A store that doesn't support versions has objects only.
            (Stage::Versions, true) if is_unknown && is_first => self.stage = Stage::Objects,
            _ => return Err(Refused),
        }
        Ok(())
    }
}

/// Returns the time of a bucket's next scan, or `None` if it was never scanned. `figures` are those
/// that replicas have published.
#[must_use]
pub fn due<'a>(
    snapshot: Option<&Snapshot>,
    figures: impl IntoIterator<Item = (&'a str, Figures)>,
    used: u64,
    limits: Limits,
) -> Option<Timestamp> {
    let measured = snapshot?.measured.as_ref()?;
    let took = SignedDuration::try_from(Duration::from_millis(measured.took_ms)).unwrap_or(SignedDuration::MAX);
    let has_changed = figures.into_iter().any(|(replica, figures)| {
        let covered = measured.covers.get(replica).copied().unwrap_or(0);
        let seen = measured.removals.get(replica).copied().unwrap_or(0);
        figures.beyond(covered) > 0 || figures.removals > seen
    });
    let limit = limits.hard.or(limits.soft).map_or(u64::MAX, stowage_api::Bytes::get);
    let least = match has_changed {
        false => QUIET,
        true if used >= limit - limit / 10 => NEAR,
        true => BUSY,
    };
    let rest = took.checked_mul(REST).unwrap_or(SignedDuration::MAX).max(least);
    let ended = measured.began.checked_add(took).unwrap_or(Timestamp::MAX);
    Some(ended.checked_add(rest).unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
