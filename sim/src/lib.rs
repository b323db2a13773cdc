//! A cluster on a laptop: the Stowage operator in one process with all the services it calls. The
//! operator and the gateway are production code. The simulation, [`stowage_world`], is attached
//! below `kube::Client` and below the AWS SDK.

pub mod cli;
pub mod demo;
pub mod up;
