//! Which test shows which rule of the contract: `docs/coverage.md`, held to the tests' own words.
//!
//! `docs/rules.yaml` lists the rules. A test that fails when a rule is broken says so in a comment right above its
//! attributes, which begins with `covers:` and names the rules. In the object table the comment stands above the case.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

const RULES: &str = "docs/rules.yaml";
const COVERAGE: &str = "docs/coverage.md";
/// Where tests are.
const SOURCES: [&str; 6] = ["operator/src", "operator/tests", "sim/src", "sim/tests", "e2e/src", "e2e/tests"];
/// Set to write the table anew.
const UPDATE: &str = "UPDATE_DOCS";

/// Rules that stand together in the contract.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    section: String,
    rules: Vec<Rule>,
}

/// One promise that can be checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    id: String,
    rule: String,
    /// It has no test yet.
    #[serde(default)]
    pending: bool,
    /// The issue that brings what it speaks of.
    later: Option<String>,
}

/// The tests that cover a rule, by its id, each as file and name.
type Covered = BTreeMap<String, BTreeSet<String>>;

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("can't read {path}: {error}"))
}

/// Files below a folder that can hold markers, in order.
fn files(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "yaml") {
            found.insert(path);
        }
    }
}

/// Every marker of the workspace, and what is wrong with any.
fn markers() -> (Covered, Vec<String>) {
    let mut found = BTreeSet::new();
    SOURCES.iter().for_each(|folder| files(&root().join(folder), &mut found));
    let (mut covered, mut problems) = (Covered::new(), Vec::new());
    for path in found {
        let name = path.strip_prefix(root()).expect("it is below the root").display().to_string();
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("can't read {name}: {error}"));
        let yaml = name.ends_with(".yaml");
        match markers_in(&text, yaml) {
            Ok(markers) if !markers.is_empty() && !yaml && !is_compiled(&path) => {
                problems.push(format!("{name} is no module of anything: its tests are not run"));
            }
            Ok(markers) => {
                for (id, test) in markers {
                    covered.entry(id).or_default().insert(format!("{name}::{test}"));
                }
            }
            Err(problem) => problems.push(format!("{name}: {problem}")),
        }
    }
    (covered, problems)
}

/// Whether a file of Rust is part of a crate: its root, or declared as a module by a file beside it or above it.
fn is_compiled(path: &Path) -> bool {
    let (Some(stem), Some(folder)) = (path.file_stem().and_then(|stem| stem.to_str()), path.parent()) else {
        return false;
    };
    let of_crate = folder.ends_with("tests") && folder.with_file_name("Cargo.toml").exists();
    if of_crate || matches!(stem, "main" | "lib" | "mod") {
        return true;
    }
    let declares = |file: PathBuf| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let (module, by_path) = (format!("mod {stem};"), format!("#[path = \"{stem}.rs\"]"));
        text.lines().any(|line| line.trim_start_matches("pub ") == module || line.trim() == by_path)
    };
    let beside = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    beside.chain([folder.with_extension("rs")]).any(declares)
}

/// Rules and the tests that they stand above.
fn markers_in(text: &str, yaml: bool) -> Result<Vec<(String, String)>, String> {
    let prefix = if yaml { "# covers:" } else { "// covers:" };
    let mut lines = text.lines().map(str::trim).peekable();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let Some(first) = line.strip_prefix(prefix) else { continue };
        let mut ids = vec![first];
        while let Some(more) = lines.peek().and_then(|line| line.strip_prefix(prefix)) {
            ids.push(more);
            lines.next();
        }
        let test = if yaml { case_of(lines.by_ref()) } else { test_of(lines.by_ref()) };
        let test = test.map_err(|why| format!("\"{line}\" {why}"))?;
        let ids = ids.iter().flat_map(|ids| ids.split(',')).map(|id| id.trim().to_owned());
        found.extend(ids.map(|id| (id, test.clone())));
    }
    Ok(found)
}

/// Name of the test function that begins here.
fn test_of<'a>(lines: impl Iterator<Item = &'a str>) -> Result<String, &'static str> {
    let mut is_test = false;
    for line in lines.take_while(|line| !line.is_empty()) {
        is_test |= ["#[test]", "#[rstest]", "#[tokio::test"].iter().any(|attribute| line.starts_with(attribute));
        if line.starts_with("#[ignore") {
            return Err("stands above a test that is not run");
        }
        let bare = line.strip_prefix("async ").unwrap_or(line);
        if let Some(signature) = bare.strip_prefix("fn ") {
            let name = signature.split(['(', '<']).next().unwrap_or_default();
            return if is_test { Ok(name.to_owned()) } else { Err("stands above a function that is no test") };
        }
    }
    Err("stands above no test")
}

/// Name of the case of the object table that begins here.
fn case_of<'a>(mut lines: impl Iterator<Item = &'a str>) -> Result<String, &'static str> {
    let name = lines.next().and_then(|line| line.strip_prefix("- name: "));
    name.map(str::to_owned).ok_or("stands above no case")
}

