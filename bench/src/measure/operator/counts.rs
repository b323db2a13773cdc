//! Counts of requests by kind, and the API server's audit log, read as it grows.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// Numbers of requests, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts(BTreeMap<String, u64>);

impl Counts {
    pub(crate) fn add(&mut self, kind: &str) {
        match self.0.get_mut(kind) {
            Some(count) => *count += 1,
            None => {
                self.0.insert(kind.to_owned(), 1);
            }
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the requests since the earlier counts.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let new = self.0.iter().map(|(kind, count)| (kind.clone(), count - earlier.0.get(kind).copied().unwrap_or(0)));
        Self(new.filter(|(_, count)| *count > 0).collect())
    }

    /// Returns the counts by kind, the most frequent first.
    pub(crate) fn sorted(&self) -> Vec<(&str, u64)> {
        let mut kinds: Vec<(&str, u64)> = self.0.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
        kinds.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
        kinds
    }
}

/// The requests of one user in a log that is being written.
pub(crate) struct Audit {
    file: PathBuf,
    user: &'static str,
    read: u64,
    counts: Counts,
}

/// A line of the log, with the required fields only.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    stage: &'a str,
    verb: &'a str,
    #[serde(rename = "requestURI", borrow)]
    uri: std::borrow::Cow<'a, str>,
    user: Username<'a>,
    #[serde(default, borrow)]
    object_ref: Object<'a>,
    #[serde(default)]
    response_status: Status,
}

#[derive(Deserialize)]
struct Username<'a> {
    username: &'a str,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object<'a> {
    resource: &'a str,
    subresource: &'a str,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    code: u16,
}

impl Audit {
    pub(crate) fn new(file: PathBuf, user: &'static str) -> Self {
        Self { file, user, read: 0, counts: Counts::default() }
    }

    /// Returns the current length of the log.
    pub(crate) fn length(&self) -> Result<u64> {
        let length = std::fs::metadata(&self.file).map(|file| file.len());
        length.with_context(|| format!("can't read the audit log {}", self.file.display()))
    }

    /// Returns the counts of all requests in the first `length` bytes of the log.
    pub(crate) fn counts(&mut self, length: u64) -> Result<Counts> {
        let failed = || format!("can't read the audit log {}", self.file.display());
        let mut file = File::open(&self.file).with_context(failed)?;
        file.seek(SeekFrom::Start(self.read)).with_context(failed)?;
        let part = file.take(length.saturating_sub(self.read));
        let (mut part, mut line) = (BufReader::with_capacity(1 << 20, part), Vec::new());
        loop {
            line.clear();
            let length = part.read_until(b'\n', &mut line).with_context(failed)?;
            // The last line may be incomplete.
            if !line.ends_with(b"\n") {
                return Ok(self.counts.clone());
            }
            self.read += length as u64;
            if let Some(kind) = std::str::from_utf8(&line).ok().and_then(|line| kind(line, self.user)) {
                self.counts.add(&kind);
            }
        }
    }
}

/// Returns the kind of request in a line, such as `patch bucketclaims/status`. Returns `None` for
/// other users, and for the second event of a watch, which is logged at its start and its end.
fn kind(line: &str, user: &str) -> Option<String> {
    // Most lines are about other users, and parsing them would take processor time from the
    // measured program.
    if !line.contains(user) {
        return None;
    }
    let Entry { stage, verb, uri, user: who, object_ref, response_status } = serde_json::from_str(line).ok()?;
    let counted = if verb == "watch" { "ResponseStarted" } else { "ResponseComplete" };
    if who.username != user || stage != counted {
        return None;
    }
    let Object { resource, subresource } = object_ref;
    // A patch that creates an object has another cost than one that changes it.
    let new = if verb == "patch" && response_status.code == 201 { NEW } else { "" };
    let what = match (resource, subresource) {
        ("", _) => uri.split('?').next().unwrap_or_default().to_owned(),
        (resource, "") => resource.to_owned(),
        (resource, subresource) => format!("{resource}/{subresource}"),
    };
    Some(format!("{verb} {what}{new}"))
}

/// Suffix of a patch that created its object.
pub(crate) const NEW: &str = " (new)";

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use rstest::rstest;

    use super::*;

    fn line(user: &str, stage: &str, verb: &str, object: &str, code: u16) -> String {
        format!(
            r#"{{"kind":"Event","stage":"{stage}","requestURI":"/version?timeout=1s","verb":"{verb}","user":{{"username":"{user}"}},{object}"responseStatus":{{"metadata":{{}},"code":{code}}}}}"#
        )
    }

    const STATUS: &str =
        r#""objectRef":{"resource":"bucketclaims","namespace":"a","name":"b","subresource":"status"},"#;
    const SECRET: &str = r#""objectRef":{"resource":"secrets","namespace":"a","apiVersion":"v1"},"#;

    #[rstest]
    #[case("operator", "ResponseComplete", "patch", STATUS, 200, Some("patch bucketclaims/status"))]
    #[case("operator", "ResponseComplete", "patch", SECRET, 201, Some("patch secrets (new)"))]
    #[case("operator", "ResponseComplete", "create", SECRET, 201, Some("create secrets"))]
    #[case("operator", "ResponseStarted", "watch", SECRET, 200, Some("watch secrets"))]
    #[case("operator", "ResponseComplete", "watch", SECRET, 200, None)]
    #[case("operator", "ResponseComplete", "get", "", 200, Some("get /version"))]
    #[case("operators-friend", "ResponseComplete", "get", "", 200, None)]
    #[case("admin", "ResponseComplete", "get", "", 200, None)]
    fn a_line_tells_what_its_user_asked(
        #[case] user: &str,
        #[case] stage: &str,
        #[case] verb: &str,
        #[case] object: &str,
        #[case] code: u16,
        #[case] expected: Option<&str>,
    ) {
        assert_eq!(kind(&line(user, stage, verb, object, code), "operator").as_deref(), expected);
    }

    #[test]
    fn a_log_is_read_as_it_grows_and_no_line_before_its_end() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut audit = Audit::new(file.path().to_owned(), "operator");
        let whole = line("operator", "ResponseComplete", "create", SECRET, 201);
        let (first, second) = whole.split_at(20);
        write!(file, "{whole}\n{first}").unwrap();
        let length = audit.length().unwrap();
        let before = audit.counts(length).unwrap();
        assert_eq!(before.sorted(), [("create secrets", 1)]);
        writeln!(file, "{second}").unwrap();
        assert_eq!(audit.counts(length).unwrap(), before, "what is written later is not counted");
        let length = audit.length().unwrap();
        let after = audit.counts(length).unwrap();
        assert_eq!((after.total(), after.since(&before).total()), (2, 1));
    }

    #[test]
    fn kinds_come_by_how_often_and_those_without_news_not_at_all() {
        let mut counts = Counts::default();
        counts.add("b");
        let before = counts.clone();
        ["c", "a", "c"].iter().for_each(|kind| counts.add(kind));
        assert_eq!(counts.since(&before).sorted(), [("c", 2), ("a", 1)]);
    }
}
