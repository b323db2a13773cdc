//! The limit on open file descriptors. Each connection takes one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard limit and logs both.
///
/// The soft limit is usually 1,024, for programs that call select(2); this one doesn't. With many
/// backends that is too few: each backend may have as many concurrent calls as the command line
/// allows.
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

/// Maps "no limit" to the highest number.
fn told(limit: Option<u64>) -> u64 {
    limit.unwrap_or(u64::MAX)
}
