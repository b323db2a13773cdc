//! Locations of the control plane's programs.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The version of Kubernetes that `just control-plane` builds.
const VERSION: &str = include_str!("../../../e2e/control-plane/version");

/// Paths of the programs of a control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    pub(super) etcd: PathBuf,
    pub(super) apiserver: PathBuf,
    pub(super) controller_manager: PathBuf,
}

/// The environment variables that determine the places to look in.
#[derive(Clone, Debug, Default)]
struct Surroundings {
    assets: Option<OsString>,
    cache: Option<OsString>,
    home: Option<OsString>,
    path: Option<OsString>,
}

/// Error for a program that was not found on this machine. Its message names the places that were
/// searched and the command that builds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "there is no {0} in KUBEBUILDER_ASSETS, in the user's cache directory or on the PATH: \
     `just control-plane` (e2e/control-plane/build) builds it, once"
)]
pub struct MissingProgram(&'static str);

/// Returns the first program of a control plane that is missing, `None` if all exist.
pub fn missing() -> Option<MissingProgram> {
    Programs::find().err()
}

impl Programs {
    /// Looks for each program in `KUBEBUILDER_ASSETS`, then where `just control-plane` puts them,
    /// then on `PATH`.
    ///
    /// # Errors
    /// Fails if one is in none of these places.
    pub fn find() -> Result<Self, MissingProgram> {
        Self::among(&Surroundings::read().places())
    }

    /// Finds kubectl in the same places.
    ///
    /// # Errors
    /// Fails if it is in none of these places.
    pub fn kubectl() -> Result<PathBuf, MissingProgram> {
        look_up("kubectl", &Surroundings::read().places())
    }

    fn among(places: &[PathBuf]) -> Result<Self, MissingProgram> {
        Ok(Self {
            etcd: look_up("etcd", places)?,
            apiserver: look_up("kube-apiserver", places)?,
            controller_manager: look_up("kube-controller-manager", places)?,
        })
    }
}

impl Surroundings {
    fn read() -> Self {
        Self {
            assets: std::env::var_os("KUBEBUILDER_ASSETS"),
            cache: std::env::var_os("XDG_CACHE_HOME"),
            home: std::env::var_os("HOME"),
            path: std::env::var_os("PATH"),
        }
    }

    /// Returns the directories to search, in order. An empty variable counts as not set.
    fn places(&self) -> Vec<PathBuf> {
        let set = |variable: &Option<OsString>| variable.clone().filter(|value| !value.is_empty());
        let mut places: Vec<PathBuf> = set(&self.assets).map(PathBuf::from).into_iter().collect();
        let cache = set(&self.cache).map(PathBuf::from);
        let cache = cache.or_else(|| set(&self.home).map(|home| PathBuf::from(home).join(".cache")));
        places.extend(cache.map(|cache| cache.join("stowage/control-plane").join(VERSION.trim())));
        places.extend(set(&self.path).iter().flat_map(std::env::split_paths));
        places
    }
}

fn look_up(name: &'static str, places: &[PathBuf]) -> Result<PathBuf, MissingProgram> {
    let mut candidates = places.iter().map(|place| place.join(name));
    candidates.find(|candidate| is_program(candidate)).ok_or(MissingProgram(name))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use rstest::rstest;

    use super::*;

    const NAMES: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];

    fn install(place: &Path, name: &str) {
        fs::create_dir_all(place).unwrap();
        fs::write(place.join(name), "").unwrap();
        fs::set_permissions(place.join(name), Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn each_program_is_taken_from_the_first_place_that_has_it() {
        let directory = tempfile::tempdir().unwrap();
        let (first, second) = (directory.path().join("first"), directory.path().join("second"));
        install(&first, "kube-apiserver");
        NAMES.iter().for_each(|name| install(&second, name));
        let found = Programs::among(&[first.clone(), second.clone()]).unwrap();
        let expected = Programs {
            etcd: second.join("etcd"),
            apiserver: first.join("kube-apiserver"),
            controller_manager: second.join("kube-controller-manager"),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_missing_program_is_named_and_so_is_what_builds_it() {
        let directory = tempfile::tempdir().unwrap();
        NAMES.iter().for_each(|name| install(directory.path(), name));
        // Neither a directory nor a file without execute permission counts as a program.
        fs::remove_file(directory.path().join("etcd")).unwrap();
        fs::create_dir(directory.path().join("etcd")).unwrap();
        let places = [directory.path().to_owned()];
        let why = Programs::among(&places).unwrap_err().to_string();
        assert!(why.contains("no etcd ") && why.contains("just control-plane"), "{why}");
        install(directory.path(), "kube-apiserver");
        fs::remove_dir(directory.path().join("etcd")).unwrap();
        install(directory.path(), "etcd");
        fs::set_permissions(directory.path().join("kube-apiserver"), Permissions::from_mode(0o644)).unwrap();
        assert_eq!(Programs::among(&places), Err(MissingProgram("kube-apiserver")));
    }

    #[rstest]
    #[case(Some("/assets"), Some("/cache"), &["/assets", "/cache/stowage/control-plane/", "/bin", "/usr/bin"])]
    #[case(None, None, &["/home/me/.cache/stowage/control-plane/", "/bin", "/usr/bin"])]
    #[case(Some(""), Some(""), &["/home/me/.cache/stowage/control-plane/", "/bin", "/usr/bin"])]
    fn places_come_in_the_documented_order(
        #[case] assets: Option<&str>,
        #[case] cache: Option<&str>,
        #[case] expected: &[&str],
    ) {
        let surroundings = Surroundings {
            assets: assets.map(OsString::from),
            cache: cache.map(OsString::from),
            home: Some("/home/me".into()),
            path: Some("/bin:/usr/bin".into()),
        };
        let expected = expected.iter().map(|place| {
            PathBuf::from(if place.ends_with('/') { format!("{place}{}", VERSION.trim()) } else { (*place).to_owned() })
        });
        assert_eq!(surroundings.places(), expected.collect::<Vec<_>>());
    }
}
