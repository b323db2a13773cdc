//! Tests that every rule of the contract is covered by a test, and that `proof/coverage.tsv` lists
//! these tests.
//!
//! The contract is `docs/spec.md`; its introduction defines the form of a rule. A test that fails
//! when a rule is broken has a comment right above its attributes, which begins with `covers:` and
//! names the rules. In the object table the comment is above the case.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const SPEC: &str = "docs/spec.md";
const COVERAGE: &str = "proof/coverage.tsv";
/// Prefix of a rule for a feature that is not built yet.
const NOT_YET: &str = "*Not yet.* ";
/// Environment variable that makes the test write the table.
const UPDATE: &str = "UPDATE_DOCS";

/// The part of the contract below one heading.
#[derive(Debug, Default)]
struct Section {
    /// Number as cited in code, such as `3.2`: its own, or that of the section that it is a part
    /// of.
    number: String,
    title: String,
    rules: Vec<Rule>,
}

/// A rule that can be checked.
#[derive(Debug, PartialEq)]
struct Rule {
    id: String,
    says: String,
    /// True if the feature is not built yet.
    not_yet: bool,
}

/// Tests that cover a rule, by its id, each as file and name.
type Covered = BTreeMap<String, BTreeSet<String>>;

/// Texts of the workspace by their paths: sources, tables of tests, documents, patches.
type Tree = BTreeMap<String, String>;

/// Returns the root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("can't read {path}: {error}"))
}

fn tree() -> Tree {
    let mut found = BTreeSet::new();
    files(&root(), &mut found);
    let relative = |path: &PathBuf| path.strip_prefix(root()).expect("it is below the root").display().to_string();
    found.iter().map(relative).map(|name| (name.clone(), read(&name))).collect()
}

/// Collects files below a folder that can contain markers or cite the contract; build output and
/// hidden files are skipped.
fn files(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let entry = entry.expect("it can be read");
        let (path, name) = (entry.path(), entry.file_name());
        if name == "target" || name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if entry.file_type().expect("it has a type").is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|it| ["rs", "yaml", "md", "patch"].iter().any(|known| it == *known)) {
            found.insert(path);
        }
    }
}

/// Parses the contract; returns its sections, and problems of its form.
fn parse(text: &str) -> (Vec<Section>, Vec<String>) {
    let (mut sections, mut problems) = (vec![Section::default()], Vec::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let section = sections.last_mut().expect("there is one from the beginning");
        if line.starts_with('#') {
            let below = heading(line, &section.number);
            sections.push(below);
        } else if let Some((id, rest)) = rule_after("- `", line) {
            let mut says = rest.trim().to_owned();
            while let Some(more) = lines.next_if(|line| line.starts_with("  ") && !line.trim().is_empty()) {
                says = format!("{says} {}", more.trim());
            }
            section.rules.push(rule(id, &says));
        } else if let Some((id, rest)) = rule_after("| `", line) {
            let cells: Vec<&str> = rest.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect();
            let (last, others) = cells.split_last().map_or(("", &[][..]), |(last, others)| (*last, others));
            let of = if others.is_empty() { String::new() } else { format!("{}: ", others.join(", ")) };
            section.rules.push(rule(id, &format!("{of}{last}")));
        }
    }
    for Section { number, title, rules } in &sections {
        let misplaced = rules.iter().filter(|rule| number_of(&rule.id) != Some(number));
        problems.extend(misplaced.map(|Rule { id, .. }| format!("{id} stands in section {title:?}, not in its own")));
        let empty = rules.iter().filter(|rule| rule.says.is_empty());
        problems.extend(empty.map(|Rule { id, .. }| format!("{id} says nothing")));
    }
    let known: BTreeSet<&str> = rules(&sections).map(|rule| rule.id.as_str()).collect();
    let spans = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let unknown = spans.filter(|span| number_of(span).is_some() && !known.contains(span));
    problems.extend(unknown.map(|id| format!("{id} begins no item of a list and no row of a table")));
    (sections, problems)
}

fn heading(line: &str, above: &str) -> Section {
    let title = line.trim_start_matches('#').trim();
    let (number, title) = match title.strip_prefix('§') {
        Some(rest) => (number_at(rest), title.to_owned()),
        None => (above, format!("§{above} {title}")),
    };
    Section { number: number.to_owned(), title, rules: Vec::new() }
}

/// Returns the id at the start of a line, and the rest of the line.
fn rule_after<'a>(mark: &str, line: &'a str) -> Option<(&'a str, &'a str)> {
    let (id, rest) = line.strip_prefix(mark)?.split_once('`')?;
    number_of(id).map(|_| (id, rest))
}

