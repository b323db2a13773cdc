//! The claim that every scenario is about.

/// Its namespace.
pub(super) const NAMESPACE: &str = "team-a";
/// Its name.
pub(super) const CLAIM: &str = "photos";
/// The bucket that it comes to.
pub(super) const BUCKET: &str = "team-a-photos";
