//! Assignment of processors to the measured program and to the rest.

use std::fmt;

use anyhow::{Context as _, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors that this process may use, divided into those of the measured program and the
/// rest.
#[derive(Clone)]
pub(crate) struct Cpus {
    all: Vec<usize>,
}

impl Cpus {
    /// Reads the CPU affinity of this process.
    pub(crate) fn found() -> Result<Self> {
        let set = sched_getaffinity(None).context("can't read which processors there are")?;
        Ok(Self { all: (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect() })
    }

    /// True if the measured program has its own core.
    pub(crate) fn are_shared_out(&self) -> bool {
        self.all.len() > 1
    }

    /// Returns the processors of the measured program: the first one. The others are for clients
    /// and store.
    fn subject(&self) -> &[usize] {
        self.all.get(..1).filter(|_| self.are_shared_out()).unwrap_or(&self.all)
    }

    fn others(&self) -> &[usize] {
        self.all.get(1..).filter(|_| self.are_shared_out()).unwrap_or(&self.all)
    }

    /// Returns the number of processors of clients and store.
    pub(crate) fn others_count(&self) -> usize {
        self.others().len()
    }

    /// Keeps this thread, and threads that it starts from now on, off the measured program's core.
    pub(crate) fn stay_off_the_subjects(&self) -> Result<()> {
        pin(self.others())
    }

    /// Starts the measured program on its core.
    pub(crate) fn of_subject<T>(&self, start: impl FnOnce() -> Result<T>) -> Result<T> {
        // A child process inherits the affinity of the thread that starts it.
        pin(self.subject())?;
        let started = start();
        pin(self.others())?;
        started
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.are_shared_out() {
            write!(f, "measured on CPU {:?}, clients and store on {:?}", self.subject(), self.others())
        } else {
            write!(f, "all on CPU {:?}, as there is no other", self.all)
        }
    }
}

fn pin(cpus: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    sched_setaffinity(None, &set).context("can't choose a processor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_has_a_core_of_its_own_where_there_are_two() {
        let cpus = Cpus { all: vec![2, 3, 5] };
        assert_eq!((cpus.subject(), cpus.others()), (&[2][..], &[3, 5][..]));
        let one = Cpus { all: vec![4] };
        assert_eq!((one.subject(), one.others(), one.are_shared_out()), (&[4][..], &[4][..], false));
    }
}
