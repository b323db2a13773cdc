//! Third-party programs: `kind`, `docker` and `kubectl` for a kind cluster, `helm`, and `promtool`.
//! Also finds programs that were built together with this one.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

/// Number of stderr lines that an error message repeats.
const TAIL: usize = 5;

/// Runs a program to its end and returns its stdout. It has its own process group, so that Ctrl-C
/// in a terminal reaches only the harness, which ends the program by dropping this future.
pub async fn run(program: &str, arguments: &[&str]) -> Result<String> {
    feed(program, arguments, None).await
}

/// Like [`run`], with this text on stdin.
pub async fn feed(program: &str, arguments: &[&str], stdin: Option<&str>) -> Result<String> {
    let child = Command::new(program)
        .args(arguments)
        .process_group(0)
        .stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("can't start {program}, which this needs"))?;
    let mut group = Group(child);
    let failed = || format!("{program} can't be read or fed");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (input, output, error) = (group.0.stdin.take(), group.0.stdout.take(), group.0.stderr.take());
    let (Some(mut output), Some(mut error)) = (output, error) else {
        bail!("{program} has no output");
    };
    let fed = async {
        match (input, stdin) {
            (Some(mut input), Some(text)) => input.write_all(text.as_bytes()).await,
            _ => Ok(()),
        }
    };
    tokio::try_join!(fed, output.read_to_end(&mut out), error.read_to_end(&mut err)).with_context(failed)?;
    let status = group.0.wait().await.with_context(failed)?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&out).into_owned());
    }
    let told = String::from_utf8_lossy(&err);
    let mut last: Vec<&str> = told.lines().rev().filter(|line| !line.trim().is_empty()).take(TAIL).collect();
    last.reverse();
    let first = arguments.first().copied().unwrap_or_default();
    Err(anyhow!("{program} {first} failed ({}): {}", status, last.join(" | ")))
}

/// A process in its own process group. Dropping it kills the group and waits for the process, so
/// that it changes nothing while its results are cleaned up.
pub struct Group(pub Child);

impl Drop for Group {
    fn drop(&mut self) {
        let Some(id) = self.0.id().and_then(|id| Pid::from_raw(id.cast_signed())) else { return };
        // An error means that the group no longer exists.
        let _ = kill_process_group(id, Signal::KILL);
        while matches!(self.0.try_wait(), Ok(None)) {
            std::thread::yield_now();
        }
    }
}

/// Returns the path of a program of this version where `e2e/PROGRAM/build` puts it, or of any on
/// the `PATH`.
///
/// # Errors
/// Fails if it is in neither place.
pub fn built(program: &str, version: &str) -> Result<String> {
    let given = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty());
    let cache = given("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| given("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let own = cache.map(|cache| cache.join("stowage").join(program).join(version));
    let path = given("PATH").unwrap_or_default();
    let mut places = own.into_iter().chain(std::env::split_paths(&path)).map(|place| place.join(program));
    let found = places.find(|place| place.is_file());
    let found = found.with_context(|| format!("there is no {program}: `e2e/{program}/build` builds it, once"))?;
    Ok(found.display().to_string())
}

/// Returns the path of a program in the directory of the current executable.
///
/// # Errors
/// Fails if it doesn't exist.
pub fn beside(name: &str) -> Result<Vec<String>> {
    let this = std::env::current_exe().context("this program can't be found")?;
    let program = this.parent().unwrap_or(Path::new(".")).join(name);
    if !program.is_file() {
        return Err(anyhow!("there is no {}: `cargo build --workspace --bins` makes it", program.display()));
    }
    Ok(vec![program.display().to_string()])
}

/// Runs a program in a node of a kind cluster.
pub async fn in_node(node: &str, arguments: &[&str]) -> Result<String> {
    run("docker", &[&["exec", node], arguments].concat()).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::sentence;

    #[tokio::test]
    async fn what_a_program_reads_and_writes_passes_through() {
        assert_eq!(feed("cat", &[], Some("told")).await.unwrap(), "told");
        assert_eq!(run("echo", &["a", "b"]).await.unwrap(), "a b\n");
    }

    #[tokio::test]
    async fn a_failure_tells_the_last_words() {
        let script = "for word in 1 2 3 4 5 6; do echo $word >&2; done; exit 3";
        let why = run("sh", &["-c", script]).await.unwrap_err().to_string();
        assert_eq!(why, "sh -c failed (exit status: 3): 2 | 3 | 4 | 5 | 6");
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let why = sentence(&run("no-such-program", &[]).await.unwrap_err());
        assert!(why.starts_with("can't start no-such-program, which this needs: "), "{why}");
    }
}
