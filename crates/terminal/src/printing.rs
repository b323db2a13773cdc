//! Output formats and colours of commands.

use std::io::{self, Write};

use anstream::ColorChoice;
use clap::{Args, ValueEnum};

/// Options for the output of a command.
#[derive(Clone, Copy, Debug, Args)]
pub struct Printing {
    /// Output format: text for people, or one JSON document for machines.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    pub output: Output,
    /// Use of colours; auto: on a terminal, unless NO_COLOR is set.
    #[arg(long, env = "STOWAGE_COLOR", value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// The output format of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Text for people.
    Text,
    /// One JSON document and nothing else.
    Json,
}

/// The use of colours in a command's output.
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

/// Turns a failed write to stdout into an error message. A closed pipe is not a failure: the reader
/// doesn't want more.
///
/// # Errors
/// Returns a message with the reason if stdout can't be written to.
pub fn printed(written: io::Result<()>) -> Result<(), String> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("can't write to stdout: {error}")),
        _ => Ok(()),
    }
}

/// Prints a document as JSON.
///
/// # Errors
/// See [`printed`].
pub fn print_json(document: &impl serde::Serialize) -> Result<(), String> {
    let text = serde_json::to_string_pretty(document).map_err(io::Error::from);
    printed(text.and_then(|text| writeln!(io::stdout(), "{text}")))
}
