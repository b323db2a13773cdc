//! Child processes with a time limit.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Interval for checking if a program has ended.
const GLANCE: Duration = Duration::from_millis(20);

/// Result of a program that ended.
pub(super) struct Done {
    /// True if the exit code is 0.
    pub(super) success: bool,
    /// True if there is an exit code; false if a signal ended the program.
    pub(super) exited: bool,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Runs a program and captures its output. Kills it if it takes longer than `patience`.
///
/// # Errors
/// Returns an error if the program can't be started, or was killed.
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
                // The result doesn't matter: the program may have ended by itself just now.
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

/// Reads a stream to its end in a thread, so that the program never blocks on a full pipe.
fn listen(stream: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // An error ends the output early. The bytes read so far are returned.
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
