//! Formats a plan as text for people.

use std::fmt::Write;

use super::line::{Line, Next, Object};
use super::plan::Plan;

/// Maximum width of the column of names.
const WIDEST: usize = 60;

/// Colours of text, on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint(pub bool);

impl Paint {
    /// Wraps a text in a colour, by its SGR number.
    fn with(self, colour: u8, text: &str) -> String {
        if self.0 { format!("\u{1b}[{colour}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(super) fn next(self, next: &Next) -> String {
        let (text, colour) = (plain(&next.to_string()), colour(next));
        colour.map_or_else(|| text.clone(), |colour| self.with(colour, &text))
    }
}

fn colour(next: &Next) -> Option<u8> {
    const RED: u8 = 31;
    const YELLOW: u8 = 33;
    const CYAN: u8 = 36;
    match next {
        Next::Nothing(_) | Next::LeftAlone(_) => None,
        Next::Act(_) => Some(YELLOW),
        Next::Wait(..) => Some(CYAN),
        Next::Unknown(_) => Some(RED),
    }
}

/// Replaces control characters, so that text written by others can't move the cursor.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}

impl Plan {
    /// Formats the plan: one line per object, and a summary. `pending` omits objects with nothing
    /// to do.
    pub fn text(&self, paint: Paint, pending: bool) -> String {
        let shown = |line: &&Line| !pending || !matches!(line.next, Next::Nothing(_) | Next::LeftAlone(_));
        let lines: Vec<&Line> = self.lines.iter().filter(shown).collect();
        let width =
            lines.iter().map(|line| line.object.to_string().chars().count()).max().unwrap_or_default().min(WIDEST);
        let mut text = String::new();
        for line in &lines {
            let doubt = line.doubt.as_ref().map_or_else(String::new, |doubt| format!(" ({})", plain(doubt)));
            let _ = writeln!(text, "{:width$}  {}{doubt}", plain(&line.object.to_string()), paint.next(&line.next));
        }
        if !lines.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "{}", self.summary());
        text
    }

    fn summary(&self) -> String {
        let of = |such: fn(&Object) -> bool| self.lines.iter().filter(|line| such(&line.object)).count();
        let claims = of(|object| matches!(object, Object::Claim(_)));
        let accesses = of(|object| matches!(object, Object::Access(_)));
        let obcs = of(|object| matches!(object, Object::Obc(_)));
        let backends = of(|object| matches!(object, Object::Backend(_)));
        let others = [
            (accesses, "access", "accesses"),
            (obcs, "ObjectBucketClaim", "ObjectBucketClaims"),
            (backends, "backend", "backends"),
        ];
        let others = others.into_iter().filter(|(count, ..)| *count > 0);
        // Without any object, the summary says that there are no claims.
        let others: Vec<String> = others.map(|(count, one, many)| counted(count, one, many)).collect();
        let claims = (claims > 0 || accesses + obcs == 0).then(|| counted(claims, "claim", "claims"));
        let all = joined(&claims.into_iter().chain(others).collect::<Vec<_>>());
        let mut text = match self.to_do() {
            0 => format!("Nothing to do about {all}"),
            some => format!("Something to do about {some} of these: {all}"),
        };
        for (count, what) in [(self.waiting(), "waiting"), (self.unknown(), "unknown")] {
            if count > 0 {
                let _ = write!(text, ", {count} {what}");
            }
        }
        text.push('.');
        text
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Joins as `a`, `a and b`, `a, b and c`.
fn joined(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::super::line::Deed;
    use super::*;
    use crate::api::{AccessRef, ClaimRef};

    fn line(name: &str, next: Next) -> Line {
        let claim = ClaimRef { namespace: "team-a".into(), name: name.into() };
        Line { object: Object::Claim(claim), next, doubt: None }
    }

    fn plan() -> Plan {
        let deed = Deed {
            words: "create bucket photos at S3Backend main".into(),
            step: "create bucket photos".into(),
            act: None,
        };
        let until = Timestamp::from_second(60).expect("a time");
        let lines = vec![
            Line { object: Object::Backend("main".into()), next: Next::Nothing(None), doubt: None },
            line("films", Next::Nothing(Some(until))),
            line("photos", Next::Act(Box::new(deed))),
            line("scratch", Next::Wait("bucket x is not\u{1b}[2Jempty".into(), Some(until))),
            line("b", Next::Unknown("no answer".into())),
        ];
        Plan { lines, assumed: Vec::new() }
    }

    #[test]
    fn a_line_each_in_columns_and_how_many_there_are() {
        let expected = "\
s3backend/main  nothing to do
team-a/films    nothing to do before 1970-01-01T00:01:00Z
team-a/photos   create bucket photos at S3Backend main
team-a/scratch  wait: bucket x is not [2Jempty; looks again at 1970-01-01T00:01:00Z
team-a/b        can't tell: no answer

Something to do about 1 of these: 4 claims and 1 backend, 1 waiting, 1 unknown.
";
        assert_eq!(plan().text(Paint(false), false), expected);
        assert_eq!(plan().text(Paint(false), true).lines().count(), 5, "those with nothing to do are left out");
        let none = Plan { lines: vec![line("a", Next::Nothing(None))], assumed: Vec::new() };
        assert_eq!(none.text(Paint(true), true), "Nothing to do about 1 claim.\n");
    }

    #[test]
    fn colours_are_for_terminals_and_nobody_else_moves_the_cursor() {
        let text = plan().text(Paint(true), false);
        assert!(text.contains("\u{1b}[33mcreate bucket photos at S3Backend main\u{1b}[0m\n"), "{text}");
        assert!(!text.contains("\u{1b}[2J"), "{text}");
    }

    #[test]
    fn accesses_and_object_bucket_claims_are_counted_where_there_are_some() {
        let at = |name: &str| ("team-b".to_owned(), name.to_owned());
        let nothing = |object| Line { object, next: Next::Nothing(None), doubt: None };
        let access = |name| {
            let (namespace, name) = at(name);
            nothing(Object::Access(AccessRef { namespace, name }))
        };
        let (namespace, name) = at("charts");
        let obc = nothing(Object::Obc(ClaimRef { namespace, name }));
        let claims = plan().lines;
        let told = |lines: &[&Line]| {
            let lines = lines.iter().map(|line| (*line).clone()).collect();
            Plan { lines, assumed: Vec::new() }.text(Paint(false), true)
        };
        let (reader, writer) = (access("reader"), access("writer"));
        assert_eq!(told(&[&reader]), "Nothing to do about 1 access.\n");
        assert_eq!(told(&[&reader, &writer, &obc]), "Nothing to do about 2 accesses and 1 ObjectBucketClaim.\n");
        let all = told(&[&claims[0], &claims[1], &reader, &obc]);
        assert_eq!(all, "Nothing to do about 1 claim, 1 access, 1 ObjectBucketClaim and 1 backend.\n");
        let shown = Plan { lines: vec![reader, obc], assumed: Vec::new() }.text(Paint(false), false);
        let expected = "bucketaccess/team-b/reader  nothing to do\nobc/team-b/charts           nothing to do\n";
        assert!(shown.starts_with(expected), "{shown}");
    }
}
