//! Secret keys in the form of HMAC states: never as text, and with a cached key of the day.

use std::fmt;

use parking_lot::Mutex;
use ring::hmac;
use stowage_api::SecretKey;

use super::scope::Scope;

/// An HMAC signature. `Debug` prints nothing of it: the signature of a presigned URL grants access
/// to what the URL names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; 32]);

impl Signature {
    /// Parses 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// Returns the hexadecimal digits.
    pub(super) fn hex(&self) -> [u8; 64] {
        hex_of(&self.0)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signature([REDACTED])")
    }
}

/// A virtual secret key, for verification.
///
/// Keeps the state of an HMAC instead of the key's text, and the signing key of one scope: that of
/// the newest day for which a signature was valid. Only a client with the key can fill that cache.
/// `Debug` prints nothing of it.
pub struct SigningSecret {
    root: hmac::Key,
    day: Mutex<Option<(Scope, hmac::Key)>>,
}

impl SigningSecret {
    /// Derives the signing secret from a secret key.
    #[must_use]
    pub fn new(secret: &SecretKey) -> Self {
        Self { root: root(secret.expose()), day: Mutex::new(None) }
    }

    /// Returns true if this is the signature of `text` for the scope, for example of a form's
    /// policy. Compares in constant time.
    pub(crate) fn holds(&self, scope: &Scope, text: &[u8], signature: &Signature) -> bool {
        self.open(scope, text, signature).is_some()
    }

    /// Returns a key that belongs to no client, to spend the same work on an unknown key.
    pub(super) fn of_nobody() -> Self {
        Self { root: root(""), day: Mutex::new(None) }
    }

    /// Returns the signing key of the scope if this is its signature of `text`. Compares in
    /// constant time.
    pub(super) fn open(&self, scope: &Scope, text: &[u8], signature: &Signature) -> Option<hmac::Key> {
        let cached = self.day.lock().as_ref().filter(|(of, _)| of == scope).map(|(_, key)| key.clone());
        let is_new = cached.is_none();
        let key = cached.unwrap_or_else(|| derive(&self.root, scope));
        hmac::verify(&key, text, &signature.0).ok()?;
        if is_new {
            let mut day = self.day.lock();
            // Presigned URLs of last week must not evict the key of today's requests.
            if day.as_ref().is_none_or(|(of, _)| of.date <= scope.date) {
                *day = Some((scope.clone(), key.clone()));
            }
        }
        Some(key)
    }

    /// Returns the signing key of the scope.
    pub(super) fn key(&self, scope: &Scope) -> hmac::Key {
        let mut day = self.day.lock();
        if let Some((of, key)) = day.as_ref()
            && of == scope
        {
            return key.clone();
        }
        let key = derive(&self.root, scope);
        *day = Some((scope.clone(), key.clone()));
        key
    }

    #[cfg(test)]
    fn cached(&self) -> Option<Scope> {
        self.day.lock().as_ref().map(|(scope, _)| scope.clone())
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret([REDACTED])")
    }
}

fn root(secret: &str) -> hmac::Key {
    let mut text = [b"AWS4", secret.as_bytes()].concat();
    let key = hmac::Key::new(hmac::HMAC_SHA256, &text);
    text.fill(0);
    // Otherwise the compiler may remove the zeroing as a dead store.
    std::hint::black_box(&text);
    key
}

/// Derives the key of a scope: an HMAC of each part, keyed with the one before.
fn derive(root: &hmac::Key, scope: &Scope) -> hmac::Key {
    let step =
        |key: &hmac::Key, part: &str| hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(key, part.as_bytes()).as_ref());
    let [first, rest @ ..] = scope.steps();
    rest.iter().fold(step(root, first), |key, part| step(&key, part))
}

/// Signs a text.
pub(super) fn sign(key: &hmac::Key, text: &[u8]) -> Signature {
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(hmac::sign(key, text).as_ref()) {
        *to = *from;
    }
    Signature(bytes)
}

/// Returns true if this is the signature of a text. Compares in constant time.
pub(super) fn is_signed(key: &hmac::Key, text: &[u8], signature: &Signature) -> bool {
    hmac::verify(key, text, &signature.0).is_ok()
}

/// Returns the hexadecimal digits of 32 bytes, without an allocation.
pub(super) fn hex_of(bytes: &[u8; 32]) -> [u8; 64] {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digit = |of: u8| DIGITS.get(usize::from(of & 0xf)).copied().unwrap_or_default();
    let mut out = [0; 64];
    for (pair, byte) in out.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[digit(byte >> 4), digit(*byte)]);
    }
    out
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use rstest::rstest;

    use super::super::scope::Day;
    use super::*;

    fn scope(second: i64) -> Scope {
        let time = Timestamp::from_second(second).expect("a time");
        Scope { date: Day::of(time), region: "us-east-1".into() }
    }

    fn secret() -> SigningSecret {
        SigningSecret::new(&SecretKey::new("wJalrXUtnFEMI".into()))
    }

    const DAY: i64 = 86_400;

    #[test]
    fn only_a_signature_that_held_fills_the_cache() {
        let secret = secret();
        let held = sign(&derive(&secret.root, &scope(DAY)), b"text");
        assert!(secret.open(&scope(DAY), b"other", &held).is_none());
        assert_eq!(secret.cached(), None);
        assert!(secret.open(&scope(DAY), b"text", &held).is_some());
        assert_eq!(secret.cached(), Some(scope(DAY)));
        assert!(secret.open(&scope(DAY), b"text", &held).is_some(), "from the cache");
        assert!(secret.open(&scope(DAY), b"other", &held).is_none(), "from the cache");
    }

    #[test]
    fn the_newest_day_stays() {
        let secret = secret();
        for day in [2, 1, 3, 2] {
            let held = sign(&derive(&secret.root, &scope(day * DAY)), b"text");
            assert!(secret.open(&scope(day * DAY), b"text", &held).is_some());
        }
        assert_eq!(secret.cached(), Some(scope(3 * DAY)));
    }

    #[test]
    fn another_region_has_another_key() {
        let secret = secret();
        let there = Scope { region: "eu-west-1".into(), ..scope(DAY) };
        let held = sign(&secret.key(&scope(DAY)), b"text");
        assert!(secret.open(&there, b"text", &held).is_none());
        assert_eq!(sign(&secret.key(&there), b"text"), sign(&derive(&secret.root, &there), b"text"));
    }

    #[rstest]
    #[case(&"0f".repeat(32), true)]
    #[case(&"0F".repeat(32), false)]
    #[case(&"0f".repeat(31), false)]
    #[case(&"0f".repeat(33), false)]
    #[case(&"0g".repeat(32), false)]
    #[case("", false)]
    fn signatures_have_one_form(#[case] text: &str, #[case] valid: bool) {
        let read = Signature::parse(text);
        assert_eq!(read.map(|signature| signature.hex().to_vec()), valid.then(|| text.as_bytes().to_vec()));
    }

    #[test]
    fn secrets_show_nothing() {
        let secret = secret();
        let signature = sign(&secret.key(&scope(DAY)), b"text");
        assert_eq!(format!("{secret:?} {signature:?}"), "SigningSecret([REDACTED]) Signature([REDACTED])");
    }
}
