//! Upgrades from earlier charts, of which the values files are kept.
//!
//! `helm upgrade --reuse-values` renders the current chart with the values of the installed one. So
//! the current chart with the values file of an earlier one stands for that earlier chart.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use stowage_testbed::console::print;
use tempfile::TempDir;

use super::life::Life;
use super::values::{Values, rendered, values};

/// Helm's flags that keep the values of the installed release.
const FLAGS: [&str; 2] = ["--reuse-values", "--reset-then-reuse-values"];

/// Copies of the current chart with the values files of earlier ones.
pub(super) struct Earlier {
    folder: TempDir,
    names: Vec<String>,
}

impl Earlier {
    /// Creates one chart for each file of this directory.
    pub(super) fn of(chart: &Path, directory: &Path) -> Result<Self> {
        let folder = TempDir::new().context("there is no room for temporary files")?;
        let mut names = Vec::new();
        for Values { name, text, .. } in values(directory)? {
            let copy = folder.path().join(&name);
            copy_all(chart, &copy)?;
            std::fs::write(copy.join("values.yaml"), text).context("can't write values")?;
            names.push(name);
        }
        ensure!(names.len() >= 3, "there are too few earlier charts to tell anything");
        Ok(Self { folder, names })
    }

    fn charts(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        self.names.iter().map(|name| (name.as_str(), self.folder.path().join(name)))
    }

    /// Checks that each renders like the current chart, with the values that a user has set.
    pub(super) async fn render(&self, life: &Life<'_>) -> Result<()> {
        let today = rendered(life.helm, life.chart, life.values).await?;
        for (name, chart) in self.charts() {
            let then = rendered(life.helm, &chart, life.values).await;
            let then = then.with_context(|| format!("{name} with --reuse-values"))?;
            ensure!(then == today, "{name} with --reuse-values is something else than a new installation");
        }
        print(&format!(
            "{} earlier charts, kept by --reuse-values, render as a new installation does",
            self.names.len()
        ))
    }

    /// Installs and upgrades each of them, with each of the flags.
    pub(super) async fn upgrade(&self, life: &Life<'_>) -> Result<()> {
        for (name, chart) in self.charts() {
            for flag in FLAGS {
                life.upgrade_from(&chart, flag).await.with_context(|| format!("{name} with {flag}"))?;
            }
        }
        print(&format!("{} earlier charts are upgraded, by {}", self.names.len(), FLAGS.join(" and by ")))
    }
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    let failed = || format!("can't copy {}", from.display());
    std::fs::create_dir_all(to).with_context(failed)?;
    for entry in std::fs::read_dir(from).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_all(&path, &copy)?;
        } else {
            std::fs::copy(&path, &copy).with_context(failed)?;
        }
    }
    Ok(())
}
