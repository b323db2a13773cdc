//! Explores a foreign controller: a ConfigMap copier that meets crashes and lost connections at
//! every call that it makes.
//!
//! `cargo run --release -p explore --example copier` prints the table. With `-- --copy-first` it
//! has the copier's planted bug, which is found and shown with one fault.

mod controller;
mod simulation;

use std::process::ExitCode;

use controller::Order;

#[expect(clippy::print_stdout, reason = "its result")]
fn main() -> ExitCode {
    let planted = std::env::args().any(|argument| argument == "--copy-first");
    let order = if planted { Order::CopyFirst } else { Order::FinalizerFirst };
    let report = simulation::simulation(order).explore();
    print!("{report}");
    if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
