//! Dependencies between the files of a crate.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::contents::{Contents, Import};

/// Describes a dependency: both files, and the names used.
pub(crate) fn arrow(from: &str, to: &str, names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    format!("{from} -> {to}: {}", names.join(", "))
}

/// The files of a crate, and their dependencies: from the file that uses a name to the one that
/// defines it.
///
/// Rules:
/// - Imports and paths in the code count, if they lead to another file. If a `mod.rs` re-exports a
///   name, the dependency is on the file that defines it.
/// - A re-export counts as a dependency only if the file's own code uses the name.
/// - An import of a whole module counts as dependencies on the files that define the names used
///   from it.
/// - A file that defines a type and the files with inherent `impl` blocks of it count as one file:
///   they are parts of a file that would be too long, and see each other's private items. Only
///   files in the type's own folder can be such parts. An `impl` block anywhere else would be a
///   dependency that no import shows, and is listed in `scattered`.
///
/// Values that are passed on need no import, so methods called on them are not counted, unless they
/// are in such a part.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// The names used by one file from another.
    pub(crate) arrows: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
    /// The representative of the files that count as one with this file. A representative has no
    /// entry.
    one: BTreeMap<String, String>,
    /// `impl` blocks outside of their type's folder.
    pub(crate) scattered: Vec<String>,
}

impl Graph {
    /// Reads the files of a crate, each given by its path relative to the crate's `src`, and its
    /// text.
    pub(crate) fn of(files: &[(String, String)]) -> Self {
        let read = |(file, text): &(String, String)| {
            (module(file), Module { file: file.clone(), contents: Contents::read(text) })
        };
        let modules = Modules(files.iter().map(read).collect());
        let mut graph = Self::default();
        for (at, module) in &modules.0 {
            for (to, name) in modules.taken(at, module) {
                if to != module.file {
                    let names = graph.arrows.entry(module.file.clone()).or_default().entry(to).or_default();
                    names.insert(name);
                }
            }
        }
        for (at, module) in &modules.0 {
            for (defined_in, home, name) in modules.implemented(at, module) {
                if at.starts_with(&home) {
                    graph.join(&defined_in, &module.file);
                } else {
                    graph.scattered.push(format!("{}: impl {name}, which is defined in {defined_in}", module.file));
                }
            }
        }
        graph
    }

    fn join(&mut self, first: &str, second: &str) {
        let (first, second) = (self.whole(first).to_owned(), self.whole(second).to_owned());
        if first != second {
            for one in self.one.values_mut().filter(|one| **one == second) {
                one.clone_from(&first);
            }
            self.one.insert(second, first);
        }
    }

    /// Returns the representative of the files that count as one with this file.
    pub(crate) fn whole<'a>(&'a self, file: &'a str) -> &'a str {
        self.one.get(file).map_or(file, String::as_str)
    }

    /// Returns every dependency between files that don't count as one: from, to, names.
    pub(crate) fn between(&self) -> impl Iterator<Item = (&str, &str, &BTreeSet<String>)> {
        let all = self.arrows.iter().flat_map(|(from, to)| to.iter().map(move |(to, names)| (&**from, &**to, names)));
        all.filter(|(from, to, _)| self.whole(from) != self.whole(to))
    }

    /// Returns the files that count as one with another, each with its representative.
    pub(crate) fn joined(&self) -> impl Iterator<Item = (&str, &str)> {
        self.one.iter().map(|(file, whole)| (&**file, &**whole))
    }

    /// Returns groups of files that depend on each other, directly or not, the largest first.
    pub(crate) fn knots(&self) -> Vec<Vec<&str>> {
        let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (from, to, _) in self.between() {
            next.entry(self.whole(from)).or_default().insert(self.whole(to));
        }
        let reached: BTreeMap<&str, BTreeSet<&str>> = next.keys().map(|file| (*file, reach(&next, file))).collect();
        let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
        let mut knots: Vec<Vec<&str>> = Vec::new();
        for file in reached.keys().filter(|file| reaches(file, file)) {
            let with = |knot: &&mut Vec<&str>| reaches(knot[0], file) && reaches(file, knot[0]);
            match knots.iter_mut().find(with) {
                Some(knot) => knot.push(file),
                None => knots.push(vec![file]),
            }
        }
        knots.sort_by_key(|knot| std::cmp::Reverse(knot.len()));
        knots
    }

