use futures::StreamExt as _;
use http_body_util::StreamBody;
use rstest::rstest;

use super::*;

fn boundary() -> Boundary {
    let text = format!("multipart/form-data; boundary={}", "b".repeat(70));
    Boundary::of(&text).ok().flatten().expect("a boundary")
}

/// Returns a body in which each frame has its own allocation.
fn body(text: Vec<u8>, size: usize) -> Body {
    let pieces: Vec<Bytes> = text.chunks(size).map(Bytes::copy_from_slice).collect();
    StreamBody::new(futures::stream::iter(pieces).map(|piece| Ok(Frame::data(piece)))).boxed_unsync()
}

/// The look-ahead costs its length in memory, even if a client sends tiny pieces.
#[rstest]
#[tokio::test]
async fn what_is_looked_at_has_a_capacity(#[values(1, 2, 75, 8192, LOOK_AHEAD, LOOK_AHEAD + 1)] size: usize) {
    let text = vec![b'x'; 4 * LOOK_AHEAD];
    let rest = [Bytes::from_static(b"x"), Bytes::from_static(b"x")];
    let mut file = File::new(body(text, size), &boundary(), 0, rest).expect("it begins");
    file.look_ahead().await.expect("it goes on");
    let out = usize::try_from(file.splitter.length()).expect("a length");
    let waiting: usize = file.ready.iter().map(Bytes::len).sum();
    assert_eq!(file.ahead.len() + waiting, out, "nothing is lost");
    assert!(out > LOOK_AHEAD && out <= LOOK_AHEAD + size.max(76), "no more is read than has to be: {out}");
    assert!(file.ahead.capacity() <= 2 * LOOK_AHEAD, "{}", file.ahead.capacity());
    assert!(file.ready.capacity() <= 8 && file.ready.len() <= 2, "{} pieces wait", file.ready.len());
}

#[rstest]
#[tokio::test]
async fn a_short_file_is_one_piece(#[values(1, 7, 100_000)] size: usize) {
    let text = [vec![b'x'; 10_000], boundary().delimiter(), b"--\r\n".to_vec()].concat();
    let file = File::new(body(text, size), &boundary(), 0, [Bytes::new(), Bytes::new()]).expect("it begins");
    let Measured { length, body } = file.measured(None).await.expect("it is whole");
    assert_eq!(length, 10_000);
    assert_eq!(body.ready.iter().map(Bytes::len).collect::<Vec<_>>(), [10_000]);
}
