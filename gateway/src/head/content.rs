//! The body announced by a head: its signature, framing and length.

use http::HeaderMap;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};

use crate::body::{Announced, Payload};
use crate::refusal::{Code, Refusal};

/// Returns the body announced by a head. `word` is the value of `x-amz-content-sha256`, which is
/// also the last line of the canonical request.
///
/// # Errors
/// Returns the errors of [`Payload::parse`]; `InvalidArgument` for an invalid number or a repeated
/// header; `InvalidRequest` if framing and headers contradict each other.
pub fn payload(headers: &HeaderMap, word: &str) -> Result<Payload, Refusal> {
    let decoded = single(headers, "x-amz-decoded-content-length")?;
    let trailer = single(headers, "x-amz-trailer")?;
    if !word.starts_with("STREAMING-") && (decoded.is_some() || trailer.is_some()) {
        // A store would take the frames for the object's bytes.
        let message = "x-amz-decoded-content-length and x-amz-trailer are for a body in chunks.";
        return Err(Refusal::new(Code::InvalidRequest, message));
    }
    let announced = match single(headers, CONTENT_LENGTH.as_str())? {
        Some(text) => Announced::Length(number(text)?),
        None if headers.contains_key(TRANSFER_ENCODING) => Announced::Chunked,
        None => Announced::Nothing,
    };
    Payload::parse(word, announced, decoded, trailer)
}

fn number(text: &str) -> Result<u64, Refusal> {
    let digits = (1..=19).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits => Ok(number),
        _ => Err(Refusal::new(Code::InvalidArgument, "A length is a number.").with("ArgumentName", "Content-Length")),
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next().map(|value| value.to_str()), values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(text)), None) => Ok(Some(text)),
        _ => {
            Err(Refusal::new(Code::InvalidArgument, "A header is given twice, or is no text.")
                .with("ArgumentName", name))
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use rstest::rstest;

    use super::*;

    fn read(word: &str, lines: &[(&'static str, &'static str)]) -> Result<Payload, Code> {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        payload(&lines.iter().map(header).collect(), word).map_err(|refusal| refusal.code)
    }

    #[test]
    fn a_framed_body_stores_what_it_decodes_to() {
        let lines = [
            ("content-length", "100"),
            ("x-amz-decoded-content-length", "7"),
            ("x-amz-trailer", "x-amz-checksum-crc32"),
        ];
        let framed = read("STREAMING-UNSIGNED-PAYLOAD-TRAILER", &lines).expect("it is whole");
        assert_eq!(framed.length(), 7);
    }

    #[rstest]
    #[case("UNSIGNED-PAYLOAD", &[("x-amz-decoded-content-length", "7")], Code::InvalidRequest)]
    #[case("UNSIGNED-PAYLOAD", &[("x-amz-trailer", "x-amz-checksum-crc32")], Code::InvalidRequest)]
    #[case("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", &[("content-length", "1")], Code::NotImplemented)]
    #[case("UNSIGNED-PAYLOAD", &[("content-length", "+1")], Code::InvalidArgument)]
    #[case("UNSIGNED-PAYLOAD", &[("content-length", "99999999999999999999")], Code::InvalidArgument)]
    #[case("UNSIGNED-PAYLOAD", &[("content-length", "1"), ("content-length", "1")], Code::InvalidArgument)]
    fn a_head_that_contradicts_itself_is_refused(
        #[case] word: &str,
        #[case] lines: &[(&'static str, &'static str)],
        #[case] code: Code,
    ) {
        assert_eq!(read(word, lines), Err(code));
    }
}