    /// Returns the shortest cycles, without files in common, each as its dependencies with their
    /// names.
    pub(crate) fn circles(&self) -> Vec<Vec<String>> {
        let mut next: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
        for (from, to, names) in self.between() {
            let arrow = arrow(from, to, names);
            next.entry(self.whole(from)).or_default().push((self.whole(to), arrow));
        }
        let mut all: Vec<_> = next.keys().filter_map(|start| shortest(&next, start)).collect();
        all.sort_by_key(Vec::len);
        let mut seen = BTreeSet::new();
        all.retain(|circle| {
            let is_new = circle.iter().all(|(file, _)| !seen.contains(file));
            seen.extend(circle.iter().map(|(file, _)| *file));
            is_new
        });
        all.into_iter().map(|circle| circle.into_iter().map(|(_, arrow)| arrow).collect()).collect()
    }
}

/// Returns the files that a file depends on, directly or not.
fn reach<'a>(next: &BTreeMap<&'a str, BTreeSet<&'a str>>, start: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<&str> = next.get(start).into_iter().flatten().copied().collect();
    while let Some(file) = waiting.pop() {
        if found.insert(file) {
            waiting.extend(next.get(file).into_iter().flatten());
        }
    }
    found
}

/// Returns the shortest cycle through a file: for each dependency its start, and its description.
fn shortest<'a>(next: &'a BTreeMap<&'a str, Vec<(&'a str, String)>>, start: &'a str) -> Option<Vec<(&'a str, String)>> {
    let mut came: BTreeMap<&str, (&str, &String)> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front().filter(|_| !came.contains_key(start)) {
        for (to, arrow) in next.get(at).into_iter().flatten() {
            if !came.contains_key(to) {
                came.insert(to, (at, arrow));
                queue.push_back(to);
            }
        }
    }
    let mut way = Vec::new();
    let mut at = start;
    while way.is_empty() || at != start {
        let (from, arrow) = came.get(at)?;
        way.push((*from, (*arrow).clone()));
        at = from;
    }
    way.reverse();
    Some(way)
}

/// A module that is a file.
struct Module {
    file: String,
    contents: Contents,
}

/// Maximum number of imports through which a name is followed. The limit is needed because a name
/// shared by an import and a macro may lead to itself.
const LONGEST_WAY: usize = 16;

/// The modules of a crate, by their path from its root.
struct Modules(BTreeMap<Vec<String>, Module>);

/// Target of a path.
enum Found {
    /// A module.
    Module(Vec<String>),
    /// A name, with the module that defines it, or the last one that was found.
    Item(Vec<String>, String),
    /// An item of another crate, or of the language.
    Outside,
}

impl Modules {
    /// Returns the names that a module uses from files, each with its file.
    fn taken(&self, at: &[String], module: &Module) -> Vec<(String, String)> {
        let contents = &module.contents;
        let is_used = |import: &&Import| {
            !import.exported || contents.paths.iter().any(|path| path.first() == Some(&import.alias))
        };
        let all_of = |import: &Import| import.path.last().is_some_and(|last| last == "*");
        let from = |found| match found {
            (Found::Item(at, name), _) => Some((self.0.get(&at)?.file.clone(), name)),
            (Found::Module(at), true) => Some((self.0.get(&at)?.file.clone(), "*".to_owned())),
            // A module that is only named is not used yet.
            (Found::Module(_), false) | (Found::Outside, _) => None,
        };
        let imports = contents.imports.iter().filter(is_used);
        let imported = imports.map(|import| (self.find(at, &import.path, true), all_of(import)));
        let paths = contents.paths.iter().filter(|path| path.len() > 1);
        let named = paths.map(|path| (self.find(at, path, false), false));
        imported.chain(named).filter_map(from).collect()
    }

