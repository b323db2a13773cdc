//! The page that explains each reason and gives advice. The explanation is that of the contract.
//! The reason's `stalls` decides if a user has to change something. The advice is in the tables of
//! this directory, which compile only with an entry for each reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use regex::Regex;
use stowage_operator::api::{AccessReason, BackendReason, Reason};

use super::generated::assert_page;
use super::{read, root};

/// The contract. Its tables of conditions explain each reason.
const SPEC: &str = include_str!("../../../../docs/spec.md");
/// The operator's messages in all scenarios, as recorded by a test.
const MESSAGES: &str = include_str!("../../../../proof/tests/messages.txt");

/// Maximum length of a paragraph's lines.
const COLUMNS: usize = 120;
const READY: (&str, &str) = ("Ready", "False");

const CLAIM: &str = "BucketClaim";
const ACCESS: &str = "BucketAccess";
const BACKEND: &str = "S3Backend";
const OBC: &str = "ObjectBucketClaim";

const INTRO: &str = "\
# Troubleshooting

Generated. What to do, reason by reason: of BucketClaims, BucketAccesses, S3Backends and ObjectBucketClaims. The `reason`
of a condition leads to its heading below, and its `message` says more: which object is meant, and which of several cases
it is.

    kubectl get bucketclaims --all-namespaces
    kubectl describe bucketclaim photos -n team-a

`Stalled` is True while somebody has to change something, `Reconciling` while the operator expects that it passes. Either
way the operator goes on by itself once that is so: whatever it watches wakes what depends on it, and everything is looked
at again every `--resync-interval`, which is ten minutes unless it was set. No watch tells of what happens at a store.
What would let an object go on, by what there is now, the operator's own planner says ([plan](../guide/plan.md)):

    kubectl stowage why team-a/photos
    kubectl stowage why bucketaccess/team-b/reader
    kubectl stowage why --obc obc/team-a/photos

A condition behind *also* has the reason where the trouble is its own. The reasons of a BucketAccess stand in
`status.buckets[]` as well, entry by entry. Commands are for a claim `photos` of `team-a`, an access `reader` of `team-b`,
a backend `main`, and a release `stowage` in the namespace `stowage-system`.
";

/// Introduction to the reasons of ObjectBucketClaims.
const BEHIND: &str = "An ObjectBucketClaim has a phase and no conditions: why it is so stands in Events. Besides these, an \
                      Event has the reason of the BucketClaim or BucketAccess that does the work, which the tables \
                      above have. `NotShared`, `BeyondConsent` and `HeldByClaim` are for the administrator of the \
                      S3Backend to change, and the claim is `Pending` meanwhile. With every other reason that is \
                      Stalled it is `Failed`.";

/// Advice for a reason.
pub struct Advice {
    /// Conditions that have it, with their status, besides `Stalled` and `Reconciling`.
    at: &'static [(&'static str, &'static str)],
    /// Checks and changes to make.
    todo: &'static str,
    /// The point at which the operator continues.
    then: &'static str,
    /// Helpful commands.
    look: &'static [&'static str],
}

/// Defines the table `ALL` with advice for each reason of an enum. Doesn't compile if a reason is
/// missing.
macro_rules! table {
    ($enum:ident { $($reason:ident { $($field:ident: $value:expr),* $(,)? })* }) => {
        pub(super) const ALL: &[($enum, super::Advice)] =
            &[$(($enum::$reason, super::Advice { $($field: $value),* })),*];
        const _: fn($enum) = |reason| match reason { $($enum::$reason => (),)* };
    };
}

mod accesses;
mod backends;
mod claims;
mod obcs;

/// A reason of one kind of object.
struct Entry {
    kind: &'static str,
    reason: String,
    /// Conditions that have it, with their status.
    at: Vec<(&'static str, &'static str)>,
    /// These conditions in words.
    place: String,
    means: String,
    todo: &'static str,
    then: &'static str,
    look: &'static [&'static str],
}

impl Entry {
    /// Returns `Stalled`, `Reconciling`, or an empty string.
    fn beside(&self) -> &'static str {
        self.at
            .iter()
            .map(|(condition, _)| *condition)
            .find(|it| matches!(*it, "Stalled" | "Reconciling"))
            .unwrap_or("")
    }
}

/// Prefixes of the ids in the contract's tables of reasons, except for those of accesses. The first
/// row of a reason has its explanation.
const OF_CLAIMS: [&str; 3] = ["1.ready.", "1.bucketCreated.", "1.credentialsProvisioned."];
const OF_BACKENDS: [&str; 1] = ["1.backend.reason."];

/// A row of a table of reasons.
struct Row<'a> {
    reason: &'a str,
    stalled: bool,
    when: &'a str,
}

/// Returns the rows of the contract's tables with first cells that begin so.
fn rows<'a>(first: &str, text: &'a str) -> Vec<Row<'a>> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.strip_prefix(first));
    let row = |row: &'a str| {
        let when = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
        Row { reason: row.split('`').next().unwrap_or_default(), stalled: row.contains("| Stalled |"), when }
    };
    rows.map(row).collect()
}

