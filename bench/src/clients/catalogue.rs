//! The clients and their installations. `operators` installs third-party operators in the same way.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use sha2::{Digest as _, Sha256};
use stowage_testbed::console::tell;
use stowage_testbed::script::Script;

/// Time limit for an installation; some are compiled.
const INSTALLATION: Duration = Duration::from_secs(30 * 60);
/// Files that a client's directory must have: its version, the installer, and the script that plays
/// it.
const FILES: [&str; 3] = ["version", "install", "run"];

/// A client: a directory with the scripts that install and play it.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) version: String,
    directory: PathBuf,
}

/// Reads the clients of a directory, sorted by name.
///
/// # Errors
/// Fails if it can't be read.
pub(crate) fn read(directory: &Path) -> Result<Vec<Client>> {
    let directory = std::path::absolute(directory).with_context(|| directory.display().to_string())?;
    let entries = fs::read_dir(&directory);
    let entries = entries.with_context(|| format!("{} can't be read", directory.display()))?;
    let mut clients = Vec::new();
    for entry in entries {
        let path = entry.context("a directory can't be read")?.path();
        if FILES.iter().all(|file| path.join(file).is_file()) {
            clients.push(one(&path)?);
        }
    }
    clients.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(clients)
}

/// Reads the client in this directory.
///
/// # Errors
/// Fails if it can't be read.
pub(super) fn one(directory: &Path) -> Result<Client> {
    let path = std::path::absolute(directory).with_context(|| directory.display().to_string())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let version = fs::read_to_string(path.join("version")).with_context(|| path.display().to_string())?;
    Ok(Client::new(&name, version.trim(), &path))
}

impl Client {
    pub(super) fn new(name: &str, version: &str, directory: &Path) -> Self {
        Self { name: name.to_owned(), version: version.to_owned(), directory: directory.to_owned() }
    }

    /// Returns the path of the script that plays it.
    pub(crate) fn program(&self) -> PathBuf {
        self.directory.join("run")
    }

    /// Returns the directory of its installation. Installs it first if the content of its directory
    /// has changed since.
    ///
    /// # Errors
    /// Fails if it can't be installed here, with the message of its script.
    pub(crate) async fn installed(&self, cache: &Path) -> Result<PathBuf> {
        let home = cache.join(format!("{}-{}", self.name, self.digest()?));
        // A Python environment contains its own path, so it can't be created elsewhere and moved.
        // An interrupted installation is recognized by its missing mark.
        let mark = cache.join(format!("{}-{}.is-installed", self.name, self.digest()?));
        if mark.exists() {
            return Ok(home);
        }
        tell(&format!("installing {} {}", self.name, self.version));
        fs::create_dir_all(&home).with_context(|| home.display().to_string())?;
        let script = Script { program: &self.directory.join("install"), directory: cache, environment: None };
        let done = script.run(&[&home], INSTALLATION).await?;
        if !done.status.success() {
            return Err(anyhow!("{}", done.last_words()));
        }
        fs::write(&mark, "").with_context(|| mark.display().to_string())?;
        Ok(home)
    }

    /// Returns a digest of its directory, and of the parts of `common` that its installer names.
    fn digest(&self) -> Result<String> {
        let install = fs::read_to_string(self.directory.join("install"));
        let install = install.with_context(|| self.directory.display().to_string())?;
        let mut files = files(&self.directory)?;
        let common = self.directory.with_file_name("common");
        for shared in if common.is_dir() { entries(&common)? } else { Vec::new() } {
            let name = shared.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if install.contains(&format!("common/{name}")) {
                files.extend(if shared.is_dir() { self::files(&shared)? } else { vec![shared] });
            }
        }
        let mut digest = Sha256::new();
        for file in files {
            digest.update(fs::read(&file).with_context(|| file.display().to_string())?);
        }
        hex::encode(digest.finalize()).get(..12).map(str::to_owned).ok_or_else(|| anyhow!("a digest is longer"))
    }
}

/// Returns the files of a directory, sorted, without those of subdirectories.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    Ok(entries(directory)?.into_iter().filter(|path| path.is_file()).collect())
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let read = || fs::read_dir(directory)?.map(|entry| entry.map(|it| it.path())).collect::<Result<Vec<_>, _>>();
    let mut entries = read().with_context(|| directory.display().to_string())?;
    entries.sort();
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(directory: &Path, name: &str, install: &str) -> Client {
        use std::os::unix::fs::PermissionsExt as _;
        let place = directory.join(name);
        fs::create_dir_all(&place).unwrap();
        for (file, text) in [("version", "1.2\n"), ("install", install), ("run", "")] {
            fs::write(place.join(file), text).unwrap();
            fs::set_permissions(place.join(file), fs::Permissions::from_mode(0o755)).unwrap();
        }
        read(directory).unwrap().into_iter().find(|client| client.name == name).unwrap()
    }

    #[tokio::test]
    async fn a_client_is_installed_once_for_each_content_of_its_directory() {
        let (clients, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(clients.path().join("common")).unwrap();
        let first = client(clients.path(), "a", "#!/bin/sh\necho x >> $1/times");
        let home = first.installed(cache.path()).await.unwrap();
        assert_eq!(first.installed(cache.path()).await.unwrap(), home);
        assert_eq!(fs::read_to_string(home.join("times")).unwrap(), "x\n");
        let second = client(clients.path(), "a", "#!/bin/sh\ntrue");
        assert_ne!(second.installed(cache.path()).await.unwrap(), home);
        assert_eq!((second.version.as_str(), read(clients.path()).unwrap().len()), ("1.2", 1));
    }

    #[tokio::test]
    async fn a_client_that_cant_be_had_says_why_and_is_tried_again() {
        let (clients, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let client = client(clients.path(), "a", "#!/bin/sh\necho x >> $1/times\necho 'there is no go' >&2\nexit 1");
        for _ in 0..2 {
            assert_eq!(client.installed(cache.path()).await.unwrap_err().to_string(), "there is no go");
        }
    }
}
