//! Values for the chart, and what it renders with them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::helm::Helm;

/// Values for the chart.
pub(super) struct Values {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// The files of a directory, by name.
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

/// The objects that the chart renders with these values.
pub(super) async fn rendered(helm: &Helm, chart: &Path, values: &Values) -> Result<Vec<Value>> {
    helm.lint(chart, &values.path).await?;
    let text = helm.template(chart, &values.path).await?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text).context("what it renders is no YAML")?;
    Ok(objects.into_iter().filter(|object| !object.is_null()).collect())
}
