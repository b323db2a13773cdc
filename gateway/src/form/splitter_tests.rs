use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::refusal::Code;

fn boundary() -> Boundary {
    Boundary::of("multipart/form-data; boundary=b").ok().flatten().expect("a boundary")
}

/// Returns the yielded bytes, and the code of the refusal, if any.
fn split(splitter: &mut Splitter, text: &[u8], sizes: &[usize]) -> (Vec<u8>, Option<Code>) {
    let mut out = VecDeque::new();
    let mut sizes = sizes.iter().copied().cycle();
    let mut rest = text;
    let mut refused = None;
    while !rest.is_empty() && refused.is_none() {
        let size = sizes.next().unwrap_or(usize::MAX).clamp(1, rest.len());
        let (piece, after) = rest.split_at(size);
        refused = splitter.push(Bytes::copy_from_slice(piece), &mut out).err().map(|refusal| refusal.code);
        rest = after;
    }
    let refused = refused.or_else(|| splitter.end().err().map(|refusal| refusal.code));
    (Vec::from(out).concat(), refused)
}

/// Returns the expected result, by searching the whole text.
fn expected(text: &[u8]) -> Result<&[u8], Code> {
    let at = (0..text.len()).find(|at| text.get(*at..).is_some_and(|rest| rest.starts_with(b"\r\n--b")));
    let at = at.ok_or(Code::IncompleteBody)?;
    match text.get(at + 5..at + 7) {
        Some(b"--" | b"\r\n") => Ok(text.get(..at).unwrap_or_default()),
        Some(_) => Err(Code::MalformedPOSTRequest),
        None if matches!(text.get(at + 5), None | Some(b'-' | b'\r')) => Err(Code::IncompleteBody),
        None => Err(Code::MalformedPOSTRequest),
    }
}

/// Texts with many near-delimiters.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let piece =
        proptest::sample::select(vec!["\r\n--b", "\r\n", "\r", "\n", "-", "--", "b", "x", "\r\n--", "--b", "\r\n-"]);
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat().into_bytes())
}

/// Returns the lengths of the pieces of a text.
fn sizes() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(1usize..12, 1..6)
}

proptest! {
    #[test]
    fn a_file_ends_where_it_ends(text in text(), sizes in sizes()) {
        let (out, refused) = split(&mut Splitter::new(&boundary()), &text, &sizes);
        match expected(&text) {
            Ok(file) => prop_assert_eq!((&out[..], refused), (file, None)),
            Err(code) => {
                prop_assert_eq!(refused, Some(code));
                prop_assert!(text.starts_with(&out));
            }
        }
    }

    #[test]
    fn the_last_bytes_wait_for_the_delimiter(file in "[a-z\r\n-]{1,40}", cut in 0usize..7, sizes in sizes()) {
        prop_assume!(!file.contains("\r\n--b"));
        let whole = format!("{file}\r\n--b--");
        let cut = whole.len() - 7 + cut;
        let cut_off = whole.get(..cut).unwrap_or_default();
        let (out, refused) = split(&mut Splitter::new(&boundary()), cut_off.as_bytes(), &sizes);
        prop_assert_eq!(refused, Some(Code::IncompleteBody));
        prop_assert!(out.len() < file.len(), "{} of {}", out.len(), file.len());
    }

    #[test]
    fn a_file_has_the_length_it_was_to_have(length in 0u64..40, is_followed: bool, sizes in sizes()) {
        let file = "x".repeat(20);
        let whole = format!("{file}\r\n--b{}", if is_followed { "\r\nmore" } else { "--\r\n" });
        let mut splitter = Splitter::new(&boundary());
        splitter.expect(length);
        let (out, refused) = split(&mut splitter, whole.as_bytes(), &sizes);
        if length == 20 {
            prop_assert_eq!((out.len(), refused), (20, None));
        } else {
            prop_assert_eq!(refused, Some(Code::MalformedPOSTRequest));
            let most = usize::try_from(length).unwrap_or(usize::MAX).min(19);
            prop_assert!(out.len() <= most, "{} of {}", out.len(), most);
            prop_assert!(splitter.push(Bytes::from_static(b"x"), &mut VecDeque::new()).is_err(), "it stays refused");
        }
    }
}

/// Without the delimiter behind it, a file isn't complete at any length.
#[rstest]
fn the_last_byte_waits_for_the_delimiter_where_a_length_is_expected(
    #[values(&[1][..], &[5], &[6], &[7], &[1, 30], &[usize::MAX])] sizes: &[usize],
    #[values("", "\r", "\r\n--", "\r\n--a", "x--b--\r\n", "xxxxxxxxx")] end: &str,
) {
    let file = "x".repeat(20) + end;
    for length in 1..=u64::try_from(file.len()).expect("a length") {
        let mut splitter = Splitter::new(&boundary());
        splitter.expect(length);
        let (out, refused) = split(&mut splitter, file.as_bytes(), sizes);
        assert!(u64::try_from(out.len()).is_ok_and(|out| out < length), "{} of {length} are out", out.len());
        assert!(matches!(refused, Some(Code::IncompleteBody | Code::MalformedPOSTRequest)), "{refused:?}");
    }
}

#[test]
fn little_is_held() {
    let mut splitter = Splitter::new(&boundary());
    for _ in 0..100 {
        let mut out = VecDeque::new();
        splitter.push(Bytes::from(vec![b'x'; 1 << 20]), &mut out).expect("it is of the file");
        assert!(out.iter().map(Bytes::len).sum::<usize>() > (1 << 20) - 10, "it flows");
        let At::File(held) = &splitter.at else { panic!("it is in the file") };
        assert!(held.len() <= 5 && held.is_unique(), "nothing of the piece is kept");
    }
}

#[test]
fn what_follows_has_a_bound() {
    let follow = |length: usize| format!("x\r\n--b\r\n{}", "y".repeat(length));
    for sizes in [&[usize::MAX][..], &[1000]] {
        let good = split(&mut Splitter::new(&boundary()), follow(MAX_ENVELOPE).as_bytes(), sizes);
        assert_eq!(good, (b"x".to_vec(), None));
        let (_, refused) = split(&mut Splitter::new(&boundary()), follow(MAX_ENVELOPE + 1).as_bytes(), sizes);
        assert_eq!(refused, Some(Code::MalformedPOSTRequest));
    }
}
