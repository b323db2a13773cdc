use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use rstest::rstest;
use tower::BoxError;

use super::*;
use crate::refusal::Code;

const PREFIX: &str = "--b\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nk/${filename}\r\n\
                      --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n";

fn boundary() -> Boundary {
    Boundary::of("multipart/form-data; boundary=b").ok().flatten().expect("a boundary")
}

/// Returns a body in pieces, followed by a connection error if it is cut.
fn body(text: &[u8], size: usize, is_cut: bool) -> Body {
    let mut frames: Vec<Result<_, BoxError>> =
        text.chunks(size).map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece)))).collect();
    if is_cut {
        frames.push(Err("the client is gone".into()));
    }
    StreamBody::new(futures::stream::iter(frames)).boxed_unsync()
}

struct Sent {
    length: u64,
    hint: Option<u64>,
    bytes: Vec<u8>,
    refused: Option<Code>,
}

async fn send(text: Vec<u8>, content_length: Option<u64>, is_cut: bool) -> Result<Sent, Code> {
    send_in_pieces(text, 8192, content_length, is_cut).await
}

async fn send_in_pieces(text: Vec<u8>, size: usize, content_length: Option<u64>, is_cut: bool) -> Result<Sent, Code> {
    let (form, file) = read(body(&text, size, is_cut), boundary()).await.map_err(|refusal| refusal.code)?;
    assert_eq!(form.key().expect("it has a key"), "k/f");
    let Measured { length, mut body } = file.measured(content_length).await.map_err(|refusal| refusal.code)?;
    let hint = http_body::Body::size_hint(&body).exact();
    let (mut bytes, mut refused) = (Vec::new(), None);
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => bytes.extend(frame.into_data().expect("data")),
            Err(error) => {
                let broken = error.downcast_ref::<crate::body::Broken>().map(|broken| broken.0.code);
                refused = Some(broken.unwrap_or(Code::InternalError));
                break;
            }
        }
    }
    assert!(refused.is_some() || http_body::Body::is_end_stream(&body));
    Ok(Sent { length, hint, bytes, refused })
}

fn whole(length: usize, end: &str) -> (Vec<u8>, Vec<u8>) {
    let file: Vec<u8> = (0..length).map(|at| [b'\r', b'\n', b'-', b'-', b'x'][at % 5]).collect();
    ([PREFIX.as_bytes(), &file, end.as_bytes()].concat(), file)
}

const END: &str = "\r\n--b--\r\n";
const MORE: &str = "\r\n--b\r\nContent-Disposition: form-data; name=\"submit\"\r\n\r\nUpload\r\n--b--\r\n";

#[rstest]
#[case::empty(0, END, true)]
#[case::small(1, END, true)]
#[case::without_a_length(1000, END, false)]
#[case::without_the_last_line(1000, "\r\n--b--", true)]
#[case::with_an_epilogue(1000, "\r\n--b--\r\nbye", true)]
#[case::with_a_button(60_000, MORE, true)]
#[case::large(1_000_000, END, true)]
#[tokio::test]
async fn a_file_is_sent_whole(#[case] length: usize, #[case] end: &str, #[case] has_length: bool) {
    let (text, file) = whole(length, end);
    let content_length = has_length.then(|| u64::try_from(text.len()).expect("a length"));
    let sent = send(text, content_length, false).await.expect("it can be sent");
    let length = u64::try_from(length).expect("a length");
    assert_eq!((sent.length, sent.hint, sent.refused), (length, Some(length), None));
    assert!(sent.bytes == file);
}

#[rstest]
#[case::with_a_button(MORE, false, Code::MalformedPOSTRequest)]
#[case::without_the_last_line("\r\n--b--", false, Code::MalformedPOSTRequest)]
#[case::ended("", false, Code::IncompleteBody)]
#[case::ended_in_the_delimiter("\r\n--b", false, Code::IncompleteBody)]
#[case::cut("", true, Code::InternalError)]
#[tokio::test]
async fn a_large_file_is_never_whole_where_the_form_is_not(
    #[case] end: &str,
    #[case] is_cut: bool,
    #[case] expected: Code,
) {
    let (text, file) = whole(1_000_000, end);
    // The length announced by a client that then disconnects.
    let announced = if matches!(end, "" | "\r\n--b") { whole(1_000_000, END).0.len() } else { text.len() };
    let sent = send(text, u64::try_from(announced).ok(), is_cut).await.expect("it begins");
    assert_eq!(sent.refused, Some(expected));
    assert!(sent.bytes.len() < file.len() && file.starts_with(&sent.bytes));
    assert!(u64::try_from(sent.bytes.len()).is_ok_and(|bytes| bytes < sent.length));
}

/// Some readers of forms take such a line as the end of an empty part, others as content.
#[rstest]
#[case::in_a_file("k", "--b\r\nContent-Disposition: form-data; name=\"acl\"\r\n\r\nx")]
#[case::at_the_end_of_a_file("k", "--b--\r\n")]
#[case::in_a_field("--b\r\nContent-Disposition: form-data; name=\"acl\"\r\n\r\nx", "file")]
#[tokio::test]
async fn what_begins_like_the_end_of_a_part_is_refused(
    #[values(1, 7, 8192)] size: usize,
    #[case] key: &str,
    #[case] file: &str,
) {
    let text = [PREFIX.replace("k/${filename}", key).as_bytes(), file.as_bytes(), END.as_bytes()].concat();
    let form = read(body(&text, size, false), boundary()).await;
    let refused = match form {
        Ok((_, file)) => file.measured(None).await.err(),
        Err(refusal) => Some(refusal),
    };
    assert_eq!(refused.map(|refusal| refusal.code), Some(Code::MalformedPOSTRequest));
}

