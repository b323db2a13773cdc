//! Checks of the documentation: links, paths, recipes, command lines and schedules exist or parse,
//! and tables are complete.
//!
//! These tests are in the end-to-end crate, because only it may depend on all command lines. Web
//! addresses are not checked: no test needs the network.

mod generated;
mod metrics;
mod page;
mod reasons;
mod shell;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use clap::ValueEnum;
use clap::error::ErrorKind;
use page::{Link, Page};
use stowage_proof::explorer::scenarios;
use stowage_proof::oracles::Promise;

/// Pages: files, and folders with everything below them.
const PAGES: [&str; 5] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "kind-config", "docs"];

/// Folders of the repository at which a page's paths begin.
const FOLDERS: [&str; 14] = [
    "operator",
    "gateway",
    "world",
    "sim",
    "proof",
    "testbed",
    "e2e",
    "bench",
    "fuzz",
    "crds",
    "examples",
    "kind-config",
    "docs",
    "crates",
];

/// Placeholders in command lines, each with a valid value.
const PLACEHOLDERS: [(&str, &str); 4] =
    [("SCENARIO SEED PLAN", "rotate 1"), ("SCENARIO", "rotate"), ("S", "1"), ("I/40", "0/40")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("can't read {}: {error}", path.display()))
}

fn page(path: &str) -> Page {
    Page::parse(&read(&root().join(path)))
}

/// Returns the paths of all pages, relative to the root.
fn pages() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut left: Vec<PathBuf> = PAGES.map(PathBuf::from).into();
    while let Some(path) = left.pop() {
        let place = root().join(&path);
        if place.is_dir() {
            let entries = fs::read_dir(&place).expect("the folder can be read");
            left.extend(entries.map(|entry| path.join(entry.expect("it can be read").file_name())));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.insert(path.display().to_string());
        }
    }
    found
}

/// Applies `problem_of` to each part that `parts_of` finds on any page, and returns all problems.
fn problems<T>(parts_of: fn(&Page) -> &[T], problem_of: impl Fn(&str, &Page, &T) -> Option<String>) -> Vec<String> {
    let mut problems = Vec::new();
    for path in pages() {
        let page = page(&path);
        let found = parts_of(&page).iter().filter_map(|part| problem_of(&path, &page, part));
        problems.extend(found.map(|problem| format!("{path}: {problem}")));
    }
    problems
}

/// Returns the problem with a link on the page at this path.
fn problem_of_link(path: &str, page: &Page, link: &Link) -> Option<String> {
    if link.target.contains("://") || link.target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.target.split_once('#').unwrap_or((&link.target, ""));
    let place = root().join(path).with_file_name(file);
    if !file.is_empty() && !place.exists() {
        return Some(format!("{} is not there", link.target));
    }
    let is_there = match (file, anchor) {
        (_, "") => true,
        ("", anchor) => page.anchors.contains(anchor),
        (_, anchor) => place.is_file() && Page::parse(&read(&place)).anchors.contains(anchor),
    };
    (!is_there).then(|| format!("{} has no such heading", link.target))
}

/// Place of a command on a page.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// In a block, to be typed as it is.
    Block,
    /// In inline code, which may name a command without its required arguments.
    Line,
}

/// Returns the problem with a command line: an unknown recipe, or arguments that one of the
/// project's programs rejects.
fn problem_of_command(place: Place, words: &[String], recipes: &BTreeSet<String>) -> Option<String> {
    let words: Vec<&str> = words.iter().map(|word| filled(word)).collect();
    let (program, arguments) = shell::program_of(&words)?;
    let refused = match program {
        "just" => {
            let recipe = arguments.first().filter(|name| !recipes.contains(**name))?;
            return Some(format!("there is no recipe {recipe}"));
        }
        "stowage-sim" => parse::<stowage_sim::cli::Cli>(place, program, arguments),
        "stowage-proof" => parse::<stowage_proof::cli::Cli>(place, program, arguments),
        "stowage-operator" => parse::<stowage_operator::Cli>(place, program, arguments),
        // The plugin, which kubectl finds by its file name.
        "kubectl" if arguments.first() == Some(&"stowage") => {
            parse::<stowage_operator::Cli>(place, "kubectl-stowage", &arguments[1..])
        }
        "stowage-gateway" => parse::<stowage_gateway::Cli>(place, program, arguments),
        "stowage-e2e" => parse::<stowage_e2e::Cli>(place, program, arguments),
        "stowage-bench" => parse::<stowage_bench::Cli>(place, program, arguments),
        _ => None,
    };
    refused.map(|why| format!("{} is refused: {why}", words.join(" ")))
}

