//! Processes that branch off this one: they know all that it knew, and tell what they find over a pipe.

// One of the two unsafe files, beside `determinism`: a process can be branched off in no other way. Why that is sound
// stands at each place.
#![allow(unsafe_code)]

use std::io::{self, PipeReader, PipeWriter};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// Who goes on after [`branch_off`].
pub enum Branched {
    /// The process that there was before; it may read what the other one writes.
    Parent(Branch),
    /// The new process; what it writes is read by the one that there was before.
    Child(PipeWriter),
}

/// A process that was branched off. To be waited for, or forsaken.
#[derive(Debug)]
pub struct Branch {
    process: libc::pid_t,
    /// What it writes. At its end when the process has ended.
    pub told: PipeReader,
}

/// Has a second process go on from here, if this thread is the only one of its process: see [`branch_off`].
///
/// # Errors
/// When it isn't; when the system has no room for another process or pipe.
pub fn branch_off_alone() -> io::Result<Branched> {
    if !is_alone() {
        return Err(io::Error::other("other threads are at work"));
    }
    // SAFETY: there is no other thread that could hold a lock.
    unsafe { branch_off() }
}

/// Whether this thread is the only one of the process, so that nobody else holds a lock. Threads that are about to end are
/// given a moment.
fn is_alone() -> bool {
    (0..200).any(|_| {
        let alone = std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1);
        if !alone {
            std::thread::sleep(Duration::from_millis(1));
        }
        alone
    })
}

/// Has a second process go on from here, with a copy of everything. It has the calling thread and no other, so it may not
/// wait for what another thread was about to do, and it ends by [`end`].
///
/// # Errors
/// When the system has no room for another process or pipe.
///
/// # Safety
/// While this is called, other threads of the process hold no lock that the new process will ask for: the allocator's, or
/// one of a library's tables. Threads that wait (in `join`, on a pipe) hold none.
pub unsafe fn branch_off() -> io::Result<Branched> {
    let (reader, writer) = io::pipe()?;
    // SAFETY: the call itself has no precondition; what the new process does is bound by this function's contract.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Branched::Child(writer)),
        process => Ok(Branched::Parent(Branch { process, told: reader })),
    }
}

impl Branch {
    /// Wants to know nothing more: it finds its pipe broken when it next writes, and its end is waited for.
    pub fn forsake(self) {
        let Self { process, told } = self;
        drop(told);
        // That somebody else has waited for it is as good.
        let _ = wait_for(process);
    }

    /// Waits for its end. Whatever it has yet to write to a full pipe has to be read before.
    ///
    /// # Errors
    /// When somebody else has waited for it.
    pub fn wait(self) -> io::Result<ExitStatus> {
        wait_for(self.process)
    }
}

fn wait_for(process: libc::pid_t) -> io::Result<ExitStatus> {
    let mut status = 0;
    loop {
        // SAFETY: a number and a pointer to one, which is ours.
        if unsafe { libc::waitpid(process, &raw mut status, 0) } == process {
            return Ok(ExitStatus::from_raw(status));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Ends a process that was branched off, at once: nothing is dropped or flushed, because that is for the process which it
/// is a copy of.
pub fn end() -> ! {
    // SAFETY: ends the process, and touches no memory.
    unsafe { libc::_exit(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_company_nobody_branches_off() {
        let (held, wait) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || wait.recv());
        assert!(branch_off_alone().is_err());
        drop(held);
        assert!(other.join().expect("it does not panic").is_err());
    }
}
