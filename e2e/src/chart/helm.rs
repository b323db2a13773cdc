//! The program `helm`.

use std::path::Path;

use anyhow::Result;
use stowage_testbed::tools;

/// Where the chart is installed.
pub(super) const NAMESPACE: &str = "stowage-system";
/// The name of the release.
pub(super) const RELEASE: &str = "stowage";
/// The version that `e2e/helm/build` builds.
const VERSION: &str = include_str!("../../helm/version");
/// The API server's version that is told where none is asked.
const KUBERNETES: &str = "1.34.0";

/// Where it is: looks where `e2e/helm/build` puts it, then on the `PATH`.
///
/// # Errors
/// It is in neither place.
pub(crate) fn program() -> Result<String> {
    tools::built("helm", VERSION.trim())
}

/// Where it is.
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

    /// Asks a cluster.
    pub(super) async fn on(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<String> {
        self.within(kubeconfig, NAMESPACE, arguments).await
    }

    /// Asks a cluster about a release of this namespace.
    pub(super) async fn within(&self, kubeconfig: &Path, namespace: &str, arguments: &[&str]) -> Result<String> {
        let kubeconfig = kubeconfig.display().to_string();
        tools::run(&self.0, &[arguments, &["--kubeconfig", &kubeconfig, "--namespace", namespace]].concat()).await
    }
}
