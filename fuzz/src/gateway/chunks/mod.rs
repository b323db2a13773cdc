//! Bodies in chunks. The first line of an input is `KIND CHECKSUM LENGTH CUT`: the encoding of the
//! body, the checksum in the trailer (`none`, `crc32`, `sha256`), the declared length of the
//! object, and the sizes of the pieces in which the body arrives (`1,5,3`). The rest is the body.
//! An at sign in the line of a chunk or in a trailer is replaced by the correct signature or
//! checksum.

mod case;
mod frames;

use bytes::Bytes;
use stowage_gateway::body::decoder::{Decoder, Layout};
use stowage_gateway::body::{ChunkSignatures, Trailers, outgoing};
use stowage_gateway::refusal::Code;

use super::{pieces, run};
use case::{Case, Kind, SIGNED};

/// Above the size of the lines that the decoder buffers.
const MOST_HELD: usize = 1024;

/// Checks that a body is forwarded completely or refused, in agreement with a second parser,
/// whatever pieces it arrives in.
pub(crate) fn play(input: &[u8]) {
    let Some(case) = Case::read(input) else { return };
    let body = frames::written(&case);
    for trailers in [Trailers::Understood, Trailers::Unknown] {
        run(passed_on(&case, &body, trailers));
    }
    little_is_held(&case, &body);
}

/// Checks the body that a store gets, for each way to cut it.
async fn passed_on(case: &Case<'_>, body: &[u8], trailers: Trailers) {
    let expected = frames::read(case, body, trailers);
    let mut seen: Vec<(Vec<u8>, Option<Code>)> = Vec::new();
    for cut in pieces::cuts(&case.sizes) {
        let chain = case.is_signed().then(|| Box::new(SIGNED.verified.chain()) as Box<dyn ChunkSignatures>);
        let out = match outgoing(pieces::body(body, &cut), case.payload(body), trailers, chain).await {
            Ok(out) => out,
            Err(refusal) => {
                seen.push((Vec::new(), Some(refusal.code)));
                continue;
            }
        };
        let (bytes, broken) = pieces::all(out.body).await;
        assert!(out.failure.passed() <= case.length, "more is passed on than was said");
        if broken.is_some() {
            assert!((bytes.len() as u64) < out.length, "a body that broke off is whole");
            assert_eq!(out.failure.reason().map(|refusal| refusal.code), broken);
        } else {
            assert_eq!((bytes.len() as u64, out.failure.passed()), (out.length, case.length));
            assert_eq!(out.failure.reason(), None);
        }
        let framed = out.trailer.is_some();
        assert_eq!(framed, trailers == Trailers::Understood && case.checksum.is_some() && case.frames_trailer());
        if let (None, Some(expected)) = (&broken, &expected) {
            got(case, &bytes, expected, framed);
        }
        seen.push((bytes, broken));
    }
    let (first, rest) = seen.split_first().expect("three ways");
    assert_eq!(first.1.is_none(), expected.is_some(), "{:?}, and another reader has {expected:?}", first.1);
    for other in rest {
        assert_eq!(first.1, other.1, "a cut changes it");
        let (short, long) = if first.0.len() < other.0.len() { (&first.0, &other.0) } else { (&other.0, &first.0) };
        assert!(long.starts_with(short), "a cut changes the bytes");
        assert!(first.1.is_some() || short.len() == long.len(), "a cut changes the bytes");
    }
}

/// Checks that the store finds the object and its checksum in the body.
fn got(case: &Case<'_>, bytes: &[u8], expected: &frames::Read, framed: bool) {
    if !framed {
        assert_eq!(bytes, expected.data);
        return;
    }
    let at_store = Case {
        kind: Kind::UnsignedTrailer,
        checksum: case.checksum,
        length: case.length,
        sizes: Vec::new(),
        body: b"",
    };
    assert_eq!(frames::read(&at_store, bytes, Trailers::Understood).as_ref(), Some(expected));
}

/// Checks that the decoder buffers lines and never data.
fn little_is_held(case: &Case<'_>, body: &[u8]) {
    let layout = match case.kind {
        Kind::Plain | Kind::Hash(_) => Layout::Plain,
        Kind::Signed => Layout::Signed,
        Kind::SignedTrailer => Layout::SignedTrailer(case.checksum),
        Kind::UnsignedTrailer => Layout::UnsignedTrailer(case.checksum),
    };
    let mut decoder = Decoder::new(layout, case.length);
    for byte in body {
        let mut piece = Bytes::copy_from_slice(&[*byte]);
        let refused = loop {
            match decoder.next(&mut piece) {
                Ok(Some(_)) => {}
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        assert!(decoder.held() <= MOST_HELD, "{} bytes are held", decoder.held());
        if refused {
            return;
        }
    }
}