    /// Returns the types of other files with inherent `impl` blocks in this module: the file, the
    /// path of the folder that may contain such blocks, and the name.
    fn implemented(&self, at: &[String], module: &Module) -> Vec<(String, Vec<String>, String)> {
        let contents = &module.contents;
        let others = contents.implements.iter().filter(|name| !contents.defines.contains(*name));
        let found = others.filter_map(|name| match self.named(at, name) {
            Found::Item(of, name) => Some((self.0.get(&of)?.file.clone(), self.home(&of), name)),
            Found::Module(_) | Found::Outside => None,
        });
        found.collect()
    }

    /// Returns the module below which `impl` blocks of this module's types are allowed: itself if
    /// it has its own folder, otherwise its parent.
    fn home(&self, of: &[String]) -> Vec<String> {
        let has_folder = self.0.keys().any(|module| module.len() > of.len() && module.starts_with(of));
        if has_folder || of.len() < 2 { of.to_vec() } else { of[..of.len() - 1].to_vec() }
    }

    /// Resolves a path from a module. The path of an import may begin with an imported item, such
    /// as the enum in `use Enum::Variant`.
    fn find(&self, from: &[String], path: &[String], imported: bool) -> Found {
        self.find_within(from, path, imported, LONGEST_WAY)
    }

    fn find_within(&self, from: &[String], path: &[String], imported: bool, most: usize) -> Found {
        let Some(most) = most.checked_sub(1) else { return Found::Outside };
        let mut at = from.to_vec();
        for (passed, name) in path.iter().enumerate() {
            match name.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()),
                "*" => return Found::Module(at),
                name => {
                    let is_first = passed == 0;
                    if is_first && !self.is_known(&at, name, path) {
                        return Found::Outside;
                    }
                    match self.named_within(&at, name, most) {
                        // An item at the start of a path in code was imported, and the import is
                        // counted itself. Only modules are followed further.
                        Found::Item(..) if is_first && !imported => return Found::Outside,
                        Found::Module(module) => at = module,
                        found => return found,
                    }
                }
            }
        }
        Found::Module(at)
    }

    /// True if a path with this first name is in this crate: the name is a module, or an item of
    /// another import.
    fn is_known(&self, at: &[String], name: &str, path: &[String]) -> bool {
        self.child(at, name).is_some() || self.imports(at).any(|import| import.alias == name && import.path != path)
    }

    /// Resolves a name in a module.
    fn named(&self, at: &[String], name: &str) -> Found {
        self.named_within(at, name, LONGEST_WAY)
    }

    fn named_within(&self, at: &[String], name: &str, most: usize) -> Found {
        if let Some(child) = self.child(at, name) {
            return Found::Module(child);
        }
        let Some(module) = self.0.get(at) else { return Found::Outside };
        if module.contents.defines.contains(name) {
            return Found::Item(at.to_vec(), name.to_owned());
        }
        if let Some(import) = self.imports(at).find(|import| import.alias == name) {
            return self.find_within(at, &import.path, true, most);
        }
        let exported = self.imports(at).filter(|import| import.alias == "*" && import.exported);
        let mut through = exported.filter_map(|import| match self.find_within(at, &import.path, true, most) {
            Found::Module(from) if self.0.get(&from)?.contents.defines.contains(name) => Some(from),
            Found::Module(_) | Found::Item(..) | Found::Outside => None,
        });
        Found::Item(through.next().unwrap_or_else(|| at.to_vec()), name.to_owned())
    }

    fn imports(&self, of: &[String]) -> impl Iterator<Item = &Import> {
        self.0.get(of).into_iter().flat_map(|module| &module.contents.imports)
    }

    fn child(&self, at: &[String], name: &str) -> Option<Vec<String>> {
        let child = [at, &[name.to_owned()]].concat();
        self.0.contains_key(&child).then_some(child)
    }
}

