//! A cluster on a laptop: the Stowage operator in one process with everything it talks to.
//! Production code throughout; the simulation, [`stowage_world`], enters below `kube::Client` and
//! below the AWS SDK.

pub mod cli;
pub mod demo;
pub mod up;
