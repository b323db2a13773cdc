//! Plays the guide: every command on a page, in order, on a separate simulator for each page.
//!
//! `page` extracts the commands that a reader would type, with the grammar of `shell`. `table`
//! lists the prerequisites of each page, and `scripts` set them up. `left_out` lists the commands
//! that are not played. `play` runs a page.

mod left_out;
mod page;
mod play;
mod scripts;
mod shell;
mod table;

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use stowage_testbed::console::{print, unless_interrupted};
use stowage_testbed::control_plane;

use self::page::Page;
use crate::chart::helm;

#[derive(Debug, Args)]
pub(crate) struct GuideArgs {
    /// Pages to play, such as docs/guide/install.md; all by default.
    #[arg(value_name = "PAGE")]
    pages: Vec<String>,
    /// Number of pages to play at the same time.
    #[arg(long, env = "STOWAGE_JOBS", value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    /// Print each command before it is run.
    #[arg(long, env = "STOWAGE_VERBOSE", value_parser = clap::builder::BoolishValueParser::new())]
    verbose: bool,
}

/// Plays the pages, and prints the result of each.
///
/// # Errors
/// Fails with the number of failed commands, with table rows that match nothing, or if a page can't
/// be started.
pub(crate) async fn run(args: GuideArgs) -> Result<()> {
    unless_interrupted(play_all(&args)).await
}

async fn play_all(args: &GuideArgs) -> Result<()> {
    let root = std::path::absolute(".").context("there is no folder to work in")?;
    let pages = page::all(&root)?;
    let stale = table::stale(&pages);
    ensure!(stale.is_empty(), "the tables of e2e/src/guide are about what is no more: {}", stale.join("; "));
    let chosen = chosen(&pages, &args.pages)?;
    let helm = std::path::absolute(helm::program()?).context("helm has no path")?;
    let programs = play::Programs::new(control_plane::Programs::kubectl()?, helm)?;
    let began = Instant::now();
    let plays = chosen.into_iter().map(|page| play::play(page, &programs, &root, args.verbose));
    let mut plays = stream::iter(plays).buffered(usize::from(args.jobs));
    let (mut count, mut played, mut left_out, mut failed) = (0, 0, 0, 0);
    while let Some(outcome) = plays.try_next().await? {
        print(&outcome.to_string())?;
        count += 1;
        played += outcome.played;
        left_out += outcome.left_out();
        failed += outcome.failed.len();
    }
    ensure!(failed == 0, "{failed} commands of the guide failed");
    let seconds = began.elapsed().as_secs_f64();
    print(&format!("{count} pages: played {played} commands, left out {left_out}, in {seconds:.1} s"))?;
    Ok(())
}

/// Returns the named pages; all if none is named.
fn chosen<'a>(pages: &'a [Page], named: &[String]) -> Result<Vec<&'a Page>> {
    let find = |name: &String| {
        let name = name.trim_start_matches("./");
        pages.iter().find(|page| page.path == name).with_context(|| format!("there is no page {name}"))
    };
    if named.is_empty() { Ok(pages.iter().collect()) } else { named.iter().map(find).collect() }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn pages() -> Vec<Page> {
        page::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap()
    }

    #[test]
    fn every_page_is_read_and_every_row_of_the_tables_is_about_one() {
        let pages = pages();
        assert_eq!(table::stale(&pages), [] as [&str; 0]);
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
        for folder in ["docs/guide", "docs/operate", "docs/operate/runbooks"] {
            for entry in root.join(folder).read_dir().unwrap() {
                let path = format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy());
                let is_read = pages.iter().any(|page| page.path == path);
                assert_eq!(is_read, path.ends_with(".md"), "{path}");
            }
        }
    }

    #[test]
    fn every_page_with_a_command_that_is_played_has_what_it_takes_for_granted() {
        for page in pages() {
            let is_played = page.steps.iter().any(|step| left_out::reason(step).is_none());
            assert!(!is_played || table::setup(&page.path).is_some(), "{}", page.path);
        }
    }

    #[test]
    fn a_page_is_chosen_by_its_path() {
        let pages = pages();
        assert_eq!(chosen(&pages, &[]).unwrap().len(), pages.len());
        let one = chosen(&pages, &["./docs/guide/install.md".to_owned()]).unwrap();
        assert_eq!(one.iter().map(|page| page.path.as_str()).collect::<Vec<_>>(), ["docs/guide/install.md"]);
        assert!(chosen(&pages, &["docs/guide/no.md".to_owned()]).is_err());
    }
}
