//! The CustomResourceDefinitions on a real server.

use anyhow::{Result, ensure};
use kube::ResourceExt;
use stowage_operator::api;
use stowage_testbed::definitions::{apply, established};
use stowage_testbed::environment::Environment;

pub(super) async fn play(environment: &Environment) -> Result<String> {
    for definition in api::crds() {
        let name = definition.name_any();
        let warnings = apply(environment, &definition).await?;
        ensure!(warnings.is_empty(), "{name} is accepted with warnings: {}", warnings.join("; "));
        established(environment, &name).await?;
    }
    Ok(format!("{} definitions applied without a warning, established", api::crds().len()))
}
