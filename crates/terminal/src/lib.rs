//! Parts that command lines share: what a command prints and in which form, how it fails and with
//! which exit code, how it is told to stop, numbers on the command line, and tables.

mod failure;
pub mod kubeconfig;
pub mod numbers;
mod printing;
mod quoted;
mod signals;
mod span;
mod table;

pub use failure::Failure;
pub use printing::{Color, Output, Printing, print_json, printed};
pub use quoted::quoted;
pub use signals::{Interrupt, terminated};
pub use span::{Line, Span, Tone};
pub use table::{Table, age, wrap};
