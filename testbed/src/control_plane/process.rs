//! A child process whose whole process group is killed when its handle is dropped.

use std::fs::File;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;

/// Number of log lines that an error message repeats.
const TAIL: usize = 3;
/// Message of a process that could not bind its port.
const PORT_TAKEN: &str = "address already in use";

/// A process in its own process group, so that Ctrl-C in a terminal reaches only the harness, which
/// then ends the others in the right order. Killed when dropped: a control plane's data is thrown
/// away, so nothing is lost.
#[derive(Debug)]
pub struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

/// Error of a process that has ended by itself.
#[derive(Debug, Error)]
#[error("{name} ended ({how}): {last}")]
pub struct Ended {
    name: &'static str,
    how: String,
    /// The last lines of its log.
    last: String,
}

impl Ended {
    /// True if it ended because another process had its port.
    pub(super) fn port_was_taken(&self) -> bool {
        self.last.contains(PORT_TAKEN)
    }
}

impl Process {
    /// Starts a program in `directory`, with its output in the file `NAME.log` there.
    pub fn start(
        name: &'static str,
        program: &Path,
        arguments: impl IntoIterator<Item = String>,
        directory: &Path,
    ) -> Result<Self> {
        let failed = || format!("can't start {}", program.display());
        let log = directory.join(format!("{name}.log"));
        let output = File::create(&log).with_context(failed)?;
        let child = Command::new(program)
            .args(arguments)
            .current_dir(directory)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output.try_clone().with_context(failed)?)
            .stderr(output)
            .spawn()
            .with_context(failed)?;
        Ok(Self { name, child, log })
    }

    /// Returns the path of its log file.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Returns its name.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns its process group id.
    pub fn group(&self) -> i32 {
        Pid::from_child(&self.child).as_raw_nonzero().get()
    }

    /// Returns the error if the process has ended by itself, `None` while it runs.
    pub fn ended(&mut self) -> Option<Ended> {
        let how = match self.child.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => describe(status),
            Err(error) => error.to_string(),
        };
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let mut last: Vec<&str> = log.lines().rev().take(TAIL).collect();
        last.reverse();
        Some(Ended { name: self.name, how, last: last.join(" | ") })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After it was waited for, its id may belong to another process.
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // Errors are ignored: if the group no longer exists or the child can't be waited for, there
        // is nothing left to do.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, signal) => format!("signal {}", signal.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn shell(script: &str, directory: &Path) -> Process {
        Process::start("shell", Path::new("/bin/sh"), ["-c".to_owned(), script.to_owned()], directory).unwrap()
    }

    /// Waits until `met` returns a value, for events in another process.
    fn eventually<T>(mut met: impl FnMut() -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(value) = met() {
                return value;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "it did not come to pass");
            std::thread::yield_now();
        }
    }

    #[test]
    fn dropping_ends_a_process_and_what_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let process = shell("sleep 600 & echo $!; wait", directory.path());
        let log = directory.path().join("shell.log");
        let grandchild = eventually(|| std::fs::read_to_string(&log).ok()?.lines().next()?.parse::<i32>().ok());
        let grandchild = Pid::from_raw(grandchild).unwrap();
        assert!(rustix::process::test_kill_process(grandchild).is_ok());
        drop(process);
        // Only init reaps a grandchild, so it may stay a zombie for a while.
        eventually(|| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", grandchild.as_raw_nonzero()));
            stat.map_or(Some(()), |stat| stat.contains(") Z ").then_some(()))
        });
    }

    #[test]
    fn a_process_that_ends_by_itself_tells_how_and_its_last_words() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = shell("echo one; echo two; echo three; echo four; exit 3", directory.path());
        let told = eventually(|| process.ended());
        assert_eq!(told.to_string(), "shell ended (exit code 3): two | three | four");
        assert!(!told.port_was_taken());
    }

    #[test]
    fn a_process_whose_port_was_taken_is_told_by_its_last_words() {
        let directory = tempfile::tempdir().unwrap();
        let mut process =
            shell("echo listen tcp 127.0.0.1:2379: bind: address already in use; exit 1", directory.path());
        assert!(eventually(|| process.ended()).port_was_taken());
    }
}
