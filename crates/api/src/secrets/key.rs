//! Secret keys of credentials.

use secrecy::{ExposeSecret, SecretString};

/// A secret key. `Debug` prints `[REDACTED]`.
#[derive(Clone, Debug)]
pub struct SecretKey(SecretString);

impl SecretKey {
    /// Length of a key created by the operator: 30 random bytes in the URL-safe base64 of RFC 4648.
    const LENGTH: usize = 40;

    /// Wraps a key.
    pub fn new(text: String) -> Self {
        Self(text.into())
    }

    /// Parses a key from an internal Secret. Returns `None` if the operator cannot have created it:
    /// a key that was truncated or typed by hand is easy to guess.
    pub fn minted(text: &str) -> Option<Self> {
        let is_of_alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_whole = text.len() == Self::LENGTH && text.bytes().all(is_of_alphabet);
        is_whole.then(|| Self::new(text.to_owned()))
    }

    /// Returns the key, for the code that writes it or signs with it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl PartialEq for SecretKey {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for SecretKey {}
