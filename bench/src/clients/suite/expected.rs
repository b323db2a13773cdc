//! Expected results of the suite's tests, with their reasons: a file of test names for each reason.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use serde::Serialize;

use super::super::means::Over;

/// Reason for a test's expected result. A file of the list is named after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reason {
    /// It passes.
    Passes,
    /// It needs another bucket: it creates a second one, or uses one of another user.
    RefusedAnotherBucket,
    /// It reads or writes a bucket's configuration: ACLs, policies, versioning, and so on.
    RefusedAdministration,
    /// It sets a header that is denied to tenants: a grant, a lock, a KMS key.
    RefusedHeader,
    /// It uses an extension that only Ceph has.
    RefusedExtension,
    /// It is signed with Signature Version 2.
    RefusedSignature2,
    /// It assumes something that no claim provides: a user without a bucket, or accounts.
    OtherUsers,
    /// It fails at the store itself, in the same way.
    AsTheStore,
    /// It passes or fails at random, at the store itself too.
    ByChance,
    /// The suite skips it.
    Skipped,
}

impl Reason {
    pub(super) const ALL: [Self; 10] = [
        Self::Passes,
        Self::RefusedAnotherBucket,
        Self::RefusedAdministration,
        Self::RefusedHeader,
        Self::RefusedExtension,
        Self::RefusedSignature2,
        Self::OtherUsers,
        Self::AsTheStore,
        Self::ByChance,
        Self::Skipped,
    ];

    /// Returns the name of its file.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::RefusedAnotherBucket => "refused-another-bucket",
            Self::RefusedAdministration => "refused-administration",
            Self::RefusedHeader => "refused-header",
            Self::RefusedExtension => "refused-extension",
            Self::RefusedSignature2 => "refused-signature-2",
            Self::OtherUsers => "other-users",
            Self::AsTheStore => "as-the-store",
            Self::ByChance => "by-chance",
            Self::Skipped => "skipped",
        }
    }

    /// True if the gateway refuses a request that the test needs.
    pub(super) fn is_refused(self) -> bool {
        match self {
            Self::RefusedAnotherBucket
            | Self::RefusedAdministration
            | Self::RefusedHeader
            | Self::RefusedExtension
            | Self::RefusedSignature2 => true,
            Self::Passes | Self::OtherUsers | Self::AsTheStore | Self::ByChance | Self::Skipped => false,
        }
    }
}

/// The whole list.
pub(crate) struct Expected(BTreeMap<String, Reason>);

impl Expected {
    /// Reads a directory with a file for each reason.
    ///
    /// # Errors
    /// Fails if a file can't be read, is not named after a reason, or has a test that another file
    /// has too.
    pub(super) fn read(directory: &Path) -> Result<Self> {
        let mut tests = BTreeMap::new();
        for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
            let path = entry.context("a directory can't be read")?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let reason = Reason::ALL.into_iter().find(|reason| reason.name() == name);
            let reason = reason.with_context(|| format!("{name} is no reason"))?;
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            for test in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
                if let Some(other) = tests.insert(test.to_owned(), reason) {
                    return Err(anyhow!("{test} is in {} and in {}", other.name(), reason.name()));
                }
            }
        }
        Ok(Self(tests))
    }

    /// Returns the tests to play over this endpoint, out of those with names that contain one of
    /// these strings. The store itself is called only for tests expected to fail there.
    pub(super) fn of(&self, over: Over, only: &[String]) -> Vec<(&str, Reason)> {
        let is_meant = |test: &str| only.is_empty() || only.iter().any(|word| test.contains(word));
        let is_of_it = |reason| match over {
            Over::Http | Over::Https => true,
            Over::Store => reason == Reason::AsTheStore,
        };
        let all = self.0.iter().map(|(test, reason)| (test.as_str(), *reason));
        all.filter(|(test, reason)| is_meant(test) && is_of_it(*reason)).collect()
    }

    /// True if a test is in the list.
    pub(super) fn knows(&self, test: &str) -> bool {
        self.0.contains_key(test)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn read(files: &[(&str, &str)]) -> Result<Expected> {
        let directory = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, text)| fs::write(directory.path().join(name), text).unwrap());
        Expected::read(directory.path())
    }

    #[test]
    fn a_file_has_the_tests_of_a_reason() {
        let list = read(&[("passes", "# Why.\n\na::one\na::two[x-1]\n"), ("as-the-store", "a::three\n")]).unwrap();
        let all = [("a::one", Reason::Passes), ("a::three", Reason::AsTheStore), ("a::two[x-1]", Reason::Passes)];
        assert_eq!(list.of(Over::Http, &[]), all);
        assert_eq!(list.of(Over::Store, &[]), all[1..2]);
        assert_eq!(list.of(Over::Https, &["two".to_owned()]), all[2..]);
        assert!(list.knows("a::one") && !list.knows("a::four"));
    }

    #[rstest]
    #[case(&[("by-magic", "")], "by-magic is no reason")]
    #[case(&[("passes", "a::one\n"), ("skipped", "a::one\n")], "a::one is in")]
    fn a_list_that_says_two_things_is_none(#[case] files: &[(&str, &str)], #[case] why: &str) {
        let told = read(files).err().map(|why| why.to_string()).unwrap_or_default();
        assert!(told.starts_with(why), "{told}");
    }

    #[test]
    fn the_lists_of_the_project_can_be_read() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("s3-tests/expected");
        let list = Expected::read(&directory).unwrap();
        assert_eq!(list.0.len(), 883, "as many as the pinned suite has of S3's operations");
    }
}