/// Returns the contract's table of reasons of accesses.
fn of_accesses() -> &'static str {
    let (_, section) = SPEC.split_once("### BucketAccess: status\n").expect("it is there");
    section.split_once("\n### ").expect("another follows").0
}

/// Returns the explanations of reasons, without references to sections of the contract.
fn meanings(rows: impl IntoIterator<Item = Row<'static>>) -> BTreeMap<String, String> {
    let place = Regex::new(r" \(§[0-9.]+\)").expect("it is one");
    let mut meanings = BTreeMap::new();
    for Row { reason, when, .. } in rows {
        meanings.entry(reason.to_owned()).or_insert_with(|| place.replace_all(when, "").into_owned());
    }
    meanings
}

/// Returns the entries of a kind. `stalls` returns `None` for a reason with neither `Stalled` nor
/// `Reconciling`.
fn entries<R: fmt::Display + Copy + 'static>(
    kind: &'static str,
    rows: impl IntoIterator<Item = Row<'static>>,
    table: &'static [(R, Advice)],
    stalls: impl Fn(R) -> Option<bool>,
) -> Vec<Entry> {
    let meanings = meanings(rows);
    let entry = |(reason, advice): &'static (R, Advice)| {
        let mut at = advice.at.to_vec();
        if at.contains(&READY)
            && let Some(stalls) = stalls(*reason)
        {
            at.push((if stalls { "Stalled" } else { "Reconciling" }, "True"));
        }
        let reason = reason.to_string();
        let means =
            meanings.get(&reason).unwrap_or_else(|| panic!("the contract does not have {reason} of {kind}")).clone();
        let place = place(&at);
        let &Advice { todo, then, look, .. } = advice;
        Entry { kind, reason, at, place, means, todo, then, look }
    };
    table.iter().map(entry).collect()
}

/// Describes the conditions that have a reason.
fn place(at: &[(&str, &str)]) -> String {
    let mut words = String::new();
    for (number, (condition, status)) in at.iter().enumerate() {
        words.push_str(match (number, *condition) {
            (0, _) => "",
            (_, "Stalled" | "Reconciling") => ", ",
            (_, _) => ", also ",
        });
        let _ = write!(words, "`{condition}` {status}");
    }
    words
}

fn all() -> Vec<Entry> {
    let of_claims = OF_CLAIMS.into_iter().flat_map(|first| rows(first, SPEC));
    let of_backends = OF_BACKENDS.into_iter().flat_map(|first| rows(first, SPEC));
    let stalls = |reason: Reason| (reason != Reason::Paused).then(|| reason.stalls());
    let mut all = entries(CLAIM, of_claims, claims::ALL, stalls);
    let stalls = |reason: AccessReason| (reason != AccessReason::Paused).then(|| reason.stalls());
    all.extend(entries(ACCESS, rows("", of_accesses()), accesses::ALL, stalls));
    all.extend(entries(BACKEND, of_backends, backends::ALL, |reason: BackendReason| Some(reason.stalls())));
    all.extend(obcs::ALL.iter().map(|told| Entry {
        kind: OBC,
        reason: told.reason.to_owned(),
        at: Vec::new(),
        place: format!("an Event, the phase is {}", told.phase),
        means: told.means.to_owned(),
        todo: told.todo,
        then: told.then,
        look: &[],
    }));
    all
}

/// Writes a paragraph, wrapped at [`COLUMNS`].
fn write_paragraph(text: &str, page: &mut String) {
    page.push('\n');
    let mut column = 0;
    for word in text.split_whitespace() {
        if column > 0 && column + 1 + word.chars().count() > COLUMNS {
            page.push('\n');
            column = 0;
        } else if column > 0 {
            page.push(' ');
            column += 1;
        }
        page.push_str(word);
        column += word.chars().count();
    }
    page.push('\n');
}

/// Writes the table of a kind's reasons, with links.
fn write_index((kind, heading): (&str, &str), entries: &[Entry], page: &mut String) {
    let _ = write!(page, "\n## {heading}\n\n| reason | | what it means |\n|---|---|---|\n");
    for entry in entries.iter().filter(|entry| entry.kind == kind) {
        let Entry { reason, means, .. } = entry;
        let _ = writeln!(page, "| [{reason}](#{}) | {} | {means} |", reason.to_lowercase(), entry.beside());
    }
}

fn write_entry(entry: &Entry, page: &mut String) {
    let Entry { kind, place, means, todo, then, look, .. } = entry;
    write_paragraph(&format!("**{kind}** ({place}): {means}"), page);
    write_paragraph(&format!("*What to do:* {todo}"), page);
    if !look.is_empty() {
        page.push('\n');
        for command in *look {
            let _ = writeln!(page, "    {command}");
        }
    }
    write_paragraph(&format!("*When it goes on:* {then}"), page);
}

