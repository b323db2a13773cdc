//! The program `helm`.

use std::path::Path;

use anyhow::Result;
use stowage_testbed::tools;

/// Namespace of the release.
pub(super) const NAMESPACE: &str = "stowage-system";
/// Name of the release.
pub(super) const RELEASE: &str = "stowage";
/// The version that `e2e/helm/build` builds.
const VERSION: &str = include_str!("../../helm/version");
/// Kubernetes version for rendering without a cluster.
const KUBERNETES: &str = "1.34.0";

/// Finds helm where `e2e/helm/build` puts it, or else on the `PATH`.
///
/// # Errors
/// Fails if it is in neither place.
pub(crate) fn program() -> Result<String> {
    tools::built("helm", VERSION.trim())
}

/// Path of the program.
pub(super) struct Helm(String);

impl Helm {
    pub(super) fn find() -> Result<Self> {
        program().map(Self)
    }

    pub(super) fn at(program: &Path) -> Self {
        Self(program.display().to_string())
    }

    pub(super) async fn lint(&self, chart: &Path, values: &Path) -> Result<String> {
        let (chart, values) = (chart.display().to_string(), values.display().to_string());
        tools::run(&self.0, &["lint", "--strict", "--kube-version", KUBERNETES, "--values", &values, &chart]).await
    }

    pub(super) async fn template(&self, chart: &Path, values: &Path) -> Result<String> {
        let (chart, values) = (chart.display().to_string(), values.display().to_string());
        let arguments = ["template", RELEASE, &chart, "--namespace", NAMESPACE, "--values", &values];
        tools::run(&self.0, &[&arguments[..], &["--kube-version", KUBERNETES]].concat()).await
    }

    /// Runs helm on a cluster, in the namespace of the release.
    pub(super) async fn on(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<String> {
        self.within(kubeconfig, NAMESPACE, arguments).await
    }

    /// Runs helm on a cluster, in this namespace.
    pub(super) async fn within(&self, kubeconfig: &Path, namespace: &str, arguments: &[&str]) -> Result<String> {
        let kubeconfig = kubeconfig.display().to_string();
        tools::run(&self.0, &[arguments, &["--kubeconfig", &kubeconfig, "--namespace", namespace]].concat()).await
    }
}