/// Returns the error if a program rejects these arguments.
fn parse<C: Parser>(place: Place, program: &str, arguments: &[&str]) -> Option<String> {
    let error = C::try_parse_from([&[program], arguments].concat()).err()?;
    let is_fine = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::MissingRequiredArgument | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            place == Place::Line
        }
        _ => false,
    };
    (!is_fine).then(|| error.to_string())
}

/// Replaces a placeholder by its valid value.
fn filled(word: &str) -> &str {
    PLACEHOLDERS.iter().find(|(name, _)| *name == word).map_or(word, |(_, example)| example)
}

/// Returns the names of the recipes in a justfile.
fn recipes_of(justfile: &str) -> BTreeSet<String> {
    let heads = justfile.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()));
    let heads = heads.filter_map(|line| line.split_once(':'));
    heads
        .filter(|(_, rest)| !rest.starts_with('='))
        .filter_map(|(head, _)| head.split(' ').next())
        .map(str::to_owned)
        .collect()
}

/// Returns the problem with inline code that is the path of a file, a folder or a test. The path is
/// relative to the root or to the page.
fn problem_of_path(page: &str, code: &str) -> Option<String> {
    let (path, test) = code.split_once("::").map_or((code, None), |(path, test)| (path, Some(test)));
    let is_path = FOLDERS.iter().any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')));
    if !is_path || path.contains(|it: char| it.is_whitespace() || "{*".contains(it)) || path.contains("NAME") {
        return None;
    }
    let places = [root().join(path), root().join(page).with_file_name(path)];
    let Some(place) = places.iter().find(|place| place.exists()) else {
        return Some(format!("{path} is not there"));
    };
    // A table's cases are named in words, on a generated page.
    let test = test.filter(|_| path.ends_with(".rs"))?;
    (!read(place).contains(&format!("fn {test}("))).then(|| format!("{path} has no {test}"))
}

/// Returns the problem with inline code: with a path, a command or a schedule.
fn problem_of_code(page: &str, code: &str, recipes: &BTreeSet<String>) -> Option<String> {
    let mut words = code.split(' ');
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if scenarios::named(first).is_some() && second.parse::<u64>().is_ok() {
        return parse::<stowage_proof::cli::Cli>(Place::Line, "stowage-proof", &["replay", code]);
    }
    let mut commands = shell::commands(shell::without_synopsis(code)).into_iter().filter(|words| words.len() > 1);
    problem_of_path(page, code).or_else(|| commands.find_map(|words| problem_of_command(Place::Line, &words, recipes)))
}

