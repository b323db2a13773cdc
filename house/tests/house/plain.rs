//! Code style: no catch-all arms in the planner, no public fields on what a pass knows.

use syn::visit::{self, Visit};
use syn::{Arm, Fields, ImplItemFn, ItemFn, ItemStruct, Pat, Visibility};

use crate::code::code;
use crate::contents::without_tests;

/// Catch-all arms that the planner may have, although a new case would not be noticed there: the
/// file, the function, and the reason.
const CATCH_ALL: [(&str, &str, &str); 4] = [
    ("operator/src/plan/backend/health.rs", "next_probe", "a number: all but 0"),
    ("operator/src/plan/moves.rs", "walk", "whatever else halts the walk is handed on as it is"),
    ("operator/src/plan/announcements.rs", "outcome", "each arm above it has a condition of its own"),
    ("operator/src/plan/announcements.rs", "transitions", "of two options, all but both"),
];

/// Input of the planner, and its output for the next pass: plain data with public fields.
const PLAIN_DATA: [&str; 4] = ["Setting", "Cached", "Remembered", "LetGo"];

/// Functions with a catch-all arm, in order.
#[derive(Default)]
struct CatchAll {
    function: String,
    found: Vec<String>,
}

impl<'ast> Visit<'ast> for CatchAll {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.function = function.sig.ident.to_string();
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.function = function.sig.ident.to_string();
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        let catches = match &arm.pat {
            Pat::Wild(_) => true,
            // A binding catches everything; constants and variants begin with a capital.
            Pat::Ident(name) => name.subpat.is_none() && name.ident.to_string().starts_with(char::is_lowercase),
            _ => false,
        };
        // An arm with a guard is not a catch-all.
        if catches && arm.guard.is_none() {
            self.found.push(self.function.clone());
        }
        visit::visit_arm(self, arm);
    }
}

fn catch_all(text: &str) -> Vec<String> {
    let mut found = CatchAll::default();
    found.visit_file(&without_tests(text));
    found.found
}

#[test]
fn no_match_of_the_planner_catches_all_the_rest() {
    let mut found = Vec::new();
    for (file, text) in code(&["operator/src/plan"]) {
        found.extend(catch_all(&text).into_iter().map(|function| (file.clone(), function)));
    }
    let mut listed = CATCH_ALL.map(|(file, function, _)| (file.to_owned(), function.to_owned()));
    found.sort();
    listed.sort();
    assert_eq!(found, listed, "left, what there is; right, what is explained");
}

#[test]
fn a_catch_all_is_seen() {
    let planted = "fn f() { match a { 1 => {} _ => {} } match b { A => {} rest => rest } }";
    assert_eq!(catch_all(planted), ["f", "f"]);
    let exhaustive = "fn f() { match a { A(_) => {} _ if b => {} C | D => {} NONE => {} } }";
    assert_eq!(catch_all(exhaustive), [] as [&str; 0]);
    assert_eq!(catch_all("#[cfg(test)] mod tests { fn f() { match a { _ => {} } } }"), [] as [&str; 0]);
}

/// Fields that are accessible outside of the view's own files. `inner` is true for a file in the
/// view's folder.
struct Reachable {
    inner: bool,
    found: Vec<String>,
}

impl<'ast> Visit<'ast> for Reachable {
    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        let fields = match &item.fields {
            Fields::Named(fields) => &fields.named,
            Fields::Unnamed(fields) => &fields.unnamed,
            Fields::Unit => return,
        };
        let is_within = |visibility: &Visibility| match visibility {
            Visibility::Inherited => true,
            Visibility::Restricted(to) => self.inner && to.in_token.is_none() && to.path.is_ident("super"),
            Visibility::Public(_) => false,
        };
        if PLAIN_DATA.iter().any(|plain| item.ident == plain) {
            return;
        }
        for (number, field) in fields.iter().enumerate().filter(|(_, field)| !is_within(&field.vis)) {
            let name = field.ident.as_ref().map_or_else(|| number.to_string(), ToString::to_string);
            self.found.push(format!("{}::{name}", item.ident));
        }
    }
}

fn reachable(file: &str, text: &str) -> Vec<String> {
    let mut reachable = Reachable { inner: !file.ends_with("/mod.rs"), found: Vec::new() };
    reachable.visit_file(&without_tests(text));
    reachable.found
}

#[test]
fn what_a_pass_knows_has_no_public_field() {
    let found = code(&["operator/src/plan/view"]).into_iter().flat_map(|(file, text)| reachable(&file, &text));
    assert_eq!(found.collect::<Vec<_>>(), [] as [&str; 0]);
}

#[test]
fn a_field_that_others_can_reach_is_seen() {
    let fields = "pub struct View { a: u8, pub b: u8, pub(super) c: u8, pub(crate) d: u8, pub(in super::super) e: u8 }";
    assert_eq!(reachable("view/mod.rs", fields), ["View::b", "View::c", "View::d", "View::e"]);
    assert_eq!(reachable("view/bucket.rs", fields), ["View::b", "View::d", "View::e"]);
    assert_eq!(reachable("view/mod.rs", "struct Key(u8, pub u8); pub struct Cached { pub a: u8 }"), ["Key::1"]);
}
