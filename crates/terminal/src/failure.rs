//! Failures of commands, and their exit codes.

use std::process::ExitCode;

use crate::signals::INTERRUPTED;

/// A failure of a command, described in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Wrong usage. Exit code 2, the one clap uses for arguments that it refuses.
    Usage(String),
    /// The command failed, or found the problem that it looks for. Exit code 1.
    Found(String),
    /// The command was interrupted before it finished. Exit code 130, as after SIGINT.
    Interrupted(String),
}

impl Failure {
    /// Returns the sentence that describes the failure.
    pub fn message(&self) -> &str {
        match self {
            Self::Usage(why) | Self::Found(why) | Self::Interrupted(why) => why,
        }
    }

    /// Returns the exit code.
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
