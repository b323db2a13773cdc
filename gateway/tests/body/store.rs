//! A store that takes a body as HTTP would carry it, and parses aws-chunked in the simplest way.

use http_body::Body as _;
use http_body_util::BodyExt;
use stowage_gateway::body::Outgoing;

/// The outcome of a request at the store.
#[derive(Debug, PartialEq, Eq)]
pub enum Put {
    /// All announced bytes have come.
    Whole(Vec<u8>),
    /// The connection was cut after these bytes.
    Cut(Vec<u8>),
}

/// Reads until `Content-Length` is reached, as a store does, or until the connection is cut.
pub async fn take(outgoing: &mut Outgoing) -> Put {
    let mut got = Vec::new();
    while (got.len() as u64) < outgoing.length {
        match outgoing.body.frame().await {
            Some(Ok(frame)) => got.extend_from_slice(&frame.into_data().expect("data")),
            Some(Err(_)) | None => return Put::Cut(got),
        }
    }
    assert_eq!(got.len() as u64, outgoing.length, "more than was announced");
    assert!(outgoing.body.frame().await.is_none(), "nothing may follow");
    assert_eq!((outgoing.body.is_end_stream(), outgoing.body.size_hint().exact()), (true, Some(0)));
    Put::Whole(got)
}

/// An object in aws-chunks: its bytes, the sizes of its chunks, and the lines of its trailer.
pub struct Parsed {
    pub data: Vec<u8>,
    pub sizes: Vec<usize>,
    pub trailers: Vec<(String, String)>,
}

/// Parses unsigned aws-chunks. Panics if they are malformed.
pub fn parse(mut bytes: &[u8]) -> Parsed {
    let mut parsed = Parsed { data: Vec::new(), sizes: Vec::new(), trailers: Vec::new() };
    loop {
        let size = usize::from_str_radix(line(&mut bytes), 16).expect("a size");
        if size == 0 {
            break;
        }
        parsed.sizes.push(size);
        parsed.data.extend_from_slice(&bytes[..size]);
        bytes = &bytes[size..];
        assert_eq!(line(&mut bytes), "");
    }
    loop {
        let line = line(&mut bytes);
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').expect("a trailer");
        parsed.trailers.push((name.to_owned(), value.to_owned()));
    }
    assert!(bytes.is_empty(), "garbage after the body");
    parsed
}

fn line<'a>(bytes: &mut &'a [u8]) -> &'a str {
    let end = bytes.windows(2).position(|window| window == b"\r\n").expect("a line");
    let (line, rest) = bytes.split_at(end);
    *bytes = &rest[2..];
    std::str::from_utf8(line).expect("text")
}