/// Returns the module path of a file.
fn module(file: &str) -> Vec<String> {
    let mut path: Vec<String> = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|last| last == "mod" || (path.len() == 1 && last == "lib")) {
        path.pop();
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Graph {
        let owned = |(file, text): &(&str, &str)| ((*file).to_owned(), (*text).to_owned());
        Graph::of(&files.iter().map(owned).collect::<Vec<_>>())
    }

    fn arrows(graph: &Graph) -> Vec<String> {
        graph.between().map(|(from, to, names)| arrow(from, to, names)).collect()
    }

    #[test]
    fn a_name_leads_to_the_file_that_defines_it() {
        let graph = of(&[
            ("lib.rs", "mod plan; mod act; pub use stowage_api as api; pub use plan::Step;"),
            ("plan/mod.rs", "mod step; mod walk; pub use step::{Step, Look as Question}; pub use walk::*;"),
            ("plan/step.rs", "pub struct Step; pub struct Look; use crate::api::Claim;"),
            ("plan/walk.rs", "use super::step::Step; pub fn next() -> Step { super::step::Look; Step }"),
            (
                "act.rs",
                "use crate::{api::Claim, plan}; use plan::Question; fn act() { plan::next(); vec![crate::Step] }",
            ),
        ]);
        let expected = [
            "act.rs -> plan/step.rs: Look, Step",
            "act.rs -> plan/walk.rs: next",
            "plan/walk.rs -> plan/step.rs: Look, Step",
        ];
        assert_eq!(arrows(&graph), expected);
    }

    #[test]
    fn a_parent_that_passes_names_on_depends_on_those_alone_that_it_uses() {
        let passes_on = ("plan/mod.rs", "mod step; pub use step::{Look, Step}; fn next() -> Step {}");
        let step = ("plan/step.rs", "pub struct Look; pub struct Step;");
        assert_eq!(arrows(&of(&[passes_on, step])), ["plan/mod.rs -> plan/step.rs: Step"]);
    }

    #[test]
    fn tests_take_what_they_like() {
        let tests =
            "#[cfg(test)] mod tests { use crate::b::B; } #[cfg(test)] use crate::b::C; #[test] fn t() { crate::b::B }";
        assert_eq!(arrows(&of(&[("a.rs", tests), ("b.rs", "pub struct B; pub struct C;")])), [] as [&str; 0]);
    }

    #[test]
    fn a_circle_is_told_with_the_names_taken() {
        let graph = of(&[
            ("a.rs", "use crate::b::{self, One}; fn a() { b::two() }"),
            ("b.rs", "pub struct One; pub fn two() { crate::c::three() }"),
            ("c.rs", "pub fn three() { matches!(0, super::a::A) }"),
            ("d.rs", "use crate::a::A;"),
        ]);
        let circle = ["a.rs -> b.rs: One, two", "b.rs -> c.rs: three", "c.rs -> a.rs: A"];
        assert_eq!(graph.circles(), [circle]);
        assert_eq!(of(&[("a.rs", "use crate::b::*;"), ("b.rs", "use crate::a::A;")]).circles().len(), 1);
    }

    #[test]
    fn pieces_of_one_type_are_one_file_and_only_in_its_folder() {
        let folder = [
            ("view/mod.rs", "mod learn; pub struct View; fn of() { learn::later() }"),
            ("view/learn.rs", "use super::View; impl View {} pub fn later() { crate::halt::halt() }"),
        ];
        let halt = ("halt.rs", "pub fn halt() {}");
        let graph = of(&[folder[0], folder[1], halt]);
        assert_eq!(graph.circles(), [] as [Vec<&str>; 0]);
        assert_eq!(graph.joined().collect::<Vec<_>>(), [("view/learn.rs", "view/mod.rs")]);
        let back = of(&[folder[0], folder[1], ("halt.rs", "use crate::view::View; pub fn halt() {}")]);
        assert_eq!(back.circles().len(), 1, "through either piece");
        let elsewhere = of(&[folder[0], folder[1], ("halt.rs", "use crate::view::View; impl View {}")]);
        assert_eq!(elsewhere.scattered, ["halt.rs: impl View, which is defined in view/mod.rs"]);
    }
}
