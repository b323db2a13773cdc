//! Unified diffs of several files, applied in memory.

use std::collections::BTreeMap;

use diffy::Patch;
use diffy::patch_set::{FileOperation, ParseOptions, PatchSet};

/// Directories that a diff may change: the sources of operator and gateway.
pub(super) const SOURCES: [&str; 4] = ["operator/src/", "gateway/src/", "crates/api/src/", "crates/daemon/src/"];

/// Returns the files that a diff changes, each with its hunks.
///
/// # Errors
/// Returns an error if the text is no diff, or does anything other than changing files below
/// [`SOURCES`].
fn changes(diff: &str) -> Result<Vec<(String, Patch<'_, str>)>, String> {
    let files = PatchSet::parse(diff, ParseOptions::unidiff()).map(|file| {
        let file = file.map_err(|error| format!("no unified diff: {error}"))?;
        let operation = file.operation().strip_prefix(1);
        let FileOperation::Modify { original, modified } = &operation else {
            return Err("it does something else than to change files".to_owned());
        };
        let allowed = SOURCES.iter().any(|sources| original.starts_with(sources)) && !original.contains("..");
        if original != modified || !allowed {
            return Err(format!("it changes {original}, which is not below {}", SOURCES.join(" or ")));
        }
        let path = original.to_string();
        Ok((path, file.into_patch().as_text().cloned().ok_or("it is binary")?))
    });
    let files: Vec<_> = files.collect::<Result<_, String>>()?;
    if files.is_empty() { Err("it has no diff".to_owned()) } else { Ok(files) }
}

/// Returns the new text of each file that a diff changes. `read` returns the text of a file before
/// the change.
///
/// # Errors
/// Returns an error if the diff cannot be parsed or does not apply.
pub(super) fn apply(
    diff: &str,
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let mut after = BTreeMap::new();
    for (path, patch) in changes(diff)? {
        let before = read(&path)?;
        let text = diffy::apply(&before, &patch).map_err(|error| format!("it does not apply to {path}: {error}"))?;
        if text == before {
            return Err(format!("it changes nothing in {path}"));
        }
        if after.insert(path.clone(), text).is_some() {
            return Err(format!("it changes {path} twice"));
        }
    }
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "\
--- a/operator/src/act.rs
+++ b/operator/src/act.rs
@@ -1,3 +1,3 @@
 one
-two
+deux
 three
";

    fn applied(diff: &str, before: &str) -> Result<String, String> {
        apply(diff, |_| Ok(before.to_owned())).map(|files| files.into_values().collect())
    }

    #[test]
    fn a_diff_applies_where_its_context_stands_now() {
        assert_eq!(applied(DIFF, "zero\none\ntwo\nthree\n").as_deref(), Ok("zero\none\ndeux\nthree\n"));
    }

    #[test]
    fn a_diff_whose_context_is_gone_is_refused() {
        let problem = applied(DIFF, "one\n2\nthree\n").expect_err("it has no place");
        assert!(problem.contains("does not apply to operator/src/act.rs"), "{problem}");
    }

    #[test]
    fn nothing_but_changes_of_the_operators_sources_is_accepted() {
        for (from, to) in [("operator/src/act.rs", "sim/src/lib.rs"), ("a/operator/src/act.rs", "/dev/null")] {
            assert!(applied(&DIFF.replace(from, to), "one\ntwo\nthree\n").is_err(), "{to}");
        }
        assert!(applied("Mutant: none\n", "one\n").is_err());
    }
}
