//! Programs that are run to their end, or to that of patience.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked whether a program has ended.
const GLANCE: Duration = Duration::from_millis(20);

/// What became of a program.
pub(super) struct Done {
    /// It says that all went well.
    pub(super) success: bool,
    /// Whether it ended by itself, not by a signal.
    pub(super) exited: bool,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Runs a program and keeps what it says. One that takes longer than `patience` is killed.
///
/// # Errors
/// When it can't be run, or was killed.
pub(super) fn run(command: &mut Command, patience: Duration) -> Result<Done, String> {
    let began = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("can't be run: {error}"))?;
    let (stdout, stderr) = (listen(child.stdout.take()), listen(child.stderr.take()));
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if began.elapsed() < patience => thread::sleep(GLANCE),
            Ok(None) => {
                // Either may fail where it has ended just now.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("did not end within {} s", patience.as_secs()));
            }
            Err(error) => return Err(format!("can't be waited for: {error}")),
        }
    };
    let text = |listener: thread::JoinHandle<String>| listener.join().unwrap_or_default();
    Ok(Done { success: status.success(), exited: status.code().is_some(), stdout: text(stdout), stderr: text(stderr) })
}

/// Reads to the end, so that the program never waits for a reader.
fn listen(stream: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read until an error is all that there is to be had.
        let _ = stream.map(|mut stream| stream.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, patience: Duration) -> Result<Done, String> {
        run(Command::new("sh").args(["-c", script]), patience)
    }

    #[test]
    fn what_a_program_says_and_how_it_ends_is_kept() {
        let done = shell("echo out; echo err >&2; exit 1", Duration::from_secs(10)).expect("it can be run");
        assert_eq!(
            (done.success, done.exited, done.stdout.as_str(), done.stderr.as_str()),
            (false, true, "out\n", "err\n")
        );
        assert!(!shell("kill -9 $$", Duration::from_secs(10)).expect("it can be run").exited);
    }

    #[test]
    fn patience_ends() {
        let problem = shell("exec sleep 10", Duration::from_millis(50)).err();
        assert!(problem.is_some_and(|problem| problem.contains("did not end")));
    }
}
