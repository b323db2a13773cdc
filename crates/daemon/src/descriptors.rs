//! How many descriptors the process may have open: each connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one, and tells in the log what it is.
///
/// The soft one is 1,024 by custom, for programs that call select(2), and this one doesn't. With
/// many backends that is too few: each may have as many calls under way as the command line says.
pub fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let (before, most) = (told(limit.current), told(limit.maximum));
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        Ok(()) => tracing::info!(descriptors = most, before, "descriptors that may be open at once"),
        Err(error) => tracing::warn!(
            %error,
            descriptors = before,
            "can't raise how many descriptors may be open at once; with many backends start it with more (ulimit -n)"
        ),
    }
}

/// No limit is the highest number.
fn told(limit: Option<u64>) -> u64 {
    limit.unwrap_or(u64::MAX)
}
