//! Caches filled by the watches, with our own writes and the results of live reads on top until the
//! watch has caught up (spec §3).
//!
//! All maps are ordered, so that reads return the same order in every run.

mod accesses;
mod backends;
mod compressed;
mod consumer;
mod merge;
mod namespaces;
mod obc;
mod secret_index;
mod secrets;
mod usage;
mod written;

pub(crate) use accesses::AccessCache;
pub(crate) use backends::BackendCache;
pub(crate) use merge::Merge;
pub(crate) use namespaces::NamespaceCache;
pub(crate) use obc::{ObcCaches, ObcsWritten, kept_config_map};
pub(crate) use secrets::SecretCache;
pub(crate) use usage::UsageCache;
pub(crate) use written::Written;

use kube::ResourceExt;

/// Returns true if `one` is a later version than `other`.
///
/// resourceVersions of one kind are comparable as numbers on every API server that this operator
/// supports (KEP-5504). A resourceVersion that isn't a number counts as later, so that the watch
/// takes precedence.
fn is_later(one: &impl ResourceExt, other: &impl ResourceExt) -> bool {
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one > other,
        _ => true,
    }
}

fn number(object: &impl ResourceExt) -> Option<u128> {
    object.meta().resource_version.as_deref()?.parse().ok()
}
