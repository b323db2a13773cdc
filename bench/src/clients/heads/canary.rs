//! Objects and files that no tenant may touch. They are created beforehand and compared afterwards,
//! through the store and directly in its directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use ring::digest::{SHA256, digest};
use stowage_testbed::request::{Answer, Ask, Asker, Signed};
use stowage_testbed::sigv4::encoded;

/// The directory of versitygw's locks, beside the buckets.
const LOCKS: &str = ".vgwlocks";
/// A file beside the directories of the store.
const OUTSIDE: &str = "outside.txt";

/// Contents of files and objects, by name.
type State = BTreeMap<String, String>;

/// Buckets that must not change.
pub(super) struct Canary {
    owner: Asker,
    /// The directory of the store.
    directory: PathBuf,
    /// The bucket in which tenants may change anything.
    theirs: String,
    buckets: [String; 2],
    before: State,
    /// Contents that nobody may read.
    pub(super) secrets: Vec<String>,
    /// Id of a noncurrent version of `reel`, in the first of the buckets.
    pub(super) past: String,
}

impl Canary {
    /// Puts objects into these buckets, and a file beside the store. Current objects of the first
    /// bucket may be read.
    ///
    /// # Errors
    /// Fails if the store rejects them.
    pub(super) async fn put(owner: Asker, directory: PathBuf, theirs: &str, buckets: [String; 2]) -> Result<Self> {
        let mut mark = [0; 8];
        getrandom::fill(&mut mark).context("no random numbers")?;
        let secrets = ["past", "crown"].map(|what| format!("{what} {}", hex::encode(mark)));
        let [past, crown] = &secrets;
        let [films, neighbour] = &buckets;
        let version = put(&owner, films, "reel", past).await?;
        put(&owner, films, "reel", "present").await?;
        put(&owner, films, "a/k2", "present").await?;
        put(&owner, films, "gone", past).await?;
        done(&owner, Ask::new("DELETE", target(films, "gone"))).await?;
        for key in ["secret/crown.txt", "k0", "shared/k0"] {
            put(&owner, neighbour, key, past).await?;
            put(&owner, neighbour, key, crown).await?;
        }
        fs::write(directory.join(OUTSIDE), crown).context("can't write beside the store")?;
        let mut canary = Self {
            owner,
            directory,
            theirs: theirs.to_owned(),
            buckets,
            before: State::new(),
            secrets: secrets.into(),
            past: version,
        };
        canary.before = canary.state().await?;
        Ok(canary)
    }

    /// Returns the changes since then: a line for each object or file that was deleted, added or
    /// modified.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub(super) async fn changes(&self) -> Result<Vec<String>> {
        Ok(differences(&self.before, &self.state().await?))
    }

    /// Returns the number of watched objects and files.
    pub(super) fn count(&self) -> usize {
        self.before.len()
    }

    async fn state(&self) -> Result<State> {
        let mut state = files(&self.directory, &self.theirs)?;
        for bucket in &self.buckets {
            let listed = done(&self.owner, Ask::new("GET", format!("/{bucket}?versions"))).await?;
            ensure!(listed.element("IsTruncated") == Some("false"), "bucket {bucket} has more than a page");
            for (key, id) in listed.elements("Key").into_iter().zip(listed.elements("VersionId")) {
                let version = format!("{}?versionId={id}", target(bucket, key));
                let answer = self.owner.ask(Ask::new("GET", version), Signed::Headers).await?;
                let code = answer.code().unwrap_or(&answer.body).to_owned();
                state.insert(format!("object {bucket}/{key}, version {id}"), code);
            }
        }
        Ok(state)
    }
}

fn target(bucket: &str, key: &str) -> String {
    format!("/{bucket}/{}", encoded(key.as_bytes(), "/"))
}

/// Puts an object, and returns the id of its version.
async fn put(owner: &Asker, bucket: &str, key: &str, content: &str) -> Result<String> {
    let ask = Ask { body: content.as_bytes().to_vec(), ..Ask::new("PUT", target(bucket, key)) };
    let answer = done(owner, ask).await?;
    Ok(answer.header("x-amz-version-id").context("the bucket keeps no versions")?.to_owned())
}