fn recipes() -> BTreeSet<String> {
    recipes_of(&read(&root().join("justfile")))
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_are_there() {
    let problems = problems(|page| &page.links, problem_of_link);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_command_in_a_block_is_taken_by_its_program() {
    let recipes = recipes();
    let of_block = |_: &str, _: &Page, block: &String| {
        shell::commands(block).iter().find_map(|words| problem_of_command(Place::Block, words, &recipes))
    };
    let problems = problems(|page| &page.blocks, of_block);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_command_schedule_and_path_in_a_line_is_right_too() {
    let recipes = recipes();
    let problems = problems(|page| &page.codes, |path, _, code| problem_of_code(path, code, &recipes));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// A page that isn't in the index would not be found by readers.
#[test]
fn the_index_has_every_page() {
    let index = page("docs/README.md");
    let listed: BTreeSet<String> = index.links.iter().map(|link| format!("docs/{}", link.target)).collect();
    let missing: Vec<_> =
        pages().into_iter().filter(|path| path.starts_with("docs/") && path != "docs/README.md").collect();
    let missing: Vec<_> = missing.iter().filter(|path| !listed.contains(*path)).collect();
    assert!(missing.is_empty(), "docs/README.md does not list {missing:?}");
}

/// Asserts that the table below a heading has exactly these rows.
fn assert_rows(path: &str, heading: &str, rows: &[String]) {
    let text = read(&root().join(path));
    let section = text.split("\n## ").find(|section| section.starts_with(heading)).unwrap_or_default();
    let is_row = |line: &&str| line.starts_with("| `");
    let stored: Vec<&str> = section.lines().filter(is_row).collect();
    assert_eq!(stored, rows, "{path}, {heading}");
}

#[test]
fn the_reference_has_every_promise() {
    let rows: Vec<String> = Promise::ALL.map(|it| format!("| `{it}` | {} |", it.words())).into();
    assert_rows("docs/reference/promises.md", "All of them", &rows);
}

/// Compares names only, because the page describes scenarios at more length than the code.
#[test]
fn the_reference_has_every_world_and_every_scenario_on_a_real_server() {
    let text = read(&root().join("docs/reference/scenarios.md"));
    let named = |heading: &str| -> BTreeSet<String> {
        let section = text.split("\n## ").find(|section| section.starts_with(heading)).unwrap_or_default();
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let cells = rows.filter_map(|row| row.split('|').nth(1)).flat_map(|cell| cell.split(", "));
        cells.map(|name| name.trim().trim_matches('`').to_owned()).collect()
    };
    let worlds: BTreeSet<String> = stowage_proof::model::world_names().map(Into::into).collect();
    assert_eq!(named("Worlds of the model"), worlds);
    let played: BTreeSet<String> = stowage_e2e::Scenario::value_variants().iter().map(|it| it.name()).collect();
    assert_eq!(named("On a real API server"), played);
}

/// Returns names in the last column of the glossary that don't occur in these sources.
fn lost_names(glossary: &str, sources: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let words: BTreeSet<&str> = sources.split(|c| !is_part(c)).collect();
    let last_cells = glossary.lines().filter(|line| line.starts_with('|')).filter_map(|row| row.split('|').nth(3));
    let names = last_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.filter(|name| !words.contains(name)).map(str::to_owned).collect()
}

#[test]
fn the_glossary_names_what_is_in_the_code() {
    let mut sources = String::new();
    let mut left = vec![root().join("operator/src"), root().join("crates/api/src")];
    while let Some(place) = left.pop() {
        if place.is_dir() {
            left.extend(
                fs::read_dir(&place).expect("it can be read").map(|entry| entry.expect("it can be read").path()),
            );
        } else {
            sources.push_str(&read(&place));
        }
    }
    let glossary = read(&root().join("docs/reference/glossary.md"));
    assert!(glossary.lines().filter(|line| line.starts_with("| ")).count() > 20, "where are its tables?");
    assert_eq!(lost_names(&glossary, &sources), [] as [&str; 0]);
}

#[test]
fn a_name_that_is_no_more_is_told() {
    let glossary =
        "| word | what it means, as `neither` | in the code |\n|---|---|---|\n| a | b `c` | `Kept`, `Lost` |\n";
    assert_eq!(lost_names(glossary, "struct Kept; fn lost() {} // Losts"), ["Lost"]);
}

#[test]
fn what_is_not_so_is_told() {
    let recipes = recipes_of("a := \"1\"\ndemo *args:\n    cargo run\n");
    assert_eq!(recipes, BTreeSet::from(["demo".to_owned()]));
    let wrong = [
        "just dmo",
        "stowage-proof explore --no-such-flag",
        "cargo run -p stowage-operator -- rum",
        "kubectl stowage plan --no-such-flag",
        "create 1 #3 losst",
        "stowage-proof exlore [SCENARIO…]",
        "sim/src/no.rs",
        "proof/tests/tables/rbac.rs::no",
    ];
    let right = [
        "just demo -f x",
        "stowage-e2e run --help",
        "stowage-bench clients --list",
        "FOO=1 target/debug/stowage-proof merge a.json",
        "create 1 #3 hang",
        "stowage-proof explore [SCENARIO…]",
        "sim/src/",
        "e2e/tests/docs/main.rs::pages",
    ];
    for code in wrong {
        assert!(problem_of_code("README.md", code, &recipes).is_some(), "{code}");
    }
    for code in right {
        assert_eq!(problem_of_code("README.md", code, &recipes), None, "{code}");
    }
    let lacks = ["stowage-proof".to_owned(), "replay".to_owned()];
    assert!(problem_of_command(Place::Block, &lacks, &recipes).is_some());
    assert_eq!(problem_of_command(Place::Line, &lacks, &recipes), None);
    let text = "# Here, `there` & Now\n\n[a](no-such-file.md) [b](#here) [c](#here-there--now) [d](../docs/README.md#no) [e](https://x.example)\n";
    let page = Page::parse(text);
    let problems: Vec<bool> =
        page.links.iter().map(|link| problem_of_link("docs/x.md", &page, link).is_some()).collect();
    assert_eq!(problems, [true, true, false, true, false]);
}
