//! A child process that ends, with all that it started, when its handle is dropped.

use std::fs::File;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

/// How much of the end of a log a message repeats, in lines.
const TAIL: usize = 3;

/// A process in a group of its own, so that Ctrl-C in a terminal reaches only the harness, which ends the others in
/// its own order. Killed when dropped: what a control plane holds here is thrown away, and nothing waits for it.
#[derive(Debug)]
pub(super) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program; what it prints goes to `NAME.log` in this directory, which is also where it runs.
    pub(super) fn start(
        name: &'static str,
        program: &Path,
        arguments: impl IntoIterator<Item = String>,
        directory: &Path,
    ) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("can't start {}: {error}", program.display());
        let log = directory.join(format!("{name}.log"));
        let output = File::create(&log).map_err(failed)?;
        let child = Command::new(program)
            .args(arguments)
            .current_dir(directory)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(failed)?)
            .stderr(output)
            .spawn()
            .map_err(failed)?;
        Ok(Self { name, child, log })
    }

    /// The file that it writes to.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// What the process said last, if it has ended by itself.
    pub(super) fn ended(&mut self) -> Option<String> {
        let how = match self.child.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => describe(status),
            Err(error) => error.to_string(),
        };
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let mut last: Vec<&str> = log.lines().rev().take(TAIL).collect();
        last.reverse();
        Some(format!("{} ended ({how}): {}", self.name, last.join(" | ")))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Once it was waited for, its id may be another's.
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // A group that is gone already, and a child that can't be waited for, leave nothing to be done.
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
        // Nobody waits for a grandchild but the machine's first process, which may let it be a zombie for a while.
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
        assert_eq!(told, "shell ended (exit code 3): two | three | four");
    }
}
