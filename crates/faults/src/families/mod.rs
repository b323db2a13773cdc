//! The families of faults: each is one table, which says of every fault all there is to know.
//!
//! A new fault is a variant of its family with a row in the table, and, if a server says something,
//! with its answer.

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
