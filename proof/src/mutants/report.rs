//! Results of the mutants as text, as JSON, and as a page in Markdown.

use std::fmt::Write;

use serde_json::{Value, json};
use terminal::Table;

use super::catalogue::Mutant;
use super::explore::Kill;
use super::named_test::NamedTest;
use super::run::{MutantOutcome, MutationReport, Verdict};

/// Width of the table on a terminal. It is large because replay lines are long.
const WIDTH: usize = 160;

/// Returns the document of `--list -o json`.
pub fn catalogue(mutants: &[Mutant]) -> Value {
    let mutant = |it: &Mutant| {
        let promises: Vec<&str> = it.promises().iter().map(|promise| promise.name()).collect();
        json!({
            "name": it.name, "bug": it.bug, "from": it.origin, "promises": promises, "scenarios": it.scenarios(),
            "plan": it.plan(), "test": test(it),
        })
    };
    json!({ "mutants": mutants.iter().map(mutant).collect::<Vec<Value>>() })
}

/// Returns the test that finds a mutant, as text.
fn test(mutant: &Mutant) -> Option<String> {
    mutant.test().map(NamedTest::to_string)
}

/// Returns the document of `-o json` (spec §5), with at least `name`, `killed`, `fault` and
/// `seconds` of each mutant.
pub fn document(report: &MutationReport) -> Value {
    let mutant = |outcome: &MutantOutcome| {
        let (kill, words, problem) = match &outcome.verdict {
            Verdict::Killed(kill) => (Some(kill), Some(&kill.message), None),
            Verdict::FailedTest(words) => (None, Some(words), None),
            Verdict::Survived => (None, None, None),
            Verdict::Failed(why) => (None, None, Some(why)),
        };
        json!({
            "name": outcome.mutant.name,
            "killed": outcome.is_killed(),
            "fault": kill.map(Kill::fault),
            "seconds": outcome.seconds,
            "promise": kill.map(|kill| &kill.promise),
            "promises": kill.map(|kill| &kill.promises),
            "message": words,
            "test": test(&outcome.mutant),
            "met": kill.map(|kill| kill.met),
            "problem": problem,
            "schedules": outcome.schedules,
            "build_seconds": outcome.build.as_secs_f64(),
            "bug": outcome.mutant.bug,
            "from": outcome.mutant.origin,
        })
    };
    json!({
        "mutants": report.outcomes.iter().map(mutant).collect::<Vec<Value>>(),
        "killed": report.killed().count(),
        "total": report.outcomes.len(),
        "median_seconds": report.median(),
        "unbroken": report.unbroken(),
    })
}

/// Returns the table and its summary.
pub fn text(report: &MutationReport) -> String {
    let mut table = Table::new(&["MUTANT", "PROMISES", "SECONDS", "BUILD", "SCHEDULES", "KILLED BY"]);
    for outcome in &report.outcomes {
        let (promises, by, _) = verdict(outcome);
        let cells = [
            outcome.mutant.name.clone(),
            promises,
            format!("{:.2}", outcome.seconds),
            format!("{:.0}", outcome.build.as_secs_f64()),
            outcome.schedules.to_string(),
            by,
        ];
        table.row(cells.map(Into::into));
    }
    let mut text = String::new();
    for line in table.lines(WIDTH) {
        line.iter().for_each(|span| text.push_str(&span.text));
        text.push('\n');
    }
    let sentences = std::iter::once(summary(report)).chain(notes(report));
    sentences.fold(text + "\n", |text, sentence| text + &sentence + "\n")
}

/// Returns the broken promises and the schedule that breaks them; for a test, a dash and the test;
/// otherwise the reason why there is neither. The last value is true if the schedule or test can be
/// run.
fn verdict(outcome: &MutantOutcome) -> (String, String, bool) {
    let none = || "-".to_owned();
    match (&outcome.verdict, outcome.mutant.test()) {
        (Verdict::Killed(kill), _) => (kill.promises.join(", "), kill.fault().to_owned(), true),
        (Verdict::FailedTest(_), Some(test)) => (none(), test.to_string(), true),
        (Verdict::FailedTest(words), None) => (none(), words.clone(), false),
        (Verdict::Survived, _) => (none(), "it survives".to_owned(), false),
        (Verdict::Failed(why), _) => (none(), format!("not tried: {why}"), false),
    }
}

