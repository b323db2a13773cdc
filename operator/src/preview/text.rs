//! Both as text for people.

use std::fmt::Write;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::line::{Line, Next, Object};
use super::plan::Plan;
use super::why::Why;

/// Widest that the column of names gets.
const WIDEST: usize = 60;

/// Width of the column of names that `why` has: the longest is that of a condition.
const COLUMN: usize = "CredentialsProvisioned".len();

/// Whether text has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint(pub bool);

impl Paint {
    /// A text in a colour, by its number in SGR.
    fn with(self, colour: u8, text: &str) -> String {
        if self.0 { format!("\u{1b}[{colour}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn next(self, next: &Next) -> String {
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

/// What others wrote may hold anything: nothing of it moves the cursor.
fn plain(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}

impl Plan {
    /// As text: a line each, and how many there are. `pending`: without those that have nothing to
    /// do.
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
        let backends = of(|object| matches!(object, Object::Backend(_)));
        let mut all = vec![many(claims, "claim")];
        if backends > 0 {
            all.push(many(backends, "backend"));
        }
        let all = all.join(" and ");
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

fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

impl Why {
    /// As text, at this time.
    pub fn text(&self, paint: Paint, now: Timestamp) -> String {
        let mut text = String::new();
        let mut row = |name: &str, says: &str| {
            let _ = writeln!(text, "{name:<COLUMN$}  {says}");
        };
        let status = &self.status;
        row("Claim", &plain(&self.claim.to_string()));
        row("Phase", &self.phase(now));
        for condition in &status.conditions {
            row(&plain(&condition.type_), &said(condition, now));
        }
        row("Next", &paint.next(&self.next));
        if let Some(doubt) = &self.doubt {
            row("", &format!("({})", plain(doubt)));
        }
        let mut names = std::iter::once("Goes on if").chain(std::iter::repeat("or if"));
        for change in &self.changes {
            row(names.next().unwrap_or_default(), &plain(change));
        }
        if let Some(backend) = &self.backend {
            let endpoint = backend.endpoint.as_ref().map_or_else(|| "is not there".to_owned(), |it| format!("at {it}"));
            row("Backend", &plain(&format!("{} {endpoint}", backend.name)));
            if let Some(ready) = &backend.ready {
                row("", &said(ready, now));
            }
        }
        let mut names = std::iter::once("Store").chain(std::iter::repeat(""));
        for heard in &self.heard {
            row(names.next().unwrap_or_default(), &format!("{}, asked just now", plain(heard)));
        }
        text
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

fn said(condition: &Condition, now: Timestamp) -> String {
    let since = since(condition.last_transition_time.0, now);
    plain(&format!("{} {}, since {since}: {}", condition.status, condition.reason, condition.message))
}

/// A time, and how long ago it was: `2026-01-01T00:00:00Z (5 min)`.
fn since(then: Timestamp, now: Timestamp) -> String {
    format!("{then} ({})", long(now.duration_since(then).max(SignedDuration::ZERO)))
}

/// A length of time, in the greatest unit that it has two of.
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
    use super::super::line::Deed;
    use super::*;
    use crate::api::ClaimRef;

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
    fn how_long_ago_is_told_in_one_unit() {
        let of = |seconds| long(SignedDuration::from_secs(seconds));
        assert_eq!([0, 119, 120, 7_199, 7_200, 172_800].map(of), ["0 s", "119 s", "2 min", "119 min", "2 h", "2 days"]);
    }
}
