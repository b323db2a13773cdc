//! Why something failed, in words.

/// Turns an error into a sentence.
pub(crate) fn explain<T>(what: impl std::fmt::Display, result: kube::Result<T>) -> Result<T, String> {
    result.map_err(|error| match error {
        kube::Error::Api(status) => format!("{what}: {}", status.message),
        other => format!("{what}: {other}"),
    })
}

/// Fails with `why` unless `holds`.
pub(crate) fn check(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}
