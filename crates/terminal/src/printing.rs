//! The form in which a command prints what it found.

use std::io::{self, Write};

use anstream::ColorChoice;
use clap::{Args, ValueEnum};

/// Options of a command for how it prints.
#[derive(Clone, Copy, Debug, Args)]
pub struct Printing {
    /// What to print: text for people, or one JSON document for machines.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    pub output: Output,
    /// When to use colours; auto: on a terminal, unless NO_COLOR is set.
    #[arg(long, env = "STOWAGE_COLOR", value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// The form of what a command prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// One document and nothing else.
    Json,
}

/// When a command prints in colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl From<Color> for ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}

/// Reports a failed write to stdout. A closed pipe is no failure: the reader wants no more.
///
/// # Errors
/// That stdout can't be written to, and why.
pub fn printed(written: io::Result<()>) -> Result<(), String> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("can't write to stdout: {error}")),
        _ => Ok(()),
    }
}

/// Prints a document as JSON.
///
/// # Errors
/// As [`printed`].
pub fn print_json(document: &impl serde::Serialize) -> Result<(), String> {
    let text = serde_json::to_string_pretty(document).map_err(io::Error::from);
    printed(text.and_then(|text| writeln!(io::stdout(), "{text}")))
}
