//! One client over one endpoint: its script gets a claim's Secret, and reports the result of each
//! operation.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use stowage_testbed::script::{Done, Script};

use super::catalogue::Client;
use super::environment::Access;
use super::means::Over;
use super::table::{OPERATIONS, Outcome, Row};

/// A client and an endpoint to play.
pub(super) struct Play<'a> {
    pub(super) client: &'a Client,
    /// Directory of its installation.
    pub(super) home: &'a Path,
    pub(super) over: Over,
    pub(super) multipart: u64,
    pub(super) patience: Duration,
}

impl Play<'_> {
    /// Runs the client's script, and returns the result of each operation.
    ///
    /// # Errors
    /// Fails if its working directory can't be created.
    pub(super) async fn run(&self, access: &Access) -> Result<Vec<Row>> {
        let directory = tempfile::Builder::new().prefix("stowage-client-").tempdir();
        let directory = directory.context("can't make a temporary directory")?;
        let mut environment = environment(access, self.home, directory.path());
        environment.push(("MULTIPART_BYTES".to_owned(), self.multipart.to_string()));
        let program = self.client.program();
        let script = Script { program: &program, directory: directory.path(), environment: Some(&environment) };
        let no_arguments: [&str; 0] = [];
        let done = script.run(&no_arguments, self.patience).await;
        let outcomes = outcomes(done.as_ref().map_err(stowage_testbed::failure::sentence));
        let (client, version) = (self.client.name.clone(), self.client.version.clone());
        let row = |(operation, outcome)| Row {
            client: client.clone(),
            version: version.clone(),
            operation,
            over: self.over,
            outcome,
        };
        Ok(outcomes.into_iter().map(row).collect())
    }
}

/// Returns the environment of a script: the Secret's fields, the directory of its client's
/// installation, and no variables of the current process except for `PATH`.
pub(super) fn environment(access: &Access, home: &Path, directory: &Path) -> Vec<(String, String)> {
    let (directory, home) = (directory.display().to_string(), home.display().to_string());
    let path = std::env::var("PATH").unwrap_or_default();
    let mut further = vec![
        ("PATH", path.as_str()),
        ("HOME", &directory),
        ("TMPDIR", &directory),
        ("LANG", "C.UTF-8"),
        ("CLIENT_HOME", &home),
        // Some clients would otherwise call the metadata service, which doesn't exist here.
        ("AWS_EC2_METADATA_DISABLED", "true"),
        // The scripts are in the source tree, which must not be written to.
        ("PYTHONDONTWRITEBYTECODE", "1"),
    ];
    let authority = access.authority.as_ref().map(|path| path.display().to_string());
    if let Some(authority) = &authority {
        let names = ["AWS_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"];
        further.extend(names.map(|name| (name, authority.as_str())));
    }
    let further = further.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    access.fields.clone().into_iter().chain(further).collect()
}

/// Parses a script's results; an operation without a result has failed.
fn outcomes(done: Result<&Done, String>) -> Vec<(&'static str, Outcome)> {
    let silent = match done {
        Ok(done) if done.status.success() => "the script says nothing of it".to_owned(),
        Ok(done) => format!("the script ended ({}): {}", done.status, done.last_words()),
        Err(ref why) => why.clone(),
    };
    let told = done.map(|done| done.stdout.as_str()).unwrap_or_default();
    let of = |operation: &str| {
        let line = told.lines().find_map(|line| line.strip_prefix(operation)?.strip_prefix(' '));
        match line {
            Some("ok") => Outcome::Ok,
            Some(line) => match (line.strip_prefix("none: "), line.strip_prefix("failed: ")) {
                (Some(why), _) => Outcome::None(why.to_owned()),
                (None, Some(why)) => Outcome::Failed(why.to_owned()),
                (None, None) => Outcome::Failed(format!("the script says {line:?} of it")),
            },
            None => Outcome::Failed(silent.clone()),
        }
    };
    OPERATIONS.iter().map(|operation| (*operation, of(operation))).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn told(code: i32, stdout: &str) -> Vec<(&'static str, Outcome)> {
        let stderr = "what it said\n".to_owned();
        outcomes(Ok(&Done { status: ExitStatus::from_raw(code << 8), stdout: stdout.to_owned(), stderr }))
    }

    fn failed(why: &str) -> Outcome {
        Outcome::Failed(why.to_owned())
    }

    #[test]
    fn a_script_speaks_of_each_operation() {
        let found = told(0, "put ok\nget failed: other bytes\nrange none: it has none\nlist okay\ndelete-many ok\n");
        assert_eq!(found[0], ("put", Outcome::Ok));
        assert_eq!(found[1], ("get", failed("other bytes")));
        assert_eq!(found[2], ("range", Outcome::None("it has none".to_owned())));
        assert_eq!(found[3], ("list", failed("the script says \"okay\" of it")));
        assert_eq!(found[5], ("copy", failed("the script says nothing of it")));
        assert_eq!(found[6], ("delete-many", Outcome::Ok));
        assert_eq!(found.len(), OPERATIONS.len());
    }

    #[test]
    fn what_a_script_did_not_come_to_has_failed() {
        let found = told(2, "put ok\n");
        assert_eq!(found[0], ("put", Outcome::Ok));
        assert_eq!(found[1], ("get", failed("the script ended (exit status: 2): what it said")));
        let late = outcomes(Err("it did not end".to_owned()));
        assert!(late.iter().all(|(_, outcome)| *outcome == failed("it did not end")));
    }
}
