//! The decoder by itself.

use bytes::Bytes;
use proptest::prelude::*;
use rstest::rstest;
use stowage_gateway::body::ChunkSignatures;
use stowage_gateway::body::checksum::Checksum;
use stowage_gateway::body::decoder::{Decoder, Event, Layout, MAX_LINE};
use stowage_gateway::refusal::Code;

use crate::client::{self, Chain, Framing, MINIO_GO, OTHERS, SEED, TRAILER_SEED};

fn layout(framing: Framing) -> Layout {
    match framing {
        Framing::Plain => Layout::Plain,
        Framing::Signed => Layout::Signed,
        Framing::SignedTrailer(checksum) => Layout::SignedTrailer(Some(checksum)),
        Framing::UnsignedTrailer(checksum) => Layout::UnsignedTrailer(Some(checksum)),
    }
}

/// Returns the decoded events, with adjacent data joined.
fn read(layout: Layout, length: u64, pieces: Vec<Bytes>) -> Result<Vec<Event>, Code> {
    let mut decoder = Decoder::new(layout, length);
    let mut events: Vec<Event> = Vec::new();
    for mut piece in std::iter::once(Bytes::new()).chain(pieces) {
        while let Some(event) = decoder.next(&mut piece).map_err(|refusal| refusal.code)? {
            match (events.last_mut(), event) {
                (Some(Event::Data(before)), Event::Data(data)) => *before = [&before[..], &data[..]].concat().into(),
                (_, event) => events.push(event),
            }
        }
        assert!(piece.is_empty());
        assert!(decoder.held() < 1024);
    }
    decoder.finish().map_err(|refusal| refusal.code)?;
    Ok(events)
}

fn all_data(events: &[Event]) -> Vec<u8> {
    let data = events.iter().filter_map(|event| if let Event::Data(data) = event { Some(&data[..]) } else { None });
    data.collect::<Vec<_>>().concat()
}

/// "Example Calculations" of sigv4-streaming and sigv4-streaming-trailers, up to the last
/// signature.
#[rstest]
#[case(
    Layout::Signed,
    SEED,
    [
        "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
        "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
        "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
    ],
    "\r\n",
)]
#[case(
    Layout::SignedTrailer(Some(Checksum::Crc32c)),
    TRAILER_SEED,
    [
        "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
        "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
        "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
    ],
    "x-amz-checksum-crc32c:sOO8/Q==\r\n\
     x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n",
)]
fn the_published_examples_verify(
    #[case] layout: Layout,
    #[case] seed: &str,
    #[case] signatures: [&str; 3],
    #[case] end: &str,
) {
    let data = [vec![b'a'; 65536], vec![b'a'; 1024]];
    let [first, second, last] = signatures;
    let mut sent = format!("10000;chunk-signature={first}\r\n").into_bytes();
    sent.extend(&data[0]);
    sent.extend(format!("\r\n400;chunk-signature={second}\r\n").bytes());
    sent.extend(&data[1]);
    sent.extend(format!("\r\n0;chunk-signature={last}\r\n{end}").bytes());

    let events = read(layout, 66560, vec![sent.into()]).expect("it is well-formed");
    let mut chain = Chain::from(seed);
    for event in &events {
        match event {
            Event::Data(_) => {}
            Event::Chunk(chunk) => assert!(chain.check_chunk(&chunk.sha256, &chunk.signature), "{chunk:?}"),
            Event::Last { trailer, .. } => {
                let good = trailer.as_ref().is_none_or(|part| chain.check_trailer(&part.sha256, &part.signature));
                assert!(good, "{trailer:?}");
            }
        }
    }
    assert_eq!(all_data(&events), data.concat());
    assert_eq!(events.len(), 6, "two chunks with data, an empty one, the end");
}

