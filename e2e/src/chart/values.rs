//! Values files of the chart, and the objects rendered with them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::helm::Helm;

/// A values file.
pub(super) struct Values {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// Reads the files of a directory, sorted by name.
pub(super) fn values(directory: &Path) -> Result<Vec<Values>> {
    let failed = || format!("can't read {}", directory.display());
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(failed)? {
        let path = entry.with_context(failed)?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).with_context(failed)?;
        all.push(Values { name, path, text });
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

/// Lints and renders the chart with these values, and returns the objects.
pub(super) async fn rendered(helm: &Helm, chart: &Path, values: &Values) -> Result<Vec<Value>> {
    helm.lint(chart, &values.path).await?;
    let text = helm.template(chart, &values.path).await?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).context("what it renders is no YAML")?;
    Ok(objects.into_iter().filter(|object| !object.is_null()).collect())
}