async fn done(owner: &Asker, ask: Ask) -> Result<Answer> {
    let what = format!("{} {}", ask.method, ask.target);
    let answer = owner.ask(ask, Signed::Headers).await?;
    ensure!(answer.is_done(), "{what} was answered {}", answer.status);
    Ok(answer)
}

/// Returns the files of a store by path, except for those of a tenant's bucket. For files beside
/// its directories only the names are included, as logs grow there.
fn files(directory: &Path, theirs: &str) -> Result<State> {
    let mut state = State::new();
    for place in fs::read_dir(directory).context("the store has no directory")? {
        let place = place?.path();
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == OUTSIDE {
            state.insert(format!("file {name}"), hash(&place)?);
        } else if !place.is_dir() {
            state.insert(format!("file {name}"), String::new());
        } else {
            for inner in fs::read_dir(&place).with_context(|| place.display().to_string())? {
                let inner = inner?.path();
                if inner.file_name().is_none_or(|inner| inner != theirs && inner != LOCKS) {
                    walk(&inner, directory, &mut state)?;
                }
            }
        }
    }
    Ok(state)
}

fn walk(path: &Path, from: &Path, state: &mut State) -> Result<()> {
    if path.is_dir() {
        for inner in fs::read_dir(path).with_context(|| path.display().to_string())? {
            walk(&inner?.path(), from, state)?;
        }
        return Ok(());
    }
    let name = path.strip_prefix(from).unwrap_or(path).display();
    state.insert(format!("file {name}"), hash(path)?);
    Ok(())
}

fn hash(path: &Path) -> Result<String> {
    let content = fs::read(path).with_context(|| path.display().to_string())?;
    Ok(hex::encode(digest(&SHA256, &content)))
}

fn differences(before: &State, after: &State) -> Vec<String> {
    let gone = before.keys().filter(|name| !after.contains_key(*name)).map(|name| format!("{name} is gone"));
    let new = after.keys().filter(|name| !before.contains_key(*name)).map(|name| format!("{name} is new"));
    let others = before.iter().filter(|(name, content)| after.get(*name).is_some_and(|it| it != *content));
    gone.chain(new).chain(others.map(|(name, _)| format!("{name} is another"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for folder in ["data/theirs/a", "data/films/a", "data/.vgwlocks", "versions/films"] {
            fs::create_dir_all(directory.path().join(folder)).unwrap();
        }
        for file in ["data/theirs/a/b", "data/films/a/b", "versions/films/x", OUTSIDE, "access.log"] {
            fs::write(directory.path().join(file), file).unwrap();
        }
        directory
    }

    #[test]
    fn what_changes_beyond_a_tenants_bucket_is_seen() {
        let store = store();
        let path = |name: &str| store.path().join(name);
        let before = files(store.path(), "theirs").unwrap();
        fs::write(path("data/theirs/a/b"), "another").unwrap();
        fs::write(path("data/theirs/c"), "new").unwrap();
        fs::write(path("data/.vgwlocks/a"), "").unwrap();
        fs::write(path("access.log"), "longer").unwrap();
        assert_eq!(differences(&before, &files(store.path(), "theirs").unwrap()), [] as [&str; 0]);
        fs::remove_file(path("data/films/a/b")).unwrap();
        fs::remove_file(path(OUTSIDE)).unwrap();
        fs::write(path("versions/films/x"), "another").unwrap();
        fs::write(path("data/films/new"), "new").unwrap();
        fs::write(path("data/stray"), "new").unwrap();
        fs::write(path("stray"), "new").unwrap();
        let found = differences(&before, &files(store.path(), "theirs").unwrap());
        let expected = [
            "file data/films/a/b is gone",
            "file outside.txt is gone",
            "file data/films/new is new",
            "file data/stray is new",
            "file stray is new",
            "file versions/films/x is another",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_object_with_another_content_is_seen() {
        let state = |content: &str| State::from([("object a".to_owned(), content.to_owned())]);
        assert_eq!(differences(&state("a"), &state("b")), ["object a is another"]);
    }
}