/// A body of two bytes in an unsigned chunk, and the expected result.
#[rstest]
#[case("2\r\nab\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", Ok(()))]
#[case("02\r\nab\r\n000\r\nX-Amz-Checksum-CRC32:\tAAAAAA== \r\n\r\n", Ok(()))]
#[case("1\r\na\r\n1\r\nb\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\n\r\n\r\n", Ok(()))]
#[case("2\r\nab\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\n\r\n", Err(Code::IncompleteBody))]
#[case("2\r\nab\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n\r\n", Err(Code::IncompleteBody))]
#[case("2\r\nab\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\nx", Err(Code::IncompleteBody))]
#[case("2\r\nab\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n", Err(Code::IncompleteBody))]
#[case("2\r\nab\r\n", Err(Code::IncompleteBody))]
#[case("2\r\nab", Err(Code::IncompleteBody))]
#[case("", Err(Code::IncompleteBody))]
#[case("1\r\na\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", Err(Code::IncompleteBody))]
#[case("3\r\nabc\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", Err(Code::IncompleteBody))]
#[case("2\r\nabc\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", Err(Code::IncompleteBody))]
#[case("2\r\nab\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", Err(Code::IncompleteBody))]
#[case("2\nab\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", Err(Code::IncompleteBody))]
#[case("+2\r\nab\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", Err(Code::IncompleteBody))]
#[case("-2\r\nab\r\n", Err(Code::IncompleteBody))]
#[case(" 2\r\nab\r\n", Err(Code::IncompleteBody))]
#[case("2 \r\nab\r\n", Err(Code::IncompleteBody))]
#[case("0x2\r\nab\r\n", Err(Code::IncompleteBody))]
#[case("2;a=b\r\nab\r\n", Err(Code::IncompleteBody))]
#[case("\r\nab\r\n", Err(Code::IncompleteBody))]
#[case("00000000000000002\r\nab\r\n", Err(Code::IncompleteBody))]
#[case("ffffffffffffffff\r\nab", Err(Code::IncompleteBody))]
#[case("10000000000000002\r\nab", Err(Code::IncompleteBody))]
#[case("2\r\nab\r\n0\r\n\r\n", Err(Code::MalformedTrailerError))]
#[case("2\r\nab\r\n0\r\nx-amz-checksum-crc32 AAAAAA==\r\n\r\n", Err(Code::MalformedTrailerError))]
#[case("2\r\nab\r\n0\r\nx-amz-checksum-crc32c:AAAAAA==\r\n\r\n", Err(Code::MalformedTrailerError))]
#[case("2\r\nab\r\n0\r\nx-amz-meta-a:b\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", Err(Code::MalformedTrailerError))]
#[case("2\r\nab\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\nx-amz-meta-a:b\r\n\r\n", Err(Code::IncompleteBody))]
#[case("2\r\nab\r\n0\r\nx-amz-checksum-crc32:AAAAA==\r\n\r\n", Err(Code::InvalidRequest))]
#[case("2\r\nab\r\n0\r\nx-amz-checksum-crc32:\r\n\r\n", Err(Code::InvalidRequest))]
#[case("2\r\nab\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\r\n\r\n", Err(Code::InvalidRequest))]
#[case("2\r\nab\r\n0\r\nx-amz-checksum-crc32:AAAA\0A==\r\n\r\n", Err(Code::InvalidRequest))]
fn syntax_is_strict(#[case] sent: &str, #[case] expected: Result<(), Code>) {
    let layout = Layout::UnsignedTrailer(Some(Checksum::Crc32));
    let whole = read(layout, 2, vec![sent.to_owned().into()]);
    assert_eq!(whole.as_ref().map(|_| ()).map_err(|code| *code), expected);
    let bytewise = read(layout, 2, client::pieces(sent.as_bytes(), &[1]));
    assert_eq!(bytewise, whole);
}

#[rstest]
#[case("2;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648", true)]
#[case("2", false)]
#[case("2;", false)]
#[case("2;chunk-signature=", false)]
#[case("2;chunk-signature=AD80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648", false)]
#[case("2;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a28864", false)]
#[case("2;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a2886488", false)]
#[case("2;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648 ", false)]
#[case("2;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a28864g", false)]
#[case("2;Chunk-Signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648", false)]
#[case("2; chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648", false)]
fn a_signed_chunk_has_a_signature_and_nothing_else(#[case] head: &str, #[case] good: bool) {
    let mut decoder = Decoder::new(Layout::Signed, 2);
    let read = decoder.next(&mut Bytes::from(format!("{head}\r\n"))).map_err(|refusal| refusal.code);
    assert_eq!(read, if good { Ok(None) } else { Err(Code::IncompleteBody) });
}

/// A trailer is refused if none was announced, and its absence if one was.
#[test]
fn trailers_are_those_that_were_announced() {
    let signed = client::send(Framing::SignedTrailer(Checksum::Sha1), b"ab", &[], OTHERS);
    let read_as = |layout| read(layout, 2, vec![signed.clone().into()]).map(|_| ());
    assert_eq!(read_as(Layout::SignedTrailer(Some(Checksum::Sha1))), Ok(()));
    assert_eq!(read_as(Layout::SignedTrailer(Some(Checksum::Sha256))), Err(Code::MalformedTrailerError));
    assert_eq!(read_as(Layout::SignedTrailer(None)), Err(Code::MalformedTrailerError));
    assert_eq!(read_as(Layout::Signed), Err(Code::IncompleteBody));
    let without = client::send(Framing::Signed, b"ab", &[], OTHERS);
    let read_as = |layout| read(layout, 2, vec![without.clone().into()]).map(|_| ());
    assert_eq!(read_as(Layout::SignedTrailer(None)), Err(Code::MalformedTrailerError));
}

