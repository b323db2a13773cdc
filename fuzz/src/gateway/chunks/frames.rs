//! Amazon's chunked encoding, with the writer of a client and the parser of a store ("Signature
//! calculations for the authorization header", in one part and in chunks with and without
//! trailers).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use stowage_gateway::body::Trailers;
use stowage_gateway::body::checksum::Checksum;
use stowage_gateway::body::decoder::MAX_LINE;

use super::super::signing::Chain;
use super::case::{Case, Kind, SIGNED};

/// The content of a parsed body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) data: Vec<u8>,
    pub(super) value: Option<Vec<u8>>,
}

/// Returns the body with signatures and checksums instead of its at signs, as far as it can be
/// parsed.
pub(super) fn written(case: &Case<'_>) -> Vec<u8> {
    let (mut rest, mut out, mut data) = (case.body, Vec::new(), Vec::new());
    let mut chain = Chain(SIGNED.seed.clone());
    if matches!(case.kind, Kind::Plain | Kind::Hash(_)) {
        // The connection delivers no more than the content length.
        let length = usize::try_from(case.length).unwrap_or(usize::MAX);
        return rest.get(..length).unwrap_or(rest).to_vec();
    }
    while let Some((line, behind)) = line(rest) {
        let digits = line.split(|byte| !byte.is_ascii_hexdigit()).next().unwrap_or_default();
        let size = str::from_utf8(digits).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let Some((chunk, behind)) = size.and_then(|size| behind.split_at_checked(size)) else { break };
        put(&mut out, line, || chain.chunk(chunk));
        out.extend_from_slice(chunk);
        data.extend_from_slice(chunk);
        rest = behind;
        if size == Some(0) {
            return [out, trailers(case, behind, &data, &mut chain)].concat();
        }
        if let Some(behind) = rest.strip_prefix(b"\r\n") {
            out.extend_from_slice(b"\r\n");
            rest = behind;
        }
    }
    out.extend_from_slice(rest);
    out
}

fn trailers(case: &Case<'_>, mut rest: &[u8], data: &[u8], chain: &mut Chain) -> Vec<u8> {
    let (mut out, mut covered) = (Vec::new(), Vec::new());
    while let Some((line, behind)) = line(rest) {
        let before = out.len();
        match case.checksum {
            Some(checksum) if line.starts_with(b"x-amz-checksum") => {
                put(&mut out, line, || STANDARD.encode(sum(checksum, data)));
                covered.extend_from_slice(out[before..].trim_ascii_end());
                covered.push(b'\n');
            }
            _ => put(&mut out, line, || chain.trailer(&covered)),
        }
        rest = behind;
    }
    out.extend_from_slice(rest);
    out
}

/// Splits off a line, including its line feed.
fn line(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    Some(rest.split_at(end + 1))
}

fn put(out: &mut Vec<u8>, line: &[u8], word: impl FnOnce() -> String) {
    match line.iter().position(|byte| *byte == b'@') {
        Some(at) => out.extend([&line[..at], word().as_bytes(), &line[at + 1..]].concat()),
        None => out.extend_from_slice(line),
    }
}

fn sum(checksum: Checksum, data: &[u8]) -> Vec<u8> {
    match checksum {
        Checksum::Crc32 => crc32(data).to_be_bytes().to_vec(),
        _ => Sha256::digest(data).to_vec(),
    }
}

/// Computes the ISO-HDLC checksum bit by bit.
fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 })
    })
}

/// Parses a complete body like a store. Returns `None` if it doesn't match its declaration.
pub(super) fn read(case: &Case<'_>, body: &[u8], trailers: Trailers) -> Option<Read> {
    let length = usize::try_from(case.length).ok()?;
    let plain = |data: &[u8]| Some(Read { data: data.to_vec(), value: None });
    match case.kind {
        Kind::Plain if body.len() == length => plain(body),
        Kind::Hash(true) if body.len() == length => plain(body),
        Kind::Plain | Kind::Hash(_) => None,
        Kind::Signed | Kind::SignedTrailer | Kind::UnsignedTrailer => chunked(case, body, length, trailers),
    }
}

fn chunked(case: &Case<'_>, body: &[u8], length: usize, trailers: Trailers) -> Option<Read> {
    let (mut rest, mut data) = (body, Vec::new());
    let mut chain = Chain(SIGNED.seed.clone());
    loop {
        let (line, behind) = line(rest).filter(|(line, _)| line.len() <= MAX_LINE)?;
        let mut size = str::from_utf8(line.strip_suffix(b"\r\n")?).ok()?;
        let mut signature = None;
        if case.is_signed() {
            (size, signature) = size.split_once(";chunk-signature=").map(|(size, by)| (size, Some(by)))?;
        }
        if size.len() > 16 || !size.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let size = usize::from_str_radix(size, 16).ok()?;
        let (chunk, behind) = behind.split_at_checked(size)?;
        if signature.is_some_and(|signature| signature != chain.chunk(chunk)) {
            return None;
        }
        rest = behind;
        if size == 0 {
            break;
        }
        data.extend_from_slice(chunk);
        rest = rest.strip_prefix(b"\r\n")?;
    }
    let mut value = None;
    if let Some(checksum) = case.checksum.filter(|_| case.kind != Kind::Signed) {
        let (given, behind) = given(rest, checksum)?;
        let is_looked_at = case.is_signed() || trailers == Trailers::Unknown;
        if is_looked_at && STANDARD.decode(&given).ok()? != sum(checksum, &data) {
            return None;
        }
        (value, rest) = (Some(given), behind);
    }
    if case.kind == Kind::SignedTrailer {
        rest = covered(rest, case.checksum, value.as_deref(), &mut chain)?;
    }
    (rest == b"\r\n" && data.len() == length).then_some(Read { data, value })
}

/// Returns the value of a trailer. Its line ends with CRLF or, as minio-go writes it, with LF and
/// CRLF.
fn given(rest: &[u8], checksum: Checksum) -> Option<(Vec<u8>, &[u8])> {
    let (line, mut behind) = line(rest).filter(|(line, _)| line.len() <= MAX_LINE)?;
    let mut text = line.strip_suffix(b"\n")?;
    match text.strip_suffix(b"\r") {
        Some(shorter) => text = shorter,
        None => behind = behind.strip_prefix(b"\r\n")?,
    }
    let value = named(str::from_utf8(text).ok()?, checksum.header())?;
    let length = STANDARD.decode(value).ok()?.len();
    (length == sum(checksum, b"").len()).then(|| (value.as_bytes().to_vec(), behind))
}

fn covered<'a>(
    rest: &'a [u8],
    checksum: Option<Checksum>,
    value: Option<&[u8]>,
    chain: &mut Chain,
) -> Option<&'a [u8]> {
    let (line, behind) = line(rest).filter(|(line, _)| line.len() <= MAX_LINE)?;
    let signature = named(str::from_utf8(line.strip_suffix(b"\r\n")?).ok()?, "x-amz-trailer-signature")?;
    let text = match (checksum, value) {
        (Some(checksum), Some(value)) => [checksum.header().as_bytes(), b":", value, b"\n"].concat(),
        _ => Vec::new(),
    };
    (chain.trailer(&text) == signature).then_some(behind)
}

fn named<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (found, value) = line.split_once(':')?;
    found.eq_ignore_ascii_case(name).then(|| value.trim_matches([' ', '\t']))
}