/// What does not fit between rules and markers.
fn contradictions(sections: &[Section], covered: &Covered) -> Vec<String> {
    let mut problems = Vec::new();
    let mut known = BTreeSet::new();
    for rule in sections.iter().flat_map(|section| &section.rules) {
        let id = &rule.id;
        if !known.insert(id.as_str()) {
            problems.push(format!("{id} is listed twice"));
        }
        match (covered.contains_key(id), rule.pending, &rule.later) {
            (_, true, Some(_)) => problems.push(format!("{id} is both pending and for later")),
            (true, true, None) | (true, false, Some(_)) => {
                problems.push(format!("{id} has a test: strike its pending or later in {RULES}"));
            }
            (false, false, None) => problems.push(format!("no test covers {id}")),
            _ => {}
        }
    }
    let unknown = covered.iter().filter(|(id, _)| !known.contains(id.as_str()));
    problems.extend(unknown.map(|(id, tests)| format!("{tests:?} cover {id:?}, which {RULES} does not list")));
    problems
}

fn render(sections: &[Section], covered: &Covered) -> String {
    let rules = || sections.iter().flat_map(|section| &section.rules);
    let (all, pending) = (rules().count(), rules().filter(|rule| rule.pending).count());
    let later = rules().filter(|rule| rule.later.is_some()).count();
    let tests: BTreeSet<&String> = covered.values().flatten().collect();
    let mut text = format!(
        "# Coverage\n\nWhich test fails when a rule of the contract is broken. Written by `just coverage` from \
         [rules.yaml](rules.yaml) and from\nwhat the tests say that they cover; `sim/tests/coverage.rs` compares.\n\n\
         {all} rules: {} with a test ({} tests cover them), {pending} without one yet, {later} for later issues.\n",
        all - pending - later,
        tests.len(),
    );
    for section in sections {
        write!(text, "\n## {}\n\n| rule | says | tests |\n|---|---|---|\n", section.section).expect("it is a string");
        for rule in &section.rules {
            let tests = match (covered.get(&rule.id), &rule.later) {
                (Some(tests), _) => tests.iter().map(|test| format!("`{test}`")).collect::<Vec<_>>().join("<br>"),
                (None, Some(issue)) => format!("later: {issue}"),
                (None, None) => "**no test yet**".to_owned(),
            };
            writeln!(text, "| `{}` | {} | {tests} |", rule.id, rule.rule.replace('|', "\\|")).expect("it is a string");
        }
    }
    text
}

/// Says where two texts part.
fn difference(stored: &str, fresh: &str) -> String {
    let (stored, fresh): (BTreeSet<&str>, BTreeSet<&str>) = (stored.lines().collect(), fresh.lines().collect());
    let gone = stored.difference(&fresh).map(|line| format!("- {line}\n"));
    let new = fresh.difference(&stored).map(|line| format!("+ {line}\n"));
    gone.chain(new).collect()
}

#[test]
fn every_rule_has_its_tests_and_the_table_says_which() {
    let sections: Vec<Section> = serde_saphyr::from_str(&read(RULES)).expect("the rules are well-formed");
    let (covered, mut problems) = markers();
    problems.extend(contradictions(&sections, &covered));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let fresh = render(&sections, &covered);
    if std::env::var_os(UPDATE).is_some() {
        fs::write(root().join(COVERAGE), &fresh).expect("the table can be written");
    }
    let stored = read(COVERAGE);
    assert!(
        stored == fresh,
        "{COVERAGE} is not what the tests say; `just coverage`, or {UPDATE}=1 for this test, writes it anew:\n{}",
        difference(&stored, &fresh)
    );
}

#[test]
fn a_marker_belongs_to_the_test_or_case_below_it() {
    let rust =
        "/// Doc.\n// covers: 1.a, 2.b\n// covers: 3.c\n#[rstest]\n#[case(\n    1\n)]\nasync fn works<T>() {\n}\n";
    let expected = ["1.a", "2.b", "3.c"].map(|id| (id.to_owned(), "works".to_owned()));
    assert_eq!(markers_in(rust, false).unwrap(), expected);
    let yaml = "# covers: 1.a\n- name: a name, with commas\n  kind: x\n";
    assert_eq!(markers_in(yaml, true).unwrap(), [("1.a".to_owned(), "a name, with commas".to_owned())]);
}

#[test]
fn a_marker_above_anything_else_is_refused() {
    let wrong = |text: &str, yaml| markers_in(text, yaml).unwrap_err();
    assert!(wrong("// covers: 1.a\nfn helper() {}", false).contains("no test"));
    assert!(wrong("// covers: 1.a\n\n#[test]\nfn x() {}", false).contains("no test"));
    assert!(wrong("// covers: 1.a\n#[test]\n#[ignore]\nfn x() {}", false).contains("not run"));
    assert!(wrong("# covers: 1.a\n\n- name: x", true).contains("no case"));
}

#[test]
fn rules_and_markers_must_fit_each_other() {
    let sections = |rules: &str| -> Vec<Section> {
        serde_saphyr::from_str(&format!("[{{section: s, rules: [{rules}]}}]")).expect("well-formed")
    };
    let covered = Covered::from([("1.a".to_owned(), BTreeSet::from(["f.rs::t".to_owned()]))]);
    let told = |rules: &str| contradictions(&sections(rules), &covered).join("\n");
    assert_eq!(told("{id: 1.a, rule: r}"), "");
    assert_eq!(told("{id: 1.a, rule: r}, {id: 1.b, rule: r, pending: true}, {id: 1.c, rule: r, later: i}"), "");
    assert!(told("{id: 1.b, rule: r, pending: true}").contains("does not list"));
    assert!(told("{id: 1.a, rule: r}, {id: 1.b, rule: r}").contains("no test covers 1.b"));
    assert!(told("{id: 1.a, rule: r, pending: true}").contains("strike"));
    assert!(told("{id: 1.a, rule: r}, {id: 1.a, rule: r}").contains("twice"));
}
