//! Formats explanations as text for people.

use std::fmt::Write;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::plan::access::EntryOutlook;

use super::line::Next;
use super::text::{Paint, plain};
use super::why::Why;
use super::why_access::WhyAccess;
use super::why_obc::{WhyObc, Worker};

/// Width of the column of names, which is that of the longest condition.
const COLUMN: usize = "CredentialsProvisioned".len();

/// Rows of a name and a text.
struct Rows {
    text: String,
    paint: Paint,
    now: Timestamp,
}

impl Rows {
    fn new(paint: Paint, now: Timestamp) -> Self {
        Self { text: String::new(), paint, now }
    }

    /// Adds a row. Text written by others can't move the cursor.
    fn row(&mut self, name: &str, says: &str) {
        let _ = writeln!(self.text, "{:<COLUMN$}  {}", plain(name), plain(says));
    }

    fn next(&mut self, next: &Next) {
        let _ = writeln!(self.text, "{:<COLUMN$}  {}", "Next", self.paint.next(next));
    }

    fn condition(&mut self, name: &str, condition: &Condition) {
        let since = since(condition.last_transition_time.0, self.now);
        let says = format!("{} {}, since {since}: {}", condition.status, condition.reason, condition.message);
        self.row(name, &says);
    }

    fn conditions(&mut self, conditions: &[Condition]) {
        for condition in conditions {
            self.condition(&condition.type_, condition);
        }
    }

    /// Adds rows for changes. `first` is the name of the first row.
    fn changes(&mut self, first: &str, changes: &[String]) {
        let mut names = std::iter::once(first).chain(std::iter::repeat("or if"));
        for change in changes {
            self.row(names.next().unwrap_or_default(), change);
        }
    }
}

impl Why {
    /// Formats the explanation at this time.
    pub fn text(&self, paint: Paint, now: Timestamp) -> String {
        let mut rows = Rows::new(paint, now);
        rows.row("Claim", &self.claim.to_string());
        self.rows(&mut rows);
        rows.text
    }

    /// Adds all rows except its name.
    fn rows(&self, rows: &mut Rows) {
        rows.row("Phase", &self.phase(rows.now));
        rows.conditions(&self.status.conditions);
        rows.next(&self.next);
        if let Some(doubt) = &self.doubt {
            rows.row("", &format!("({doubt})"));
        }
        rows.changes("Goes on if", &self.changes);
        if let Some(backend) = &self.backend {
            let endpoint = backend.endpoint.as_ref().map_or_else(|| "is not there".to_owned(), |it| format!("at {it}"));
            rows.row("Backend", &format!("{} {endpoint}", backend.name));
            if let Some(ready) = &backend.ready {
                rows.condition("", ready);
            }
        }
        let mut names = std::iter::once("Store").chain(std::iter::repeat(""));
        for heard in &self.heard {
            rows.row(names.next().unwrap_or_default(), &format!("{heard}, asked just now"));
        }
    }

    fn phase(&self, now: Timestamp) -> String {
        let mut text = self.status.phase.map_or_else(|| "none yet".to_owned(), |phase| phase.as_str().to_owned());
        if let Some(deleted) = self.deleted {
            let _ = write!(text, ", deleted {}", since(deleted, now));
        }
        if self.is_edited {
            text.push_str(", and edited since the operator last told of it");
        }
        text
    }
}

impl WhyAccess {
    /// Formats the explanation at this time.
    pub fn text(&self, paint: Paint, now: Timestamp) -> String {
        let mut rows = Rows::new(paint, now);
        rows.row("Access", &self.access.to_string());
        self.rows(&mut rows);
        rows.text
    }

    /// Adds all rows except its name.
    fn rows(&self, rows: &mut Rows) {
        if let Some(deleted) = self.deleted {
            rows.row("Deleted", &since(deleted, rows.now));
        }
        if self.is_edited {
            rows.row("Edited", "since the operator last told of it");
        }
        rows.conditions(&self.status.conditions);
        rows.next(&self.next);
        rows.changes("Goes on if", &self.changes);
        for (at, entry) in self.entries.iter().enumerate() {
            rows.row(&format!("Entry {at}"), &stands(entry));
            rows.changes("opens if", &entry.remedies);
        }
        if let Some(key) = self.key(rows.now) {
            rows.row("Key", &key);
        }
    }

    /// Describes the key in the status.
    fn key(&self, now: Timestamp) -> Option<String> {
        let status = &self.status;
        status.access_key_id.as_ref()?;
        let mut text = format!("generation {}", status.rotation_generation.unwrap_or_default());
        if let Some(name) = &status.bound_secret_name {
            let _ = write!(text, " in Secret {name}");
        }
        if let Some(made) = &status.rotated_at {
            let _ = write!(text, ", made {}", since(made.0, now));
        }
        if let Some(next) = &status.next_rotation_at {
            let _ = write!(text, ", to be followed at {}", next.0);
        }
        Some(text)
    }
}

/// Describes an entry: what it requests, and what it has.
fn stands(entry: &EntryOutlook) -> String {
    let status = &entry.status;
    let place = |word: &str| match (&status.bucket, &status.backend) {
        (Some(bucket), Some(backend)) => format!("{word} bucket {bucket} at S3Backend {backend}"),
        (Some(_) | None, Some(_) | None) => String::new(),
    };
    let has = match (entry.why, &status.reason) {
        (Some(why), Some(reason)) => format!("closed, {reason}: {why}"),
        (Some(_) | None, Some(_) | None) => {
            format!("open{}, {}", place(","), status.mode.as_deref().unwrap_or_default())
        }
    };
    format!("{}: {has}", entry.asks)
}

impl WhyObc {
    /// Formats the explanation, followed by that of the BucketClaim or BucketAccess behind the
    /// claim.
    pub fn text(&self, paint: Paint, now: Timestamp) -> String {
        let mut rows = Rows::new(paint, now);
        rows.row("ObjectBucketClaim", &self.obc.to_string());
        let mut phase = self.phase.clone().unwrap_or_else(|| "none yet".to_owned());
        if let Some(made) = self.made {
            let _ = write!(phase, ", made {}", since(made, now));
        }
        if let Some(deleted) = self.deleted {
            let _ = write!(phase, ", deleted {}", since(deleted, now));
        }
        rows.row("Phase", &phase);
        rows.row("Storage class", self.class.as_deref().unwrap_or("none"));
        rows.next(&self.next);
        rows.changes("Goes on if", &self.changes);
        match &self.worker {
            Some(Worker::Claim(why)) => {
                rows.row("BucketClaim", &why.claim.to_string());
                why.rows(&mut rows);
            }
            Some(Worker::Access(why)) => {
                rows.row("BucketAccess", &why.access.to_string());
                why.rows(&mut rows);
            }
            None => {}
        }
        rows.text
    }
}

/// Formats a time and its age: `2026-01-01T00:00:00Z (5 min)`.
fn since(then: Timestamp, now: Timestamp) -> String {
    format!("{then} ({})", long(now.duration_since(then).max(SignedDuration::ZERO)))
}

/// Formats a duration in the greatest unit of which it has at least two.
fn long(time: SignedDuration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_ago_is_told_in_one_unit() {
        let of = |seconds| long(SignedDuration::from_secs(seconds));
        assert_eq!([0, 119, 120, 7_199, 7_200, 172_800].map(of), ["0 s", "119 s", "2 min", "119 min", "2 h", "2 days"]);
    }
}
