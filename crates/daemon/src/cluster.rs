//! The way to the API server.

use std::io::ErrorKind;
use std::path::Path;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

/// A client for the API server, and the namespace that the process runs in; `None` for that outside
/// of a cluster. Without a kubeconfig and without a context it is the pod's own.
///
/// It makes no retries: those are its users' business.
///
/// # Errors
/// One sentence: what failed. It quotes no kubeconfig.
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

/// The same for a command of a person, who has what kubectl has: without a kubeconfig and without a
/// context it is the usual kubeconfig, and where there is none, the pod's own.
///
/// # Errors
/// As [`client`].
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

/// What is wrong with a kubeconfig, in one line that doesn't quote it: there are credentials in it.
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

/// A namespace's name, as Kubernetes would accept it: for command lines.
///
/// # Errors
/// What a namespace is called like.
pub fn namespace(text: &str) -> Result<String, String> {
    let outer = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = (1..=63).contains(&text.len())
        && text.starts_with(outer)
        && text.ends_with(outer)
        && text.chars().all(|c| outer(c) || c == '-');
    let why = "a namespace has 1 to 63 characters of a-z, 0-9 and -, with a letter or digit at both ends";
    if fits { Ok(text.to_owned()) } else { Err(why.to_owned()) }
}
