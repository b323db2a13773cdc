//! Memory settings of the process.

/// Disables transparent huge pages for the process. A huge page of two megabytes stays allocated
/// while any part of it is in use, and a process that is mostly idle gains nothing from them.
///
/// Only Linux supports this. An error is logged and otherwise ignored.
pub fn without_huge_pages() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "huge pages stay in use");
    }
}
