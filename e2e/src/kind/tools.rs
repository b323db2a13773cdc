//! The programs that make a kind cluster: `kind`, `docker` and `kubectl`.

use std::process::Stdio;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// Lines of what a program wrote to stderr that a failure repeats.
const TAIL: usize = 5;

/// Runs a program to its end and gives what it wrote to stdout. It is in a process group of its own, so that Ctrl-C in a
/// terminal reaches only the harness, which ends it by dropping this.
pub(super) async fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    feed(program, arguments, None).await
}

/// The same, with this for its stdin.
pub(super) async fn feed(program: &str, arguments: &[&str], stdin: Option<&str>) -> Result<String, String> {
    let mut child = Command::new(program)
        .args(arguments)
        .process_group(0)
        .kill_on_drop(true)
        .stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("can't start {program}, which --cluster kind needs: {error}"))?;
    if let (Some(mut pipe), Some(text)) = (child.stdin.take(), stdin) {
        let written = pipe.write_all(text.as_bytes()).await;
        written.map_err(|error| format!("{program} does not read its input: {error}"))?;
    }
    let output = child.wait_with_output().await.map_err(|error| format!("can't wait for {program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    let mut last: Vec<&str> = told.lines().rev().filter(|line| !line.trim().is_empty()).take(TAIL).collect();
    last.reverse();
    let first = arguments.first().copied().unwrap_or_default();
    Err(format!("{program} {first} failed ({}): {}", output.status, last.join(" | ")))
}

/// Runs a program in a node.
pub(crate) async fn in_node(node: &str, arguments: &[&str]) -> Result<String, String> {
    run("docker", &[&["exec", node], arguments].concat()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_program_reads_and_writes_passes_through() {
        assert_eq!(feed("cat", &[], Some("told")).await.unwrap(), "told");
        assert_eq!(run("echo", &["a", "b"]).await.unwrap(), "a b\n");
    }

    #[tokio::test]
    async fn a_failure_tells_the_last_words() {
        let script = "for word in 1 2 3 4 5 6; do echo $word >&2; done; exit 3";
        let why = run("sh", &["-c", script]).await.unwrap_err();
        assert_eq!(why, "sh -c failed (exit status: 3): 2 | 3 | 4 | 5 | 6");
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let why = run("no-such-program", &[]).await.unwrap_err();
        assert!(why.starts_with("can't start no-such-program, which --cluster kind needs: "), "{why}");
    }
}
