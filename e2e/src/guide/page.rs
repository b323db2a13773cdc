//! A page of the documentation, and the steps in it.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::shell;

/// Folders of pages, searched recursively.
const FOLDERS: [&str; 2] = ["docs/guide", "docs/operate"];
/// Languages of blocks of commands; an indented block has the empty one.
const SHELLS: [&str; 4] = ["", "bash", "console", "sh"];
/// First words of blocks that are neither commands nor manifests, although no language marks them.
const TEXTS: [&str; 6] = ["spec:", "{\"Version\":", "step", "s3backend/main", "Claim", "Access"];

/// A step that a reader takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Types a command.
    Command(String),
    /// Applies a manifest: a block of YAML with whole objects.
    Manifest(String),
}

impl Step {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Command(text) | Self::Manifest(text) => text,
        }
    }
}

/// A page.
pub(super) struct Page {
    /// Relative to the project's root.
    pub(super) path: String,
    pub(super) steps: Vec<Step>,
}

impl Page {
    /// Extracts the steps of a page: blocks of code, and inline code that is a whole command.
    ///
    /// # Errors
    /// Fails for a block of unknown kind.
    fn parse(path: &str, text: &str) -> Result<Self> {
        let (mut steps, mut block) = (Vec::new(), None::<(String, String)>);
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) => block = Some(Default::default()),
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    block = Some((language.to_string(), String::new()));
                }
                Event::Text(text) => {
                    if let Some((_, block)) = &mut block {
                        block.push_str(&text);
                    }
                }
                Event::End(TagEnd::CodeBlock) => {
                    let (language, block) = block.take().unwrap_or_default();
                    steps.extend(of_block(&language, &block).with_context(|| path.to_owned())?);
                }
                Event::Code(code) if shell::is_whole(&code) => steps.push(Step::Command(code.to_string())),
                _ => {}
            }
        }
        Ok(Self { path: path.to_owned(), steps })
    }
}

fn of_block(language: &str, block: &str) -> Result<Vec<Step>> {
    if language == "yaml" {
        let is_whole = block.lines().any(|line| line.starts_with("apiVersion:"));
        return Ok(is_whole.then(|| Step::Manifest(block.to_owned())).into_iter().collect());
    }
    if !SHELLS.contains(&language) {
        return Ok(Vec::new());
    }
    let first = block.split_whitespace().next().unwrap_or_default();
    match shell::commands(block) {
        Some(commands) => Ok(commands.into_iter().map(Step::Command).collect()),
        None if TEXTS.contains(&first) => Ok(Vec::new()),
        None => bail!("a block begins with `{first}`, which is neither a program of shell.rs nor a text of page.rs"),
    }
}

/// Reads all pages below the project's root, sorted by path.
///
/// # Errors
/// Fails if a page can't be read or parsed.
pub(super) fn all(root: &Path) -> Result<Vec<Page>> {
    let mut paths = Vec::new();
    let mut left: Vec<String> = FOLDERS.map(str::to_owned).into();
    while let Some(path) = left.pop() {
        let place = root.join(&path);
        if place.is_dir() || FOLDERS.contains(&path.as_str()) {
            for entry in place.read_dir().with_context(|| format!("{path}: is this the project's root?"))? {
                left.push(format!("{path}/{}", entry?.file_name().to_string_lossy()));
            }
        } else if place.extension().is_some_and(|it| it == "md") {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: &String| {
        let text = std::fs::read_to_string(root.join(path)).with_context(|| path.clone())?;
        Page::parse(path, &text)
    };
    paths.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<Step> {
        Page::parse("a.md", text).unwrap().steps
    }

    fn command(text: &str) -> Step {
        Step::Command(text.to_owned())
    }

    #[test]
    fn commands_are_taken_from_blocks_of_all_forms_and_from_lines() {
        let page = "Do\n\n    kubectl get a\n    kubectl get b\n\nor `kubectl get c -o yaml`, as `kubectl get` does:\n\n\
                    ```console\n$ kubectl get d\nNAME\n```\n\n- in a list\n\n      kubectl get e\n\n| a |\n|---|\n| `kubectl get f -n g` |\n";
        let expected = ["get a", "get b", "get c -o yaml", "get d", "get e", "get f -n g"];
        assert_eq!(steps(page), expected.map(|it| command(&format!("kubectl {it}"))));
    }

    #[test]
    fn objects_are_applied_and_parts_of_them_and_other_languages_are_not() {
        let page =
            "```yaml\napiVersion: v1\nkind: A\n```\n```yaml\nspec: {}\n```\n```rust\nkubectl!()\n```\n\n    spec:\n";
        assert_eq!(steps(page), [Step::Manifest("apiVersion: v1\nkind: A\n".to_owned())]);
    }

    #[test]
    fn a_block_of_which_nobody_has_said_what_it_is_is_an_error() {
        let why = Page::parse("a.md", "Do\n\n    frobnicate x\n").err().map(|why| format!("{why:#}"));
        assert!(why.is_some_and(|why| why.starts_with("a.md: a block begins with `frobnicate`")));
    }
}
