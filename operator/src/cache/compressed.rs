//! Compresses long texts of cached internal Secrets (spec §3.5).
//!
//! A record contains the consent to each namespace's accesses, and a key of an access the place of
//! each bucket. Both are repetitive, and tenants choose their number and length. The compression is
//! lossless, so no extra read is needed.

use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

/// Data keys of texts whose length tenants choose, and the keys of the compressed texts. A real
/// data key can't contain blanks or parentheses.
const TEXTS: [(&str, &str); 2] = [("accesses", "accesses (compressed)"), ("scopes", "scopes (compressed)")];

/// Maximum size in bytes of a text that is not compressed.
const MOST_PLAIN: usize = 2 << 10;

/// Minimum length in bytes of a back reference.
const LEAST: usize = 6;

/// Number of bits of the hash table of earlier positions.
const BITS: u32 = 14;

/// Compresses the long texts of a Secret, if there are any.
pub(super) fn compressed(secret: Arc<Secret>) -> Arc<Secret> {
    let long = |key: &str| {
        let text = secret.data.as_ref()?.get(key)?;
        (text.0.len() > MOST_PLAIN).then(|| compress(&text.0))
    };
    let found = TEXTS.map(|(key, place)| long(key).map(|text| (key, place, text)));
    if found.iter().all(Option::is_none) {
        return secret;
    }
    replaced(&secret, found.into_iter().flatten())
}

/// Restores a Secret as it was before [`compressed`].
pub(super) fn restored(secret: &Arc<Secret>) -> Arc<Secret> {
    let text = |place: &str| decompress(&secret.data.as_ref()?.get(place)?.0);
    let found = TEXTS.map(|(key, place)| text(place).map(|text| (place, key, text)));
    if found.iter().all(Option::is_none) {
        return secret.clone();
    }
    replaced(secret, found.into_iter().flatten())
}

/// Copies a Secret with some texts replaced, each under a new key.
fn replaced<'a>(secret: &Secret, texts: impl Iterator<Item = (&'a str, &'a str, Vec<u8>)>) -> Arc<Secret> {
    let mut copy = secret.clone();
    let data = copy.data.get_or_insert_default();
    for (from, to, text) in texts {
        data.remove(from);
        data.insert(to.to_owned(), ByteString(text));
    }
    Arc::new(copy)
}

/// Compresses bytes into a sequence of literals (length and bytes) and back references (distance
/// and length). It ends with a literal.
fn compress(text: &[u8]) -> Vec<u8> {
    let mut places = vec![usize::MAX; 1 << BITS];
    let (mut to, mut plain, mut at) = (Vec::new(), 0, 0);
    while let Some(word) = text.get(at..at + LEAST) {
        let before = std::mem::replace(&mut places[slot(word)], at);
        let same =
            text.get(before..).map_or(0, |from| from.iter().zip(&text[at..]).take_while(|(a, b)| a == b).count());
        if same < LEAST {
            at += 1;
            continue;
        }
        write_bytes(&text[plain..at], &mut to);
        write_number(at - before, &mut to);
        write_number(same, &mut to);
        at += same;
        plain = at;
    }
    write_bytes(&text[plain..], &mut to);
    to.shrink_to_fit();
    to
}

fn slot(word: &[u8]) -> usize {
    let number = word.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BITS)) as usize
}

fn write_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    write_number(bytes.len(), to);
    to.extend_from_slice(bytes);
}

/// Writes a variable-length number: seven bits a byte, the lowest first; the eighth bit is set if
/// more follow.
fn write_number(mut number: usize, to: &mut Vec<u8>) {
    while number > 0x7f {
        to.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Decompresses the output of [`compress`]; `None` for anything else.
fn decompress(mut from: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        let length = read_number(&mut from)?;
        let (plain, rest) = from.split_at_checked(length)?;
        text.extend_from_slice(plain);
        from = rest;
        if from.is_empty() {
            return Some(text);
        }
        let (back, length) = (read_number(&mut from)?, read_number(&mut from)?);
        let begin = text.len().checked_sub(back)?;
        // A reference that overlaps its own output repeats it.
        for at in begin..begin.checked_add(length)? {
            text.push(*text.get(at)?);
        }
    }
}

fn read_number(from: &mut &[u8]) -> Option<usize> {
    let mut number = 0_usize;
    for shift in (0..usize::BITS).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        number |= usize::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Deterministic pseudo-random bytes.
    fn noise(length: usize, letters: u64) -> Vec<u8> {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % letters
        };
        (0..length).map(|_| next() as u8).collect()
    }

    // covers: 3.5.memory.compressed
    #[test]
    fn bytes_come_back_as_they_were() {
        let consent = br#"{"maxMode":"ReadOnly","prefixes":["a/"]},"#;
        let texts = [
            Vec::new(),
            b"a".to_vec(),
            vec![0; 100_000],
            consent.repeat(1000),
            noise(100_000, 256),
            noise(100_000, 2),
            noise(300, 3).repeat(7),
            [noise(20_000, 256), noise(20_000, 256)].concat(),
        ];
        for text in texts {
            let short = compress(&text);
            assert!(short.len() <= text.len() + 4, "{} of {}", short.len(), text.len());
            assert_eq!(decompress(&short).as_deref(), Some(text.as_slice()));
        }
        assert!(compress(&consent.repeat(1000)).len() < 100);
        for odd in [&[][..], &[1], &[0, 1], &[0, 1, 1, 0], &[1, 7, 2, 1, 0], &[0x80], &[0xff; 12]] {
            assert_eq!(decompress(odd), None, "{odd:?}");
        }
    }

    // covers: 3.5.memory.compressed
    #[test]
    fn long_texts_of_a_secret_are_compressed_and_restored() {
        let with = |key: &str, text: Vec<u8>| {
            let data = BTreeMap::from([(key.to_owned(), ByteString(text)), ("x".to_owned(), ByteString(vec![b'x']))]);
            Arc::new(Secret { data: Some(data), ..Secret::default() })
        };
        for (key, _) in TEXTS {
            let secret = with(key, b"namespace".repeat(1000));
            let kept = compressed(secret.clone());
            let size: usize = kept.data.iter().flatten().map(|(_, text)| text.0.capacity()).sum();
            assert!(size < 100, "{size} bytes");
            assert_eq!(restored(&kept), secret);
        }
        for secret in [with("scopes", b"x".repeat(MOST_PLAIN)), with("theirs", b"x".repeat(9000)), Arc::default()] {
            let kept = compressed(secret.clone());
            assert!(Arc::ptr_eq(&kept, &secret) && Arc::ptr_eq(&restored(&kept), &secret));
        }
    }
}
