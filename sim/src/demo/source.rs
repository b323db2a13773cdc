//! The source of manifests.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use stowage_world::{Document, parse};

/// The project's examples, built in so that the tour works anywhere.
const EXAMPLES: [(&str, &str); 3] = [
    ("examples/00-namespace.yaml", include_str!("../../../examples/00-namespace.yaml")),
    ("examples/10-backend.yaml", include_str!("../../../examples/10-backend.yaml")),
    ("examples/20-claims.yaml", include_str!("../../../examples/20-claims.yaml")),
];

/// File extensions of manifests in a directory.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

/// The manifests of a tour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The project's `examples/`.
    Examples,
    /// Files, directories (their manifests sorted by name, without subdirectories), and `-` for
    /// standard input.
    Paths(Vec<PathBuf>),
}

impl Source {
    /// Reads all documents, in order.
    ///
    /// # Errors
    /// Returns an error message: the file that can't be read and the reason, or the file and
    /// document that isn't a Kubernetes object.
    pub fn read(&self) -> Result<Vec<Document>, String> {
        let mut documents = Vec::new();
        match self {
            Self::Examples => {
                for (name, text) in EXAMPLES {
                    documents.extend(parse(name, text).map_err(|error| error.to_string())?);
                }
            }
            Self::Paths(paths) => {
                for path in paths {
                    read_path(path, &mut documents)?;
                }
            }
        }
        Ok(documents)
    }
}

fn read_path(path: &Path, documents: &mut Vec<Document>) -> Result<(), String> {
    let unreadable = |error: io::Error| format!("can't read {}: {error}", path.display());
    if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(|error| format!("can't read standard input: {error}"))?;
        documents.extend(parse("standard input", &text).map_err(|error| error.to_string())?);
    } else if path.is_dir() {
        let entries: Result<Vec<PathBuf>, io::Error> =
            fs::read_dir(path).and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect());
        let mut files = entries.map_err(unreadable)?;
        files.retain(|file| file.is_file() && is_manifest(file));
        files.sort();
        files.iter().try_for_each(|file| read_path(file, documents))?;
    } else {
        let text = fs::read_to_string(path).map_err(unreadable)?;
        let name = path.display().to_string();
        documents.extend(parse(&name, &text).map_err(|error| error.to_string())?);
    }
    Ok(())
}

fn is_manifest(file: &Path) -> bool {
    file.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_are_a_namespace_file_two_backends_and_six_claims() {
        let documents = Source::Examples.read().expect("the examples are well-formed");
        let kinds: Vec<String> = documents.iter().filter_map(|d| Some(d.object.types.as_ref()?.kind.clone())).collect();
        assert_eq!(kinds.iter().filter(|kind| *kind == "BucketClaim").count(), 6);
        assert_eq!(kinds.iter().filter(|kind| *kind == "S3Backend").count(), 2);
        assert_eq!(documents[0].file, "examples/00-namespace.yaml");
    }

    #[test]
    fn a_directory_gives_its_manifests_in_order_of_name() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (file, name) in [("b.yaml", "second"), ("a.yml", "first"), ("notes.txt", "never")] {
            let text = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}");
            fs::write(directory.path().join(file), text).expect("it is writable");
        }
        let documents = Source::Paths(vec![directory.path().to_owned()]).read().expect("they are well-formed");
        let names: Vec<_> = documents.iter().filter_map(|document| document.object.metadata.name.clone()).collect();
        assert_eq!(names, ["first", "second"]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = Source::Paths(vec!["no/such.yaml".into()]).read().expect_err("it doesn't exist");
        assert!(error.starts_with("can't read no/such.yaml: "), "{error}");
    }
}
