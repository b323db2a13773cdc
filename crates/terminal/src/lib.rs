//! Parts that command lines share: output formats, failures and exit codes, signals, numeric
//! arguments, and tables.

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
