//! A parser of requests by RFC 3986 and Amazon's documents.

/// Splits a text at the first byte `at`.
pub(super) fn split(text: &[u8], at: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|byte| *byte == at) {
        Some(place) => (&text[..place], Some(&text[place + 1..])),
        None => (text, None),
    }
}

/// Decodes a percent-encoded text; `None` if an escape is incomplete.
pub(super) fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let mut digit = || char::from(*rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    Some(bytes)
}

/// Decodes a name or a value of a query, in which a plus sign is a space.
fn of_query(text: &[u8]) -> Option<Vec<u8>> {
    let text: Vec<u8> = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    unescaped(&text)
}

/// Parses the parameters of a query.
pub(super) fn query(text: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let parts = text.split(|byte| *byte == b'&').filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = split(part, b'=');
            Some((of_query(name)?, of_query(value.unwrap_or_default())?))
        })
        .collect()
}

/// True if a segment is `.` or `..`, which a store with folders would resolve.
pub(super) fn climbs(key: &[u8]) -> bool {
    key.split(|byte| *byte == b'/').any(|segment| segment == b"." || segment == b"..")
}

/// True if it is a valid object key here.
pub(super) fn is_key(key: &[u8]) -> bool {
    let is_more_than_slashes = key.iter().any(|byte| *byte != b'/');
    // A list can't name a key with characters that XML 1.0 doesn't allow.
    let is_carried =
        |c: char| !matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    let is_text = key.len() <= 1024 && str::from_utf8(key).is_ok_and(|text| text.chars().all(is_carried));
    is_more_than_slashes && is_text && !climbs(key) && !is_reserved(key)
}

/// True if a segment is reserved by versitygw, MinIO or SeaweedFS.
pub(super) fn is_reserved(key: &[u8]) -> bool {
    let key = key.to_ascii_lowercase();
    let is_segment = key.split(|byte| *byte == b'/').any(|it| matches!(it, b".sgwtmp" | b".minio.sys" | b".uploads"));
    is_segment || key.windows(10).any(|window| window == b".versions/")
}

/// True if it is a valid id of a version or an upload.
pub(super) fn is_id(id: &[u8]) -> bool {
    let plain =
        |byte: &u8| matches!(byte, b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'.' | b'_' | b'~' | b'+' | b'=' | b'-');
    (1..=1024).contains(&id.len()) && id.iter().all(plain) && !climbs(id)
}
