//! Evidence that a promise is kept: names of tests, threats, alerts, oracles and mutants. Each name
//! is looked up in the tree.

use std::fs;

use stowage_proof::explorer::scenarios;
use stowage_proof::oracles::Promise;

use crate::root;

const OBJECT_TABLE: &str = "proof/src/objects/table.yaml";
const SCENARIOS_ON_SERVERS: &str = "e2e/src/scenarios/mod.rs";
const PLAYED_PAGES: &str = "e2e/src/guide/table.rs";
const THREATS: &str = "docs/security.md";
const ALERTS: &str = "charts/stowage/files/alerts.yaml";

/// The evidence of one promise for one kind of object.
pub(super) enum Cell<E: 'static> {
    /// The promise is kept: each of these fails when it is broken.
    Held(&'static [E]),
    /// The promise doesn't apply, for the reason in this sentence.
    Exempt(&'static str),
    /// No test shows the promise yet: the sentence names the missing one.
    Open(&'static str),
}

/// The state of a cell, regardless of its type of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Held,
    Exempt,
    Open,
}

/// A cell with evidence of any type.
pub(super) trait AnyCell {
    fn state(&self) -> State;

    /// Returns the content of the cell in Markdown.
    fn text(&self) -> String;

    /// Returns names that the tree doesn't have, and texts that are not sentences.
    fn problems(&self) -> Vec<String>;
}

impl<E: Evidence + 'static> AnyCell for Cell<E> {
    fn state(&self) -> State {
        match self {
            Self::Held(_) => State::Held,
            Self::Exempt(_) => State::Exempt,
            Self::Open(_) => State::Open,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Held(all) => all.iter().map(Evidence::text).collect::<Vec<_>>().join("<br>"),
            Self::Exempt(why) => (*why).to_owned(),
            Self::Open(missing) => format!("**Open.** {missing}"),
        }
    }

    fn problems(&self) -> Vec<String> {
        match self {
            Self::Held([]) => vec!["is held by nothing".to_owned()],
            Self::Held(all) => all.iter().filter_map(Evidence::problem).collect(),
            Self::Exempt(sentence) | Self::Open(sentence) => problem_of_sentence(sentence).into_iter().collect(),
        }
    }
}

/// Returns a problem of a text that is not one sentence, or that would break a table.
fn problem_of_sentence(text: &str) -> Option<String> {
    let is_one = text.ends_with('.') && text.starts_with(|first: char| first.is_uppercase() || first == '`');
    (!is_one || text.contains(". ") || text.contains(['|', '\n'])).then(|| format!("{text:?} is not one sentence"))
}

/// A name that refers to something in the tree.
pub(super) trait Evidence {
    /// Returns the name in Markdown.
    fn text(&self) -> String;

    /// Returns a problem if the tree doesn't have the name.
    fn problem(&self) -> Option<String>;
}

