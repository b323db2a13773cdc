//! A clock that is ahead of the machine's, for operators that run as processes. It uses libfaketime
//! (Debian package `faketime`), so that a scenario sees in seconds what the contract schedules days
//! ahead.

use std::process::{Command, Stdio};

/// The variable by which the dynamic loader finds the library.
const PRELOAD: &str = "LD_PRELOAD=";

/// Starts programs with a shifted clock.
pub struct FakeClock {
    preload: String,
}

impl FakeClock {
    /// Finds the library on this machine. Returns `None` if it isn't installed.
    pub fn find() -> Option<Self> {
        // Only prints the value of `LD_PRELOAD`. Programs aren't started by the `faketime` wrapper
        // itself, because it forks, and signals would not reach them.
        let told = Command::new("faketime").args(["-f", "+0", "env"]).stdin(Stdio::null()).output().ok()?;
        let told = String::from_utf8(told.stdout).ok()?;
        let preload = told.lines().find(|line| line.starts_with(PRELOAD))?;
        Some(Self { preload: preload.to_owned() })
    }

    /// Returns the arguments to put before a command that is to run `days` days ahead. Its
    /// monotonic clock stays as it is.
    pub fn ahead(&self, days: u32) -> Vec<String> {
        vec!["env".to_owned(), self.preload.clone(), format!("FAKETIME=+{days}d"), "DONT_FAKE_MONOTONIC=1".to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the arguments only. The scenario `scheduled-rotation` shows that the operator's clock
    /// really is ahead; without libfaketime it is skipped, and the report says so.
    #[test]
    fn a_command_is_preceded_by_the_library_and_how_far_ahead_it_is() {
        let clock = FakeClock { preload: "LD_PRELOAD=libfaketime.so.1".to_owned() };
        let expected = ["env", "LD_PRELOAD=libfaketime.so.1", "FAKETIME=+8d", "DONT_FAKE_MONOTONIC=1"];
        assert_eq!(clock.ahead(8), expected);
    }
}