#[test]
fn each_reason_has_its_meaning_and_what_to_do() {
    let all = all();
    let mut page = INTRO.to_owned();
    for kind in [
        (CLAIM, "Of BucketClaims"),
        (ACCESS, "Of BucketAccesses"),
        (BACKEND, "Of S3Backends"),
        (OBC, "Of ObjectBucketClaims"),
    ] {
        write_index(kind, &all, &mut page);
    }
    write_paragraph(BEHIND, &mut page);
    let mut by_reason: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    all.iter().for_each(|entry| by_reason.entry(&entry.reason).or_default().push(entry));
    for (reason, entries) in by_reason {
        let _ = writeln!(page, "\n## {reason}");
        for entry in entries {
            let texts = [entry.place.as_str(), &entry.means, entry.todo, entry.then];
            assert!(texts.iter().all(|text| !text.is_empty()), "{} of {} lacks something", entry.reason, entry.kind);
            write_entry(entry, &mut page);
        }
    }
    assert_page("docs/operate/troubleshooting.md", &page);
}

/// Returns the reasons of a kind's condition of this type, each with true if it is `Stalled`.
fn known(all: &[Entry], kind: &str, condition: &str) -> BTreeSet<(String, bool)> {
    let has_it = |entry: &&Entry| entry.kind == kind && entry.at.iter().any(|(it, _)| *it == condition);
    all.iter().filter(has_it).map(|entry| (entry.reason.clone(), entry.beside() == "Stalled")).collect()
}

/// Returns the reasons of the contract's rows, each with true if it is `Stalled`.
fn contracted(rows: Vec<Row<'_>>) -> BTreeSet<(String, bool)> {
    rows.into_iter().map(|row| (row.reason.to_owned(), row.stalled)).collect()
}

fn names(reasons: BTreeSet<(String, bool)>) -> BTreeSet<String> {
    reasons.into_iter().map(|(reason, _)| reason).collect()
}

#[test]
fn the_page_has_the_reasons_of_the_contract() {
    let all = all();
    assert_eq!(known(&all, CLAIM, "Ready"), contracted(rows(OF_CLAIMS[0], SPEC)));
    assert_eq!(known(&all, ACCESS, "Ready"), contracted(rows("", of_accesses())));
    // The contract doesn't say which reasons of a backend are `Stalled`.
    assert_eq!(names(known(&all, BACKEND, "Ready")), names(contracted(rows(OF_BACKENDS[0], SPEC))));
    for (condition, first) in [("BucketCreated", OF_CLAIMS[1]), ("CredentialsProvisioned", OF_CLAIMS[2])] {
        let (known, of_contract) = (names(known(&all, CLAIM, condition)), names(contracted(rows(first, SPEC))));
        assert!(!of_contract.is_empty() && known.is_superset(&of_contract), "{condition}: {known:?}, {of_contract:?}");
    }
}

#[test]
fn what_the_operator_says_in_the_scenarios_stands_there() {
    let all = all();
    let (mut kind, mut seen) = ("", 0);
    for line in MESSAGES.lines().map(str::trim) {
        kind = match line.split(' ').next() {
            Some("bucketclaim") => CLAIM,
            Some("s3backend") => BACKEND,
            _ => kind,
        };
        let Some((condition, rest)) = line.split_once('=') else { continue };
        let Some((status, reason)) = rest.split_once(':').and_then(|(head, _)| head.split_once(' ')) else { continue };
        if !matches!(status, "True" | "False") {
            continue;
        }
        let is_it =
            |entry: &Entry| entry.kind == kind && entry.reason == reason && entry.at.contains(&(condition, status));
        assert!(all.iter().any(is_it), "{kind} {line}");
        seen += 1;
    }
    assert!(seen > 300, "where are they? {seen}");
}

/// Reasons of ObjectBucketClaims are in no enum, so the test finds them in the source as strings.
#[test]
fn the_page_has_each_event_of_object_bucket_claims() {
    let word = Regex::new(r#""([A-Z][a-z]+(?:[A-Z][a-z]+)+)"|Stop::new\(Phase::\w+, "(\w+)""#).expect("it is one");
    let mut words = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("operator/src/plan/obc")).expect("it is there") {
        let path = entry.expect("it can be read").path();
        if path.extension().is_some_and(|it| it == "rs") && path.file_stem().is_some_and(|it| it != "tests") {
            let text = read(&path);
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            let found = word.captures_iter(text).filter_map(|found| found.get(1).or_else(|| found.get(2)));
            words.extend(found.map(|found| found.as_str().to_owned()));
        }
    }
    // These strings are kinds, not reasons.
    for kind in ["BucketAccess", "BucketClaim", "ObjectBucket", "ObjectBucketClaim"] {
        words.remove(kind);
    }
    let known: BTreeSet<String> = obcs::ALL.iter().map(|told| told.reason.to_owned()).collect();
    assert_eq!(words, known);
}
