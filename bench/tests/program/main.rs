//! The built binary: its command line, how it ends, and a gateway measured by it.

mod command_line;
mod ending;
mod gateway;
