//! The kubeconfig of a running simulator, in a separate file: the user's own one is never changed.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

/// Name of the cluster, the user and the context.
const NAME: &str = "stowage-sim";

/// Returns a kubeconfig with one context, which is the current one. It is JSON, which is also YAML.
pub(super) fn text(server: &str, authority: &str, token: &str) -> String {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": NAME,
        "clusters": [{"name": NAME, "cluster": {
            "server": server, "certificate-authority-data": BASE64_STANDARD.encode(authority),
        }}],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
    });
    format!("{config:#}\n")
}

/// Writes the kubeconfig atomically, with access for its owner only. A directory that is created
/// for it gets a `.gitignore`.
///
/// # Errors
/// Returns an error if the file or the directory can't be written.
pub(super) fn write(file: &Path, text: &str) -> io::Result<()> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !directory.exists() {
        fs::create_dir_all(directory)?;
        fs::write(directory.join(".gitignore"), "*\n")?;
    }
    let mut unfinished = file.as_os_str().to_owned();
    unfinished.push(".new");
    // A leftover file may have other permissions.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    new.write_all(text.as_bytes())?;
    fs::rename(&unfinished, file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use kube::config::Kubeconfig;

    use super::*;

    #[test]
    fn it_is_read_as_written_by_its_owner_alone() {
        let folder = tempfile::TempDir::new().expect("there is room");
        let file = folder.path().join("deep/kubeconfig");
        for token in ["first", "second"] {
            write(&file, &text("https://127.0.0.1:6443", "PEM", token)).expect("it can be written");
            let read = Kubeconfig::read_from(&file).expect("it is a kubeconfig");
            assert_eq!(read.current_context.as_deref(), Some(NAME));
            let mode = fs::metadata(&file).expect("it is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(fs::read_to_string(folder.path().join("deep/.gitignore")).expect("it is there"), "*\n");
    }
}
