//! Families of faults. Each is one table with everything there is to know about its faults.
//!
//! To add a fault, add a variant to its family and a row to the table, and its answer if a server
//! answers.

mod call;
mod clock;
mod kube;
mod process;
mod s3;

pub use call::CallFault;
pub use clock::ClockFault;
pub use kube::{Applied, KubeFault, Rival};
pub use process::ProcessFault;
pub use s3::{HeadStatus, S3Fault};
