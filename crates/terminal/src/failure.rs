//! Failures of commands, and their exit codes.

use std::process::ExitCode;

use crate::signals::INTERRUPTED;

/// Why a command did not succeed, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Wrong usage; exit code 2, as for what clap refuses.
    Usage(String),
    /// It failed, or found what it looks for; exit code 1.
    Found(String),
    /// It was asked to end before it was through; exit code 130, as after SIGINT.
    Interrupted(String),
}

impl Failure {
    /// The sentence.
    pub fn message(&self) -> &str {
        match self {
            Self::Usage(why) | Self::Found(why) | Self::Interrupted(why) => why,
        }
    }

    /// The exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Found(_) => ExitCode::FAILURE,
            Self::Interrupted(_) => ExitCode::from(INTERRUPTED),
        }
    }
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::Found(why)
    }
}
