//! The checkable parts of a Markdown page.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The checkable parts of a page.
#[derive(Debug, Default)]
pub struct Page {
    /// Its links.
    pub links: Vec<Link>,
    /// Its anchors: headings, as GitHub names them.
    pub anchors: BTreeSet<String>,
    /// Code blocks.
    pub blocks: Vec<String>,
    /// Inline code.
    pub codes: Vec<String>,
}

/// A link.
#[derive(Debug)]
pub struct Link {
    /// Its target, as written on the page.
    pub target: String,
}

impl Page {
    /// Parses a page.
    pub fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut names = BTreeMap::new();
        let (mut heading, mut block) = (None::<String>, None::<String>);
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(Link { target: dest_url.to_string() });
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let name = anchor(&heading.take().unwrap_or_default());
                    let times = names.entry(name.clone()).and_modify(|times| *times += 1).or_insert(0);
                    page.anchors.insert(if *times == 0 { name } else { format!("{name}-{times}") });
                }
                Event::Start(Tag::CodeBlock(_)) => block = Some(String::new()),
                Event::End(TagEnd::CodeBlock) => page.blocks.extend(block.take()),
                Event::Text(text) => {
                    if let Some(open) = block.as_mut().or(heading.as_mut()) {
                        open.push_str(&text);
                    }
                }
                Event::Code(code) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&code);
                    }
                    page.codes.push(code.to_string());
                }
                _ => {}
            }
        }
        page
    }
}

/// Returns the anchor of a heading: in lower case, with hyphens for spaces, and without other
/// punctuation.
fn anchor(heading: &str) -> String {
    let kept = |it: &char| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_');
    heading.to_lowercase().chars().filter(kept).map(|it| if it == ' ' { '-' } else { it }).collect()
}
