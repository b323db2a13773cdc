//! Processor time and memory of processes, by Linux' `/proc`.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

/// Clock ticks per second in `/proc`. Linux always reports this rate to user space (`USER_HZ`),
/// independently of its internal clock.
const TICKS: u64 = 100;

/// Processor time and memory of the processes in one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    /// In bytes. For several processes it is the sum, which is an upper bound.
    pub(crate) peak: u64,
    pub(crate) resident: u64,
}

impl Usage {
    /// Reads the usage of the processes in this group.
    pub(crate) fn of_group(group: i32) -> Result<Self> {
        let mut usage = Self::default();
        let mut found = false;
        for entry in std::fs::read_dir("/proc").context("a measurement needs Linux: can't read /proc")? {
            let path = entry.context("can't read /proc")?.path();
            // A process may end at any time, and other entries are not processes.
            let Ok(stat) = std::fs::read_to_string(path.join("stat")) else { continue };
            let Some((of, cpu)) = processor_time(&stat) else { continue };
            if of != group {
                continue;
            }
            let status = std::fs::read_to_string(path.join("status")).unwrap_or_default();
            found = true;
            usage.add(cpu, &status);
        }
        ensure!(found, "process {group} has ended while it was measured");
        Ok(usage)
    }

    /// Reads the usage of this process.
    pub(crate) fn of_this_process() -> Result<Self> {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/self/{file}"));
        let stat = read("stat").context("a measurement needs Linux: can't read /proc")?;
        let (_, cpu) = processor_time(&stat).context("/proc/self/stat is not understood")?;
        let mut usage = Self::default();
        usage.add(cpu, &read("status").unwrap_or_default());
        Ok(usage)
    }

    fn add(&mut self, cpu: Duration, status: &str) {
        self.cpu += cpu;
        self.peak += memory(status, "VmHWM:");
        self.resident += memory(status, "VmRSS:");
    }
}

/// Returns a process' group and its processor time.
fn processor_time(stat: &str) -> Option<(i32, Duration)> {
    // A program's name, in parentheses, may contain anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some((fields.get(2)?.parse().ok()?, Duration::from_millis(ticks * 1_000 / TICKS)))
}

/// Returns a value in kilobytes from a process' status, in bytes; 0 if it is missing.
fn memory(status: &str, field: &str) -> u64 {
    let told = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = told.and_then(|told| told.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_have_any_name() {
        let stat = "4711 (a) b (c) S 1 4700 4700 0 -1 4194304 1 2 3 4 150 50 0 0 20 0 3 0 100 1 2 3";
        assert_eq!(processor_time(stat), Some((4700, Duration::from_secs(2))));
        assert_eq!(processor_time("4711 (a) S 1"), None);
    }

    #[test]
    fn memory_is_told_in_bytes() {
        let status = "Name:\toperator\nVmHWM:\t   51200 kB\nVmRSS:\t     100 kB\n";
        assert_eq!((memory(status, "VmHWM:"), memory(status, "VmRSS:")), (51_200 * 1024, 102_400));
        assert_eq!(memory(status, "VmSwap:"), 0);
    }

    #[test]
    fn this_process_takes_something_of_the_machine() {
        let group = rustix::process::getpgrp().as_raw_nonzero().get();
        let (usage, own) = (Usage::of_group(group).unwrap(), Usage::of_this_process().unwrap());
        assert!(own.peak >= own.resident && own.resident > 0, "{own:?}");
        assert!(usage.peak >= own.resident, "it is one of its group");
    }
}