/// Returns a one-sentence summary.
pub(super) fn summary(report: &MutationReport) -> String {
    let (killed, total) = (report.killed().count(), report.outcomes.len());
    let median =
        report.median().map(|median| format!(", in {median:.2} s of exploration (median)")).unwrap_or_default();
    let alive: Vec<_> = report.alive().map(|outcome| outcome.mutant.name.as_str()).collect();
    let alive = if alive.is_empty() { String::new() } else { format!("; not: {}", alive.join(", ")) };
    format!("{killed} of {total} mutants killed{median}{alive}")
}

/// Returns an error message about the problems in a report: mutants that survived or break none of
/// the promises in their headers and, if `all` mutants were tried, promises that no mutant breaks.
/// Each of these may be an oracle that no longer detects anything.
pub fn trouble(report: &MutationReport, all: bool) -> Option<String> {
    let is_fine =
        report.alive().next().is_none() && report.mistaken().next().is_none() && (!all || report.unbroken().is_empty());
    (!is_fine).then(|| [summary(report)].into_iter().chain(notes(report)).collect::<Vec<_>>().join("; "))
}

/// Returns notes about the oracles: promises that no mutant broke, and mutants that break none of
/// the promises in their headers.
fn notes(report: &MutationReport) -> Vec<String> {
    let unbroken = report.unbroken();
    let mistaken: Vec<_> = report.mistaken().map(|outcome| outcome.mutant.name.as_str()).collect();
    let note = |names: &[&str], what: &str| (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")));
    let notes = [
        note(&unbroken, "Promises that none of them breaks"),
        note(&mistaken, "Mutants that break other promises than their headers name"),
    ];
    notes.into_iter().flatten().collect()
}

const PREFACE: &str = "\
# Mutants

Bugs that were put into the operator on purpose, one at a time, and what the exploration killed each with. Written by
`stowage-proof mutants -o markdown`; the patches are in `proof/mutants`. Seconds are of exploration, until the
first broken promise; the build of a mutant is not among them. The promises are all that it breaks under that line,
in the order in which they were found broken. The fault is the line that `stowage-proof replay` takes; the
unmutated operator keeps every promise under it. Where it makes other calls than the mutant, a fault of the line may meet none
of them; such a line is marked with †. Where the exploration can't see a bug, the test stands there that fails with it and
passes without.
";

/// Returns a page in Markdown.
pub fn markdown(report: &MutationReport) -> String {
    let mut text = format!("{PREFACE}\n{}.\n\n", summary(report));
    for note in notes(report) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{note}.\n");
    }
    text.push_str("| mutant | bug | from | promises | killed by | seconds |\n|---|---|---|---|---|---|\n");
    let cell = |text: &str| text.replace('|', "\\|");
    for outcome in &report.outcomes {
        let (promises, by, can_be_run) = verdict(outcome);
        let by = if can_be_run { format!("`{by}`") } else { by };
        let met = !matches!(&outcome.verdict, Verdict::Killed(kill) if !kill.met);
        let by = if met { by } else { format!("{by} †") };
        let mutant = &outcome.mutant;
        let (bug, from, by) = (cell(&mutant.bug), cell(&mutant.origin), cell(&by));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| `{}` | {bug} | {from} | {promises} | {by} | {:.2} |", mutant.name, outcome.seconds);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::mutants::Mutant;

    fn outcome(name: &str, seconds: f64, verdict: Verdict) -> MutantOutcome {
        let text = format!("Mutant: {name}\nBug: B | b.\nFrom: F\nOracles: I1\nScenarios: s\n\ndiff");
        let mutant = Mutant::parse(name, &text).expect("it is well-formed");
        MutantOutcome { mutant, verdict, seconds, schedules: 3, build: Duration::from_secs(20) }
    }

    fn tested(name: &str, verdict: Verdict) -> MutantOutcome {
        let text = format!("Mutant: {name}\nBug: B.\nFrom: F\nTest: a/tests/b c\n\ndiff");
        MutantOutcome { mutant: Mutant::parse(name, &text).expect("it is well-formed"), ..outcome("e", 60.0, verdict) }
    }

    fn report() -> MutationReport {
        let kill = |promise: &str| Kill {
            line: "create 1 #3 lost-answer".to_owned(),
            promise: promise.to_owned(),
            message: "gone".to_owned(),
            shrunk: None,
            promises: vec![promise.to_owned(), "L1".to_owned()],
            met: promise != "L2",
        };
        MutationReport {
            outcomes: vec![
                outcome("a", 0.5, Verdict::Killed(kill("I1"))),
                outcome("b", 9.0, Verdict::Survived),
                outcome("c", 1.5, Verdict::Killed(kill("L2"))),
                outcome("d", 0.0, Verdict::Failed("it does not apply".to_owned())),
                outcome("e", 2.5, Verdict::Killed(kill("E1"))),
            ],
        }
    }

    #[test]
    fn machines_get_the_fields_of_the_contract() {
        let document = document(&report());
        assert_eq!(document["mutants"][0]["fault"], "create 1 #3 lost-answer");
        assert_eq!(document["mutants"][0]["killed"], true);
        assert_eq!(document["mutants"][1]["killed"], false);
        assert!(document["mutants"][1]["fault"].is_null());
        assert_eq!(document["mutants"][3]["problem"], "it does not apply");
        assert_eq!(document["median_seconds"], 1.5);
    }

    #[test]
    fn people_get_a_table_and_a_sentence() {
        let text = text(&report());
        assert!(text.contains("3 of 5 mutants killed, in 1.50 s of exploration (median); not: b, d"), "{text}");
        assert!(text.contains("\nMutants that break other promises than their headers name: c, e\n"), "{text}");
        let unbroken = text.lines().find(|line| line.starts_with("Promises that none of them breaks: "));
        assert!(unbroken.is_some_and(|line| line.contains("I2") && !line.contains("L1")), "{text}");
        assert!(text.lines().nth(2).is_some_and(|line| line.ends_with("it survives")), "{text}");
    }

    /// The second mutant breaks no promise that its header names. No run covers all promises.
    #[test]
    fn blind_oracles_are_trouble_as_survivors_are() {
        let of = |index: usize| MutationReport { outcomes: vec![report().outcomes.swap_remove(index)] };
        assert_eq!(trouble(&of(0), false), None);
        assert!(trouble(&of(0), true).is_some_and(|it| it.contains("; Promises that none of them breaks: I2")));
        assert!(trouble(&of(1), false).is_some_and(|it| it.contains("; not: b")));
        assert!(trouble(&of(2), false).is_some_and(|it| it.contains("name: c")));
    }

    #[test]
    fn a_test_that_fails_kills_a_mutant_and_breaks_no_promise() {
        let failed = Verdict::FailedTest("1 of 2".to_owned());
        let tested = vec![tested("f", failed), tested("g", Verdict::Survived)];
        let report = MutationReport { outcomes: [report().outcomes, tested].concat() };
        let document = document(&report);
        assert_eq!(document["mutants"][5]["killed"], true);
        assert_eq!(document["mutants"][5]["message"], "1 of 2");
        assert_eq!(document["mutants"][5]["test"], "a/tests/b c");
        assert_eq!(document["mutants"][6]["killed"], false);
        assert_eq!(document["killed"], 4);
        assert_eq!(document["median_seconds"], 1.5);
        assert_eq!(report.mistaken().map(|it| it.mutant.name.as_str()).collect::<Vec<_>>(), ["c", "e"]);
        assert!(markdown(&report).contains("| `f` | B. | F | - | `a/tests/b c` | 60.00 |"));
        assert!(markdown(&report).contains("| `g` | B. | F | - | it survives | 60.00 |"));
        assert!(text(&report).contains("4 of 7 mutants killed, in 1.50 s of exploration (median); not: b, d, g"));
        assert_eq!(catalogue(&[report.outcomes[5].mutant.clone()])["mutants"][0]["test"], "a/tests/b c");
    }

    #[test]
    fn the_page_has_a_row_for_each() {
        let page = markdown(&report());
        assert!(page.contains("| `a` | B \\| b. | F | I1, L1 | `create 1 #3 lost-answer` | 0.50 |"), "{page}");
        assert_eq!(page.lines().filter(|line| line.starts_with("| `")).count(), 5);
        let marked: Vec<&str> = page.lines().filter(|line| line.contains("` †")).collect();
        assert!(matches!(marked.as_slice(), [c] if c.starts_with("| `c`")), "{page}");
    }
}