fn rule(id: &str, says: &str) -> Rule {
    let built = says.strip_prefix(NOT_YET);
    Rule { id: id.to_owned(), says: built.unwrap_or(says).to_owned(), not_yet: built.is_some() }
}

fn rules(sections: &[Section]) -> impl Iterator<Item = &Rule> {
    sections.iter().flat_map(|section| &section.rules)
}

/// Returns the section number of an id, such as `3.2` of `3.2.tags`; `None` if it is not an id.
fn number_of(id: &str) -> Option<&str> {
    let number = number_at(id);
    let name = id.strip_prefix(number)?.strip_prefix('.')?;
    let is_name = |part: &str| part.starts_with(|first: char| first.is_ascii_alphabetic());
    (!number.is_empty() && name.split('.').all(is_name)).then_some(number)
}

/// Returns the section number at the start of a text; empty if there is none.
fn number_at(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// Returns the sections that a text of the workspace cites: one or several after each sign.
fn citations(text: &str) -> Vec<&str> {
    let mut cited = Vec::new();
    for mut rest in text.split("spec §").skip(1) {
        loop {
            let number = number_at(rest);
            cited.push(number);
            let more = &rest[number.len()..];
            let next = more.strip_prefix(", §").or_else(|| more.strip_prefix(" and §"));
            let Some(next) = next else { break };
            rest = next;
        }
    }
    cited
}

/// Returns citations of sections that the contract does not have.
///
/// Within the contract the sign alone is a citation. This file is skipped, because its tests cite
/// sections that don't exist.
fn lost_citations(tree: &Tree, sections: &[Section]) -> Vec<String> {
    let known: BTreeSet<&str> = sections.iter().map(|section| section.number.as_str()).collect();
    let mut problems = Vec::new();
    for (name, text) in tree.iter().filter(|(name, _)| !file!().ends_with(name.as_str())) {
        let cited = if name == SPEC { text.split('§').skip(1).map(number_at).collect() } else { citations(text) };
        let lost = cited.into_iter().filter(|number| number.is_empty() || !known.contains(number));
        problems.extend(lost.map(|number| format!("{name} cites section {number:?}, which {SPEC} does not have")));
    }
    problems
}

/// Returns every marker of the workspace, and problems of markers.
fn markers(tree: &Tree) -> (Covered, Vec<String>) {
    let (mut covered, mut problems) = (Covered::new(), Vec::new());
    for (name, text) in tree.iter().filter(|(name, _)| name.ends_with(".rs") || name.ends_with(".yaml")) {
        let yaml = name.ends_with(".yaml");
        match markers_in(text, yaml) {
            Ok(markers) if !markers.is_empty() && !yaml && !is_compiled(&root().join(name)) => {
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

/// Returns true if a Rust file is part of a crate: it is a root, or is declared as a module by a
/// file beside or above it.
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
        text.lines().any(|line| {
            line.trim_start_matches("pub(crate) ").trim_start_matches("pub ") == module || line.trim() == by_path
        })
    };
    let beside = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    beside.chain([folder.with_extension("rs")]).any(declares)
}

/// Returns rules, and the tests above which they are.
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

/// Returns the name of the test function that begins here.
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

/// Returns the name of the case of the object table that begins here.
fn case_of<'a>(mut lines: impl Iterator<Item = &'a str>) -> Result<String, &'static str> {
    let name = lines.next().and_then(|line| line.strip_prefix("- name: "));
    name.map(str::to_owned).ok_or("stands above no case")
}

/// Returns contradictions between rules and markers.
fn contradictions(sections: &[Section], covered: &Covered) -> Vec<String> {
    let mut problems = Vec::new();
    let mut known = BTreeSet::new();
    for Rule { id, not_yet, .. } in rules(sections) {
        if !known.insert(id.as_str()) {
            problems.push(format!("{id} stands in {SPEC} twice"));
        }
        match (covered.contains_key(id), not_yet) {
            (true, true) => problems.push(format!("{id} has a test: strike its {NOT_YET:?} in {SPEC}")),
            (false, false) => problems.push(format!("no test covers {id}")),
            _ => {}
        }
    }
    let unknown = covered.iter().filter(|(id, _)| !known.contains(id.as_str()));
    problems.extend(unknown.map(|(id, tests)| format!("{tests:?} cover {id:?}, which {SPEC} does not have")));
    problems
}

/// Returns a line for each test of each rule, in the order of the contract: the rule, a tab, the
/// test.
fn render(sections: &[Section], covered: &Covered) -> String {
    let tests = |rule: &Rule| covered.get(&rule.id).into_iter().flatten();
    let lines = rules(sections).flat_map(|rule| tests(rule).map(|test| format!("{}\t{test}\n", rule.id)));
    lines.collect()
}

/// Returns the lines that only one of two texts has.
fn difference(stored: &str, fresh: &str) -> String {
    let (stored, fresh): (BTreeSet<&str>, BTreeSet<&str>) = (stored.lines().collect(), fresh.lines().collect());
    let gone = stored.difference(&fresh).map(|line| format!("- {line}\n"));
    let new = fresh.difference(&stored).map(|line| format!("+ {line}\n"));
    gone.chain(new).collect()
}

#[test]
fn every_rule_has_its_tests_and_the_table_says_which() {
    let tree = tree();
    let (sections, mut problems) = parse(&tree[SPEC]);
    let (covered, misplaced) = markers(&tree);
    problems.extend(misplaced);
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
fn every_section_that_is_cited_is_there() {
    let tree = tree();
    let lost = lost_citations(&tree, &parse(&tree[SPEC]).0);
    assert!(lost.is_empty(), "{}", lost.join("\n"));
    let citing = tree.iter().filter(|(name, text)| name.as_str() != SPEC && !citations(text).is_empty()).count();
    assert!(citing > 50, "only {citing} files were seen to cite the contract");
}

#[test]
fn a_rule_is_an_item_or_a_row_that_begins_with_its_id() {
    let text = "# Contract\n## §1 API\n- `1.a` One,\n  in two lines.\n- `Retain` is none.\n### Fields\n\
                | `1.b.c` | `f` | `0` | A number. |\n### §1.2 More\n- `1.2.d` *Not yet.* Later.\n";
    let (sections, problems) = parse(text);
    assert_eq!(problems, [""; 0]);
    let titles: Vec<_> = sections.iter().skip(2).map(|it| (it.number.as_str(), it.title.as_str())).collect();
    assert_eq!(titles, [("1", "§1 API"), ("1", "§1 Fields"), ("1.2", "§1.2 More")]);
    let found: Vec<_> = rules(&sections).map(|it| format!("{} {} {}", it.id, it.says, it.not_yet)).collect();
    assert_eq!(found, ["1.a One, in two lines. false", "1.b.c `f`, `0`: A number. false", "1.2.d Later. true"]);
}

#[test]
fn a_rule_in_another_form_or_place_is_told() {
    let told = |text: &str| parse(&format!("## §1 API\n{text}\n")).1.join("\n");
    assert!(told("As `1.a` says.").contains("begins no item"));
    assert!(told("* `1.a` Another mark.").contains("begins no item"));
    assert!(told("- `1.2.a` Elsewhere.").contains("stands in section"));
    assert!(told("- `1.a`").contains("says nothing"));
    assert_eq!(told("- `1.a` A quota of `1.5Gi`, on Kubernetes `1.34`; see `1.a`."), "");
}

#[test]
fn a_citation_of_no_section_is_told() {
    let text = "// (spec §1, §2.3; spec §3). Not §9.";
    assert_eq!(citations(text), ["1", "2.3", "3"]);
    let tree = |name: &str, text: &str| Tree::from([(name.to_owned(), text.to_owned())]);
    let sections = parse("## §1 API\n## §3 More").0;
    let lost = lost_citations(&tree("x.rs", text), &sections);
    assert_eq!(lost, ["x.rs cites section \"2.3\", which docs/spec.md does not have"]);
    assert_eq!(lost_citations(&tree(SPEC, "See §3, not §9."), &sections).len(), 1);
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
    let covered = Covered::from([("1.a".to_owned(), BTreeSet::from(["f.rs::t".to_owned()]))]);
    let told = |rules: &str| contradictions(&parse(&format!("## §1 API\n{rules}\n")).0, &covered).join("\n");
    assert_eq!(told("- `1.a` Built."), "");
    assert_eq!(told("- `1.a` Built.\n- `1.b` *Not yet.* Later."), "");
    assert!(told("- `1.b` *Not yet.* Later.").contains("does not have"));
    assert!(told("- `1.a` Built.\n- `1.b` Built.").contains("no test covers 1.b"));
    assert!(told("- `1.a` *Not yet.* Later.").contains("strike"));
    assert!(told("- `1.a` Built.\n- `1.a` Again.").contains("twice"));
}
