//! Reads a kubeconfig. Errors don't include the underlying error's text: like the file itself, it
//! may contain credentials.

use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Reads the address and the credentials of a cluster from a kubeconfig.
///
/// Uses `file`, or the usual places (`KUBECONFIG`, `~/.kube/config`) without one, and `context`, or
/// the current context without one.
///
/// # Errors
/// Returns an error message if the kubeconfig can't be read or names no usable cluster. The message
/// quotes nothing from it.
pub async fn read(file: Option<&Path>, context: Option<&str>) -> Result<Config, String> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let read = file.map_or_else(Kubeconfig::read, Kubeconfig::read_from);
    let read = read.map_err(|_| format!("can't read {}", called(file)))?;
    let config = Config::from_custom_kubeconfig(read, &options).await;
    config.map_err(|_| format!("{} doesn't say how to reach a cluster", called(file)))
}

/// Creates a client for the cluster of this configuration.
///
/// # Errors
/// Returns an error message without a reason if the client can't be created. The reason may contain
/// credentials: a kubeconfig can run a program to get them, and kube's error can include the
/// program's output.
pub fn client(config: Config) -> Result<Client, String> {
    Client::try_from(config).map_err(|_| "can't use the credentials for the cluster".to_owned())
}

fn called(file: Option<&Path>) -> String {
    file.map_or_else(|| "the kubeconfig".to_owned(), |file| format!("the kubeconfig {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_stands_in_a_kubeconfig_is_not_told() {
        let folder = tempfile::TempDir::new().expect("there is room");
        let file = folder.path().join("config");
        for text in ["users: [{name: hush, user: hush", "users: hush", "current-context: hush"] {
            std::fs::write(&file, text).expect("it can be written");
            let error = read(Some(&file), None).await.expect_err("it is no kubeconfig");
            assert!(error.contains("config") && !error.contains("hush"), "{error}");
        }
        let error = read(Some(&folder.path().join("none")), None).await.expect_err("there is none");
        assert!(error.starts_with("can't read the kubeconfig "), "{error}");
    }
}