/// The request has the announced length, but no delimiter follows the file.
#[rstest]
#[tokio::test]
async fn a_form_that_is_never_closed_is_never_stored(
    #[values(1, 5, 6, 8192)] size: usize,
    #[values("xxxxxxxxx", "\r\n--a--\r\n", "--b--\r\n--")] end: &str,
) {
    assert_eq!(end.len(), END.len());
    let (text, file) = whole(100_000, end);
    let announced = u64::try_from(text.len()).ok();
    let sent = send_in_pieces(text, size, announced, false).await.expect("it begins");
    assert_eq!((sent.length, sent.refused), (100_000, Some(Code::MalformedPOSTRequest)));
    assert!(sent.bytes.len() < file.len() && file.starts_with(&sent.bytes), "{} are out", sent.bytes.len());
}

/// The same if all announced bytes have been read before the length is determined.
#[rstest]
#[tokio::test]
async fn a_length_that_has_been_read_is_not_believed(#[values(0, 1, 2, 5, 6, 100)] beyond: usize) {
    let (text, _) = whole(70_000, END);
    let read = (64 << 10) + 1;
    let announced = PREFIX.len() + read + END.len() + beyond;
    let sent = send_in_pieces(text, 1, u64::try_from(announced).ok(), false).await;
    match sent {
        Ok(sent) => {
            assert_eq!(sent.refused, Some(Code::MalformedPOSTRequest));
            assert!(beyond > 0 && u64::try_from(sent.bytes.len()).is_ok_and(|bytes| bytes < sent.length));
        }
        Err(code) => assert_eq!((code, beyond), (Code::MalformedPOSTRequest, 0)),
    }
}

#[rstest]
#[tokio::test]
async fn a_file_may_come_in_any_pieces(#[values(1, 3, 7, 4096, 65_536)] size: usize) {
    let (text, file) = whole(70_000, END);
    let announced = u64::try_from(text.len()).ok();
    let sent = send_in_pieces(text, size, announced, false).await.expect("it can be sent");
    assert_eq!((sent.length, sent.refused), (70_000, None));
    assert!(sent.bytes == file);
}

#[rstest]
#[case::no_length(whole(100_000, END).0, None, Code::MissingContentLength)]
#[case::short_length(whole(100_000, END).0, Some(1000), Code::MalformedPOSTRequest)]
#[case::small_and_ended(whole(100, "").0, Some(1000), Code::IncompleteBody)]
#[case::no_file(PREFIX.as_bytes()[..60].to_vec(), Some(1000), Code::IncompleteBody)]
#[case::line_goes_on(whole(100, "\r\n--bb\r\n").0, Some(1000), Code::MalformedPOSTRequest)]
#[tokio::test]
async fn a_form_is_refused_before_the_file_is_sent(
    #[case] text: Vec<u8>,
    #[case] length: Option<u64>,
    #[case] expected: Code,
) {
    assert_eq!(send(text, length, false).await.map(|_| ()), Err(expected));
}

#[tokio::test]
async fn a_connection_may_break_in_the_fields() {
    let read = read(body(b"--b\r\n", 8192, true), boundary()).await;
    assert_eq!(read.map(|_| ()).map_err(|refusal| refusal.code), Err(Code::IncompleteBody));
}

#[test]
fn fields_are_the_headers_of_a_put() {
    let fields = [
        ("key", "k"),
        ("acl", "private"),
        ("content-type", "a/b"),
        ("x-amz-meta-a", "1"),
        ("x-amz-checksum-crc32", "AAAAAA=="),
        ("policy", "p"),
        ("x-amz-signature", "s"),
        ("x-amz-credential", "c"),
        ("x-amz-algorithm", "a"),
        ("x-amz-date", "d"),
        ("success_action_status", "201"),
        ("success_action_redirect", "r"),
        ("redirect", "r"),
        ("bucket", "b"),
        ("x-ignore-me", "i"),
    ];
    let field = |(name, value): (&str, &str)| Field { name: name.into(), value: value.into() };
    let form = Form { fields: fields.map(field).into(), filename: String::new() };
    let expected = [
        ("x-amz-acl", "private"),
        ("content-type", "a/b"),
        ("x-amz-meta-a", "1"),
        ("x-amz-checksum-crc32", "AAAAAA=="),
    ];
    assert_eq!(form.headers().collect::<Vec<_>>(), expected);
}

#[rstest]
#[case(Some("a"), Some("a"))]
#[case(Some("x/${filename}-${filename}"), Some("x/f-f"))]
#[case(Some(""), None)]
#[case(None, None)]
fn a_form_has_a_key(#[case] key: Option<&str>, #[case] expected: Option<&str>) {
    let fields = key.map(|key| Field { name: "key".into(), value: key.into() });
    let form = Form { fields: fields.into_iter().collect(), filename: "f".into() };
    assert_eq!(form.key().ok().as_deref(), expected);
}
