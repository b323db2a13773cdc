//! The secret key of a credential.

use secrecy::{ExposeSecret, SecretString};

/// A secret key. Prints as `[REDACTED]`.
#[derive(Clone, Debug)]
pub struct SecretKey(SecretString);

impl SecretKey {
    /// Characters of a key that the operator makes: 30 random bytes in the URL-safe base64 of RFC
    /// 4648.
    const LENGTH: usize = 40;

    /// Takes over `text`.
    pub fn new(text: String) -> Self {
        Self(text.into())
    }

    /// Reads a key from an internal Secret. `None` where the operator can't have made it: a key
    /// that was cut short or typed by hand is easy to guess.
    pub fn minted(text: &str) -> Option<Self> {
        let is_of_alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_whole = text.len() == Self::LENGTH && text.bytes().all(is_of_alphabet);
        is_whole.then(|| Self::new(text.to_owned()))
    }

    /// The key itself, for the one place that writes or uses it.
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
