//! Tests of the built binary: its command line, how it ends, and a measurement of a gateway.

mod command_line;
mod ending;
mod gateway;
