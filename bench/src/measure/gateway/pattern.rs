//! The content of all objects in a measurement. Both ends know it, so each can check a body without
//! storing it.

use std::sync::OnceLock;

/// Length of the period in bytes. It is a product of two primes and fits no buffer size, so that a
/// piece that is lost, repeated or moved is detected.
const PERIOD: usize = 251 * 257;
/// Maximum length of a piece, from any position in the period.
const AT_ONCE: usize = 256 << 10;

fn block() -> &'static [u8] {
    static BLOCK: OnceLock<Vec<u8>> = OnceLock::new();
    BLOCK.get_or_init(|| {
        let mut state = 0x9e37_79b9_u32;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            u8::try_from(state >> 24).unwrap_or_default()
        };
        let period: Vec<u8> = (0..PERIOD).map(|_| next()).collect();
        period.iter().copied().cycle().take(PERIOD + AT_ONCE).collect()
    })
}

/// Returns some of the bytes from `offset` on, `most` at most.
pub(crate) fn piece(offset: u64, most: u64) -> &'static [u8] {
    let from = usize::try_from(offset % PERIOD as u64).unwrap_or_default();
    let length = usize::try_from(most).unwrap_or(AT_ONCE).min(AT_ONCE);
    block().get(from..from + length).unwrap_or_default()
}

/// True if these are the bytes from `offset` on.
pub(crate) fn is(offset: u64, mut bytes: &[u8]) -> bool {
    let mut at = offset;
    while !bytes.is_empty() {
        let expected = piece(at, bytes.len() as u64);
        let (now, rest) = bytes.split_at(expected.len().min(bytes.len()));
        if now != expected {
            return false;
        }
        at += now.len() as u64;
        bytes = rest;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_is_lost_doubled_or_changed_shows() {
        let whole: Vec<u8> = piece(0, 200_000).to_vec();
        assert!(is(0, &whole) && is(100_000, &whole[100_000..]));
        let mut changed = whole.clone();
        changed[150_000] ^= 1;
        assert!(!is(0, &changed));
        assert!(!is(0, &[&whole[..100_000], &whole[99_999..]].concat()));
        assert!(!is(1, &whole));
        assert!(is(0, &[whole.as_slice(), piece(200_000, 300_000)].concat()), "of any length");
    }
}