/// A test.
pub(super) enum Proof {
    /// A test function, by its file and name.
    Test(&'static str, &'static str),
    /// A case of the table of good and bad objects.
    Object(&'static str),
    /// A scenario of the explorer, which is played under every single fault.
    Explored(&'static str),
    /// A scenario that `stowage-e2e run` plays on a real API server.
    OnServer(&'static str),
    /// A page, by its path, whose commands `stowage-e2e guide` runs.
    Guide(&'static str),
    /// A function that a command of `stowage-e2e` runs: the command, the file and the name.
    Played(&'static str, &'static str, &'static str),
}

impl Evidence for Proof {
    fn text(&self) -> String {
        match self {
            Self::Test(file, name) => format!("`{file}::{name}`"),
            Self::Object(name) => format!("`{OBJECT_TABLE}::{name}`"),
            Self::Explored(name) => format!("scenario `{name}` of the explorer"),
            Self::OnServer(name) => format!("scenario `{name}` of `stowage-e2e run`"),
            Self::Guide(page) => format!("`{page}`, played by `stowage-e2e guide`"),
            Self::Played(command, file, name) => format!("`{file}::{name}`, played by `stowage-e2e {command}`"),
        }
    }

    fn problem(&self) -> Option<String> {
        match self {
            Self::Test(file, name) => unless(read(file).is_some_and(|text| has_test(&text, name)), &self.text()),
            Self::Object(name) => unless(has_line(OBJECT_TABLE, &format!("- name: {name}")), &self.text()),
            Self::Explored(name) => unless(scenarios::ALL.iter().any(|it| it.name == *name), &self.text()),
            Self::OnServer(name) => unless(has_line(SCENARIOS_ON_SERVERS, &format!("{},", camel(name))), &self.text()),
            Self::Guide(page) => {
                let is_played = read(PLAYED_PAGES).is_some_and(|text| text.contains(&format!("\"{page}\"")));
                unless(is_played && read(page).is_some(), &self.text())
            }
            Self::Played(_, file, name) => {
                unless(read(file).is_some_and(|text| text.contains(&format!("fn {name}("))), &self.text())
            }
        }
    }
}

/// A row of the threat model: the id of a rule in it, or some of its words.
pub(super) struct Threat(pub(super) &'static str);

impl Evidence for Threat {
    fn text(&self) -> String {
        let is_rule = self.0.starts_with(|first: char| first.is_ascii_digit());
        if is_rule { format!("`{}`", self.0) } else { format!("“{}”", self.0) }
    }

    fn problem(&self) -> Option<String> {
        let is_there = |line: &str| line.starts_with('|') && line.contains(self.0);
        unless(read(THREATS).is_some_and(|text| text.lines().any(is_there)), &format!("{THREATS}: {}", self.text()))
    }
}

/// An alert of the chart that has a runbook of the same name.
pub(super) struct Alert(pub(super) &'static str);

impl Evidence for Alert {
    fn text(&self) -> String {
        format!("[{0}](../operate/runbooks/{0}.md)", self.0)
    }

    fn problem(&self) -> Option<String> {
        let is_alert = has_line(ALERTS, &format!("- alert: {}", self.0));
        unless(is_alert && read(&format!("docs/operate/runbooks/{}.md", self.0)).is_some(), &self.text())
    }
}

/// A promise that an oracle judges, and a scenario of the explorer that can break it.
pub(super) struct Oracle(pub(super) Promise, pub(super) &'static str);

impl Evidence for Oracle {
    fn text(&self) -> String {
        format!("`{}` in `{}`", self.0, self.1)
    }

    fn problem(&self) -> Option<String> {
        unless(scenarios::ALL.iter().any(|it| it.name == self.1), &self.text())
    }
}

/// A mutant, by the name of its patch.
pub(super) struct Mutant(pub(super) &'static str);

impl Evidence for Mutant {
    fn text(&self) -> String {
        format!("`{}`", self.0)
    }

    fn problem(&self) -> Option<String> {
        unless(read(&format!("proof/mutants/{}.patch", self.0)).is_some(), &self.text())
    }
}

fn unless(is_there: bool, text: &str) -> Option<String> {
    (!is_there).then(|| format!("{text} is not there"))
}

/// Returns the text of a file of the tree.
fn read(path: &str) -> Option<String> {
    fs::read_to_string(root().join(path)).ok()
}

/// Returns true if a file has a line, with any indentation.
fn has_line(path: &str, wanted: &str) -> bool {
    read(path).is_some_and(|text| text.lines().any(|line| line.trim() == wanted))
}

/// Returns true if there is a test function of this name that is not ignored. Its attributes are
/// right above it.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_it = |line: &&str| {
        let bare = line.strip_prefix("async ").unwrap_or(line);
        let rest = bare.strip_prefix("fn ").and_then(|signature| signature.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with(['(', '<']))
    };
    let Some(place) = lines.iter().position(is_it) else { return false };
    let above: Vec<&&str> = lines[..place].iter().rev().take_while(|line| !line.is_empty()).collect();
    let has = |beginning: &str| above.iter().any(|line| line.starts_with(beginning));
    ["#[test]", "#[rstest]", "#[tokio::test"].into_iter().any(has) && !has("#[ignore")
}

/// Converts a name of the command line to that of an enum variant.
fn camel(name: &str) -> String {
    let capitalized = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('-').map(capitalized).collect()
}

#[test]
fn evidence_that_is_not_in_the_tree_is_told() {
    const HERE: &str = "proof/tests/held/evidence.rs";
    let there: [&dyn Evidence; 10] = [
        &Proof::Test(HERE, "evidence_that_is_not_in_the_tree_is_told"),
        &Proof::Object("the smallest claim gets every default, written out in full"),
        &Proof::Explored("rotate"),
        &Proof::OnServer("kept-secret"),
        &Proof::Guide("docs/guide/restore.md"),
        &Proof::Played("chart", "e2e/src/chart/policies.rs", "play"),
        &Threat("8.map"),
        &Alert("StowageNoLeader"),
        &Oracle(Promise::I1, "create"),
        &Mutant("scope-by-prefix"),
    ];
    let problems: Vec<_> = there.iter().filter_map(|it| it.problem()).collect();
    assert_eq!(problems, [] as [&str; 0]);
    let lost: [&dyn Evidence; 12] = [
        &Proof::Test(HERE, "evidence_that_is_not_in_the_tree"),
        &Proof::Test(HERE, "has_test"),
        &Proof::Test("house/tests/house/nowhere.rs", "evidence_that_is_not_in_the_tree_is_told"),
        &Proof::Object("the smallest claim"),
        &Proof::Explored("rotation"),
        &Proof::OnServer("secret"),
        &Proof::Guide("docs/guide/nowhere.md"),
        &Proof::Played("chart", "e2e/src/chart/policies.rs", "plays"),
        &Threat("Who may try what"),
        &Alert("StowageNoFollower"),
        &Oracle(Promise::I1, "creation"),
        &Mutant("scope"),
    ];
    let kept: Vec<_> = lost.iter().filter(|it| it.problem().is_none()).map(|it| it.text()).collect();
    assert_eq!(kept, [] as [&str; 0]);
}

#[test]
fn a_function_that_is_not_run_is_no_test() {
    let has = |attributes: &str| has_test(&format!("fn f() {{}}\n\n{attributes}\nasync fn works<T>() {{}}"), "works");
    assert!(has("#[test]") && has("#[rstest]\n#[case(\n    1\n)]") && has("#[tokio::test(start_paused = true)]"));
    assert!(!has("") && !has("#[test]\n#[ignore = \"slow\"]") && !has("#[test]\nfn other() {}\n"));
}

#[test]
fn a_cell_has_evidence_or_a_sentence() {
    let problems = |cell: Cell<Mutant>| cell.problems();
    assert_eq!(problems(Cell::Held(&[Mutant("scope-by-prefix")])), [] as [&str; 0]);
    assert_eq!(problems(Cell::Exempt("It has no key.")), [] as [&str; 0]);
    assert_eq!(problems(Cell::Held(&[])).len(), 1);
    for text in ["", "no key.", "It has no key", "It has none. Nor had it.", "It has a|b."] {
        assert_eq!(problems(Cell::Open(text)).len(), 1, "{text:?}");
    }
}
