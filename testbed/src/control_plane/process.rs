//! A child process that ends, with all that it started, when its handle is dropped.

use std::fs::File;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;

/// How much of the end of a log a message repeats, in lines.
const TAIL: usize = 3;
/// What a process says whose port was taken.
const PORT_TAKEN: &str = "address already in use";

/// A process in a group of its own, so that Ctrl-C in a terminal reaches only the harness, which
/// ends the others in its own order. Killed when dropped: what a control plane holds here is thrown
/// away, and nothing waits for it.
#[derive(Debug)]
pub struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

/// A process has ended by itself.
#[derive(Debug, Error)]
#[error("{name} ended ({how}): {last}")]
pub struct Ended {
    name: &'static str,
    how: String,
    /// What it said last.
    last: String,
}

impl Ended {
    /// Whether it ended because its port was somebody else's.
    pub(super) fn port_was_taken(&self) -> bool {
        self.last.contains(PORT_TAKEN)
    }
}

impl Process {
    /// Starts a program; what it prints goes to `NAME.log` in this directory, which is also where
    /// it runs.
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

    /// The file that it writes to.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// What it is called.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The number of its group.
    pub fn group(&self) -> i32 {
        Pid::from_child(&self.child).as_raw_nonzero().get()
    }

    /// How the process has ended, if it has by itself.
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
        // Once it was waited for, its id may be another's.
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // A group that is gone already, and a child that can't be waited for, leave nothing to be
        // done.
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

    /// Waits until `met` gives a value; what it waits for happens in another process.
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
        // Nobody waits for a grandchild but the machine's first process, which may let it be a
        // zombie for a while.
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
