//! What the process takes of the machine's memory.

/// From now on the process gets no huge pages: where an allocator asks for such, two megabytes stay
/// taken as long as anything in them is used. A process that is mostly at rest has no use for them.
///
/// Linux alone has that, and an error is no reason not to go on.
pub fn without_huge_pages() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "huge pages stay in use");
    }
}
