//! A clock that is ahead of the machine's, for operators that are processes: by libfaketime, which
//! Debian has in its package `faketime`. What is days away by contract is so seen in seconds.

use std::process::{Command, Stdio};

/// Where the library is, as the dynamic loader is to be told.
const PRELOAD: &str = "LD_PRELOAD=";

/// A way to start programs under another clock.
pub struct FakeClock {
    preload: String,
}

impl FakeClock {
    /// The one of this machine; `None` where it has none.
    pub fn find() -> Option<Self> {
        // The wrapper of that name forks, so signals would not reach what it starts; it only tells
        // what it would preload.
        let told = Command::new("faketime").args(["-f", "+0", "env"]).stdin(Stdio::null()).output().ok()?;
        let told = String::from_utf8(told.stdout).ok()?;
        let preload = told.lines().find(|line| line.starts_with(PRELOAD))?;
        Some(Self { preload: preload.to_owned() })
    }

    /// The words before a command that is to run so many days ahead. Its monotonic clock stays as
    /// it is.
    pub fn ahead(&self, days: u32) -> Vec<String> {
        vec!["env".to_owned(), self.preload.clone(), format!("FAKETIME=+{days}d"), "DONT_FAKE_MONOTONIC=1".to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That the operator's clock really is ahead then, `scheduled-rotation` shows, which is left
    /// out by name without it.
    #[test]
    fn a_command_is_preceded_by_the_library_and_how_far_ahead_it_is() {
        let clock = FakeClock { preload: "LD_PRELOAD=libfaketime.so.1".to_owned() };
        let expected = ["env", "LD_PRELOAD=libfaketime.so.1", "FAKETIME=+8d", "DONT_FAKE_MONOTONIC=1"];
        assert_eq!(clock.ahead(8), expected);
    }
}
