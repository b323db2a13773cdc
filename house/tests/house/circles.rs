//! Dependencies between files of the crates: no cycles, and in planner and gateway no dependency on
//! a later module.

use std::collections::BTreeSet;

use crate::code::{code, crates};
use crate::graph::{Graph, arrow};

/// Modules of the planner, in an order in which they can be read: each depends only on earlier ones
/// of its own layer or of a lower one. A module is a file, or a folder.
const FLOORS: [&str; 4] = [
    // Vocabulary: queries and effects, their answers, and the reasons why a pass stops.
    "reach secret known asking target patch step answer walk cause message remedy stop obstacle halt held reconciliation",
    // Knowledge of a pass, and the parts of a claim.
    "credentials view note consent place ownership spelling hold setback consumer public bucket moves revocation",
    // Sequences of the parts, and their reports; the other reconciliations.
    "keys bind removal delete usage announcements status purpose backend orphans access obc",
    // The planner's interface.
    "mod",
];

fn floors() -> impl Iterator<Item = &'static str> {
    FLOORS.iter().flat_map(|floor| floor.split_whitespace())
}

/// Files of the modules that are folders, in order.
const WITHIN: [(&str, &str); 6] = [
    ("credentials", "holder record publish retire rotate revoke mod"),
    ("view", "setting internal mod holder"),
    ("backend", "uptime step count health status mod"),
    ("access", "words step view holder fingerprint entries consumer keys status outlook purpose removal mod"),
    ("orphans", "kinds mod"),
    ("obc", "kinds words step halt view desired bucket shadow config_map deletion status mod"),
];

/// Modules of the gateway, in an order in which they can be read: each depends only on earlier
/// ones. A module is a file, or a folder.
const GATEWAY: [&str; 4] = [
    // Vocabulary: refusals, time, limits.
    "refusal clock limits audit uri xml cors",
    // A request: streamed bodies, the operation, the signature, and documents that are parsed as a
    // whole.
    "body head sigv4 document deletion form",
    // Cluster and stores: the known keys, authorization, store calls, quotas, and the parts of a
    // store's response that a client sees.
    "registry decide upstream quota metrics answer",
    // Handling of a request with all of these, connections, the process.
    "front server cli",
];

/// Returns the dependencies of a crate, by its folder.
pub(crate) fn of_crate(folder: &str) -> Graph {
    let src = format!("{folder}/src/");
    let in_crate = |(file, text): (String, String)| (file.trim_start_matches(&src).to_owned(), text);
    Graph::of(&code(&[&src]).into_iter().map(in_crate).collect::<Vec<_>>())
}

fn operator() -> Graph {
    of_crate("operator")
}

/// Returns the planner's module that a file is, or is in.
fn room(file: &str) -> Option<&str> {
    let below = file.strip_prefix("plan/")?;
    Some(below.split_once('/').map_or(below.trim_end_matches(".rs"), |(folder, _)| folder))
}

/// Returns dependencies of the planner on a later module, on anything outside of it, or on a module
/// that is not listed.
fn up(graph: &Graph) -> Vec<String> {
    let height = |room: &str| floors().position(|known| known == room);
    let within = |room: &str, file: &str| {
        let (_, files) = WITHIN.iter().find(|(folder, _)| *folder == room)?;
        let name = graph.whole(file).rsplit('/').next()?.trim_end_matches(".rs");
        files.split_whitespace().position(|known| known == name)
    };
    let is_up = |from: &str, to: &str| {
        let (from, to) = match (room(from), room(to)) {
            (None, _) => return false,
            (Some(_), None) => return true,
            (Some(one), Some(other)) if one == other => (within(one, from), within(one, to)),
            (Some(one), Some(other)) => (height(one), height(other)),
        };
        from.is_none() || to.is_none() || to >= from
    };
    graph.between().filter(|(from, to, _)| is_up(from, to)).map(|(from, to, names)| arrow(from, to, names)).collect()
}

#[test]
fn no_files_of_the_operator_need_each_other() {
    let graph = operator();
    assert!(graph.between().count() > 100, "where are the imports?");
    assert_eq!(graph.circles(), [] as [Vec<&str>; 0], "each of these arrows closes a circle");
    assert_eq!(graph.scattered, [] as [&str; 0], "these belong into the folder of their type");
}

#[test]
fn no_files_of_a_crate_need_each_other() {
    for folder in crates() {
        let graph = of_crate(&folder);
        let (knots, circles) = (graph.knots(), graph.circles());
        assert!(knots.is_empty(), "{folder}: {knots:#?}, among them these circles: {circles:#?}");
    }
}

