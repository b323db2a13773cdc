//! A request before it is signed.

/// A request. Secrets may be among its headers, so it is not printed.
#[derive(Clone)]
pub struct Ask {
    /// Its method.
    pub method: &'static str,
    /// Path and query as they go out.
    pub target: String,
    /// The host that it names; who is asked when absent.
    pub host: Option<String>,
    /// Further headers, their names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Ask {
    /// One without a body.
    pub fn new(method: &'static str, target: String) -> Self {
        Self { method, target, host: None, headers: Vec::new(), body: Vec::new() }
    }
}
