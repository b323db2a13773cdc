//! A clock that is ahead of the machine's, for operators that are processes: by libfaketime, which Debian has in its
//! package `faketime`. What is days away by contract is so seen in seconds.

use std::process::{Command, Stdio};

/// Where the library is, as the dynamic loader is to be told.
const PRELOAD: &str = "LD_PRELOAD=";

/// A way to start programs under another clock.
pub(crate) struct FakeClock {
    preload: String,
}

impl FakeClock {
    /// The one of this machine; `None` where it has none.
    pub(crate) fn find() -> Option<Self> {
        // The wrapper of that name forks, so signals would not reach what it starts; it only tells what it would preload.
        let told = Command::new("faketime").args(["-f", "+0", "env"]).stdin(Stdio::null()).output().ok()?;
        let told = String::from_utf8(told.stdout).ok()?;
        let preload = told.lines().find(|line| line.starts_with(PRELOAD))?;
        Some(Self { preload: preload.to_owned() })
    }

    /// The words before a command that is to run so many days ahead. Its monotonic clock stays as it is.
    pub(crate) fn ahead(&self, days: u32) -> Vec<String> {
        vec!["env".to_owned(), self.preload.clone(), format!("FAKETIME=+{days}d"), "DONT_FAKE_MONOTONIC=1".to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;

    /// Where there is no such clock the scenario that needs it is left out by name, and so is what can be said here.
    #[test]
    fn a_program_lives_so_many_days_ahead() {
        let Some(clock) = FakeClock::find() else { return };
        let words = [clock.ahead(8), vec!["date".to_owned(), "+%s".to_owned()]].concat();
        let told = Command::new(&words[0]).args(&words[1..]).output().unwrap();
        let seconds: i64 = String::from_utf8(told.stdout).unwrap().trim().parse().unwrap();
        let ahead = Timestamp::from_second(seconds).unwrap().duration_since(Timestamp::now());
        assert!((ahead - SignedDuration::from_hours(8 * 24)).abs() < SignedDuration::from_secs(60), "{ahead}");
    }
}