#[test]
fn no_arrow_of_the_planner_runs_up() {
    let graph = operator();
    let rooms: BTreeSet<&str> = graph.between().filter_map(|(from, _, _)| room(from)).collect();
    let known: BTreeSet<&str> = floors().collect();
    assert_eq!(rooms.difference(&known).collect::<Vec<_>>(), [] as [&&str; 0], "on which floor are these?");
    assert_eq!(up(&graph), [] as [&str; 0]);
    let across: Vec<_> = graph.joined().filter(|(file, whole)| room(file) != room(whole)).collect();
    assert_eq!(across, [] as [(&str, &str); 0], "an `impl` block of a type stays in its room");
}

/// Returns dependencies of the gateway on a later module, and those from or to a file in no listed
/// module.
fn up_in_gateway(graph: &Graph) -> Vec<String> {
    let height = |file: &str| {
        let room = file.split('/').next()?.trim_end_matches(".rs");
        GATEWAY.iter().flat_map(|floor| floor.split_whitespace()).position(|known| known == room)
    };
    let is_up = |from: &str, to: &str| height(from).is_none() || height(to).is_none() || height(to) > height(from);
    graph.between().filter(|(from, to, _)| is_up(from, to)).map(|(from, to, names)| arrow(from, to, names)).collect()
}

#[test]
fn no_arrow_between_rooms_of_the_gateway_runs_up() {
    let graph = of_crate("gateway");
    assert_eq!(up_in_gateway(&graph), [] as [&str; 0]);
    assert_eq!(graph.scattered, [] as [&str; 0], "these belong into the folder of their type");
}

#[test]
fn an_arrow_that_runs_up_in_the_gateway_is_seen() {
    let planted = |text: &str| {
        let files = [
            ("front.rs", "mod store; pub struct Gateway;"),
            ("front/store.rs", "use crate::head::Ask; pub struct Reading;"),
            ("head/mod.rs", "mod copy; pub struct Ask;"),
            ("head/copy.rs", text),
            ("elsewhere.rs", "pub struct Other;"),
        ];
        up_in_gateway(&Graph::of(&files.map(|(name, text)| (name.to_owned(), text.to_owned()))))
    };
    assert_eq!(planted(""), [] as [&str; 0]);
    assert_eq!(planted("use crate::front::Gateway;"), ["head/copy.rs -> front.rs: Gateway"]);
    assert_eq!(planted("use crate::elsewhere::Other;"), ["head/copy.rs -> elsewhere.rs: Other"]);
}

#[test]
fn an_arrow_that_runs_up_in_the_planner_is_seen() {
    let planted = |file: &str, text: &str| {
        let files = [
            ("act.rs", "use crate::plan::next; pub fn act() {}"),
            ("plan/mod.rs", "mod halt; mod bind; mod view; mod bucket; pub fn next() { bind::walk() }"),
            ("plan/halt.rs", "pub struct Halt;"),
            ("plan/bind.rs", "use super::{bucket, halt::Halt}; pub fn walk() { bucket::obtain() }"),
            ("plan/bucket.rs", "use super::view::View; pub fn obtain() {}"),
            ("plan/view/mod.rs", "mod setting; mod learn; pub struct View(setting::Setting);"),
            ("plan/view/setting.rs", "pub struct Setting;"),
            ("plan/view/learn.rs", "use super::View; impl View {}"),
        ];
        let planted = files.map(|(name, before)| {
            let after = if name == file { format!("{before} {text}") } else { before.to_owned() };
            (name.to_owned(), after)
        });
        up(&Graph::of(&planted))
    };
    assert_eq!(planted("", ""), [] as [&str; 0]);
    assert_eq!(planted("plan/halt.rs", "use super::bind::walk;"), ["plan/halt.rs -> plan/bind.rs: walk"]);
    assert_eq!(planted("plan/halt.rs", "use crate::act::act;"), ["plan/halt.rs -> act.rs: act"]);
    assert_eq!(planted("plan/bucket.rs", "fn f() { super::next() }"), ["plan/bucket.rs -> plan/mod.rs: next"]);
    assert_eq!(
        planted("plan/view/learn.rs", "use crate::plan::bucket::obtain;"),
        ["plan/view/learn.rs -> plan/bucket.rs: obtain"]
    );
    assert_eq!(planted("plan/view/setting.rs", "use super::View;"), ["plan/view/setting.rs -> plan/view/mod.rs: View"]);
}
