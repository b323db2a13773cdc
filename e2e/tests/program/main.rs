//! Tests of the built binary: its command line, and how it ends.

mod command_line;
mod ending;
