//! Clients for the API server.

use std::io::ErrorKind;
use std::path::Path;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

/// Creates a client for the API server. Also returns the namespace that the process runs in, or
/// `None` outside of a cluster.
///
/// Without a kubeconfig and without a context, uses the pod's service account. The client does not
/// retry: that is up to its users.
///
/// # Errors
/// Returns an error message about the failure. It does not quote the kubeconfig.
pub async fn client(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<(Client, Option<String>), String> {
    let explicit = kubeconfig.is_some() || context.is_some();
    let mut config = if explicit {
        let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
        let file = kubeconfig.map_or_else(Kubeconfig::read, Kubeconfig::read_from);
        let file = file.map_err(|error| unusable(&error))?;
        kube::Config::from_custom_kubeconfig(file, &options).await.map_err(|error| unusable(&error))?
    } else {
        kube::Config::incluster().map_err(|error| {
            format!("not in a cluster ({error}); give --kubeconfig or --context to run outside of one")
        })?
    };
    config.default_retry = false;
    let namespace = (!explicit).then(|| config.default_namespace.clone());
    Ok((Client::try_from(config).map_err(|error| error.to_string())?, namespace))
}

/// Like [`client`], for a command that a person runs: without a kubeconfig and without a context,
/// uses the usual kubeconfig as kubectl does, and the pod's service account if there is none.
///
/// # Errors
/// See [`client`].
pub async fn client_of_user(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<(Client, Option<String>), String> {
    if kubeconfig.is_some() || context.is_some() {
        return client(kubeconfig, context).await;
    }
    let file = match Kubeconfig::read() {
        Ok(file) => file,
        Err(KubeconfigError::FindPath) => return client(None, None).await,
        Err(KubeconfigError::ReadConfig(why, _)) if why.kind() == ErrorKind::NotFound => {
            return client(None, None).await;
        }
        Err(error) => return Err(unusable(&error)),
    };
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    let mut config = config.map_err(|error| unusable(&error))?;
    config.default_retry = false;
    Ok((Client::try_from(config).map_err(|error| error.to_string())?, None))
}

/// Describes an error about a kubeconfig in one line. It does not quote the file, which contains
/// credentials.
fn unusable(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(why, path) => format!("can't read the kubeconfig {}: {why}", path.display()),
        KubeconfigError::Parse(why) => match why.location() {
            Some(at) => format!("can't make sense of the kubeconfig at line {}, column {}", at.line(), at.column()),
            None => "can't make sense of the kubeconfig".to_owned(),
        },
        other => format!("can't use the kubeconfig: {other}"),
    }
}

/// Parses the name of a namespace by Kubernetes' rules, for command lines.
///
/// # Errors
/// Returns the rules if the text does not meet them.
pub fn namespace(text: &str) -> Result<String, String> {
    let outer = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = (1..=63).contains(&text.len())
        && text.starts_with(outer)
        && text.ends_with(outer)
        && text.chars().all(|c| outer(c) || c == '-');
    let why = "a namespace has 1 to 63 characters of a-z, 0-9 and -, with a letter or digit at both ends";
    if fits { Ok(text.to_owned()) } else { Err(why.to_owned()) }
}
