//! A request before it is signed.

/// An unsigned request. It has no `Debug`, because its headers may contain secrets.
#[derive(Clone)]
pub struct Ask {
    /// The HTTP method.
    pub method: &'static str,
    /// Path and query, as sent on the wire.
    pub target: String,
    /// The value of the `Host` header; by default the host that is connected to.
    pub host: Option<String>,
    /// Further headers, with names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The request body.
    pub body: Vec<u8>,
}

impl Ask {
    /// Creates a request without a body.
    pub fn new(method: &'static str, target: String) -> Self {
        Self { method, target, host: None, headers: Vec::new(), body: Vec::new() }
    }
}