/// One chunk of 5 GiB: it is read in pieces, and only its first line is in memory.
#[test]
fn a_chunk_of_any_size_is_a_counter() {
    let length = 5 << 30;
    let mut decoder = Decoder::new(Layout::UnsignedTrailer(None), length);
    let mut input = Bytes::from_static(b"140000000\r\n");
    assert_eq!(decoder.next(&mut input), Ok(None));
    let piece = Bytes::from(vec![0; 1 << 20]);
    for _ in 0..length >> 20 {
        let mut input = piece.clone();
        let Ok(Some(Event::Data(data))) = decoder.next(&mut input) else { panic!("data was expected") };
        assert_eq!((data.as_ptr(), data.len()), (piece.as_ptr(), piece.len()), "it was copied");
        assert!(decoder.held() <= MAX_LINE);
    }
    let last = decoder.next(&mut Bytes::from_static(b"\r\n0\r\n\r\n"));
    assert_eq!(last, Ok(Some(Event::Last { value: None, trailer: None })));
    assert_eq!(decoder.finish(), Ok(()));
}

#[test]
fn a_line_has_an_end() {
    for (before, code) in [("", Code::IncompleteBody), ("0\r\n", Code::MalformedTrailerError)] {
        let mut decoder = Decoder::new(Layout::UnsignedTrailer(Some(Checksum::Crc32)), 0);
        assert_eq!(decoder.next(&mut Bytes::from_static(before.as_bytes())), Ok(None));
        for _ in 0..MAX_LINE {
            assert_eq!(decoder.next(&mut Bytes::from_static(b"0")), Ok(None));
            assert!(decoder.held() <= 2 * MAX_LINE);
        }
        let refusal = decoder.next(&mut Bytes::from_static(b"0")).expect_err("it is too long");
        assert_eq!(refusal.code, code);
    }
}

#[rstest]
fn a_stream_may_be_cut_anywhere(
    #[values(Framing::Signed, Framing::SignedTrailer(Checksum::Sha1), Framing::UnsignedTrailer(Checksum::Md5))]
    framing: Framing,
    #[values(OTHERS, MINIO_GO)] line_end: &str,
) {
    let sent = Bytes::from(client::send(framing, b"0123456789", &[4], line_end));
    let whole = read(layout(framing), 10, vec![sent.clone()]).expect("it is well-formed");
    for at in 0..=sent.len() {
        let cut = vec![sent.slice(..at), sent.slice(at..)];
        assert_eq!(read(layout(framing), 10, cut).as_ref(), Ok(&whole), "{at}");
    }
}

fn framings() -> impl Strategy<Value = Framing> {
    let checksum = proptest::sample::select(Checksum::ALL.to_vec());
    prop_oneof![
        Just(Framing::Plain),
        Just(Framing::Signed),
        checksum.clone().prop_map(Framing::SignedTrailer),
        checksum.prop_map(Framing::UnsignedTrailer),
    ]
}

proptest! {
    #[test]
    fn any_split_decodes_alike(
        framing in framings(),
        data in proptest::collection::vec(any::<u8>(), 0..600),
        chunks in proptest::collection::vec(1_usize..300, 1..5),
        splits in proptest::collection::vec(1_usize..200, 1..9),
        line_end in proptest::sample::select(vec![OTHERS, MINIO_GO]),
    ) {
        let sent = client::send(framing, &data, &chunks, line_end);
        let length = data.len() as u64;
        let whole = read(layout(framing), length, client::pieces(&sent, &[])).expect("it is well-formed");
        prop_assert_eq!(&all_data(&whole), &data);
        for sizes in [vec![1], splits] {
            let split = read(layout(framing), length, client::pieces(&sent, &sizes));
            prop_assert_eq!(split.as_ref(), Ok(&whole));
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        framing in framings(),
        mut sent in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'0'), any::<u8>()], 0..300),
        length in prop_oneof![0_u64..20, any::<u64>()],
        good in any::<bool>(),
    ) {
        if good {
            sent.splice(0..0, client::send(framing, b"abc", &[2], OTHERS));
        }
        let whole = read(layout(framing), length, client::pieces(&sent, &[]));
        prop_assert_eq!(read(layout(framing), length, client::pieces(&sent, &[1])), whole);
    }
}
