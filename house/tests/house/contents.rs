//! Items, imports and paths in a Rust file, without its tests.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, File, ImplItem, Item, ItemImpl, ItemMod, ItemUse, Macro, Meta, Type, UseTree, Visibility};

/// Items, imports and paths of a file.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Names of the items that it defines.
    pub(crate) defines: BTreeSet<String>,
    /// Its imports.
    pub(crate) imports: Vec<Import>,
    /// Paths in its code with all their names, without imports.
    pub(crate) paths: BTreeSet<Vec<String>>,
    /// Types with inherent `impl` blocks in the file.
    pub(crate) implements: BTreeSet<String>,
}

/// A name that a `use` declaration imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// Path with the name as its last part, or with `*` for a glob import.
    pub(crate) path: Vec<String>,
    /// Local name.
    pub(crate) alias: String,
    /// True if it is re-exported.
    pub(crate) exported: bool,
}

impl Contents {
    /// Parses a file.
    pub(crate) fn read(text: &str) -> Self {
        let file = without_tests(text);
        let mut contents = Self { defines: file.items.iter().filter_map(name).collect(), ..Self::default() };
        contents.visit_file(&file);
        contents
    }
}

/// Parses a file without the items that are for tests only.
pub(crate) fn without_tests(text: &str) -> File {
    let mut file = syn::parse_file(text).unwrap_or_else(|error| panic!("it can't be parsed: {error}"));
    file.items.retain(|item| !is_test(attributes(item)));
    for item in &mut file.items {
        if let Item::Impl(block) = item {
            block.items.retain(|item| !matches!(item, ImplItem::Fn(function) if is_test(&function.attrs)));
        }
    }
    file
}

impl<'ast> Visit<'ast> for Contents {
    /// Skips a module within a file, as used by serde's `with`, because its paths are relative to
    /// another module.
    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let exported = !matches!(item.vis, Visibility::Inherited);
        brought_in(&item.tree, &mut Vec::new(), exported, &mut self.imports);
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if let (None, Type::Path(of)) = (&item.trait_, &*item.self_ty) {
            self.implements.extend(of.path.segments.last().map(|segment| segment.ident.to_string()));
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.paths.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    /// Collects the tokens of a macro that look like paths, as its arguments can have any syntax.
    fn visit_macro(&mut self, given: &'ast Macro) {
        self.visit_path(&given.path);
        self.scan(given.tokens.clone());
    }
}

impl Contents {
    fn scan(&mut self, tokens: TokenStream) {
        let mut path = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) if path.is_empty() || colons == 2 => {
                    path.push(name.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() && colons < 2 => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => self.scan(group.stream()),
                TokenTree::Ident(name) => {
                    self.paths.insert(std::mem::replace(&mut path, vec![name.to_string()]));
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            self.paths.insert(std::mem::take(&mut path));
            colons = 0;
        }
        self.paths.insert(path);
        self.paths.remove(&Vec::new());
    }
}

fn brought_in(tree: &UseTree, path: &mut Vec<String>, exported: bool, imports: &mut Vec<Import>) {
    let mut import = |path: Vec<String>, alias: String| imports.push(Import { path, alias, exported });
    match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            brought_in(&step.tree, path, exported, imports);
            path.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| brought_in(tree, path, exported, imports)),
        UseTree::Glob(_) => import([&path[..], &["*".to_owned()]].concat(), "*".to_owned()),
        UseTree::Name(name) if name.ident == "self" => {
            import(path.clone(), path.last().cloned().unwrap_or_default());
        }
        UseTree::Name(name) => import([&path[..], &[name.ident.to_string()]].concat(), name.ident.to_string()),
        UseTree::Rename(name) if name.ident == "self" => import(path.clone(), name.rename.to_string()),
        UseTree::Rename(name) => import([&path[..], &[name.ident.to_string()]].concat(), name.rename.to_string()),
    }
}

/// True if the item is for tests only.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        Meta::NameValue(_) => false,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name(item: &Item) -> Option<String> {
    match item {
        Item::Const(item) => Some(item.ident.to_string()),
        Item::Enum(item) => Some(item.ident.to_string()),
        Item::Fn(item) => Some(item.sig.ident.to_string()),
        Item::Macro(item) => item.ident.as_ref().map(ToString::to_string),
        Item::Static(item) => Some(item.ident.to_string()),
        Item::Struct(item) => Some(item.ident.to_string()),
        Item::Trait(item) => Some(item.ident.to_string()),
        Item::Type(item) => Some(item.ident.to_string()),
        _ => None,
    }
}
