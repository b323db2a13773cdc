//! Responses with status 200 before the result is known: a store works for minutes, sends blanks
//! meanwhile to keep the connection open, and then a result or an error (Amazon S3,
//! CompleteMultipartUpload and CopyObject).

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::stream;
use http::StatusCode;
use http_body::Frame;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use memchr::memmem;
use quick_xml::Reader;
use quick_xml::escape::escape;
use quick_xml::events::Event;
use tokio::time::{Instant, timeout_at};
use tower::BoxError;

use super::filter::{self, StoreError};
use super::xml;
use crate::body::Body;
use crate::refusal::Code;

/// Time limit for the whole response, including blanks.
const TOGETHER: Duration = Duration::from_secs(15 * 60);
/// Maximum length in bytes of the final result.
const LONGEST: usize = 64 << 10;

/// The values that replace the store's in such a response.
#[derive(Clone, Debug)]
pub struct Words {
    /// The URL at which the client finds the object.
    pub location: String,
    /// The path of the request, for an error.
    pub resource: String,
    /// The id of the request, for an error.
    pub request_id: String,
    /// The id of the gateway's key for the store.
    pub key_id: String,
}

/// Rewrites such a body: passes blanks at once, and the document as the client may see it.
pub fn body(from_store: Body, words: Words) -> Body {
    let begin = State {
        body: BodyStream::new(from_store),
        held: BytesMut::new(),
        declared: false,
        words,
        out: VecDeque::new(),
        due: Instant::now() + TOGETHER,
        ended: false,
    };
    let frames = stream::unfold(begin, |mut state| async move {
        loop {
            if let Some(out) = state.out.pop_front() {
                return Some((out.map(Frame::data), state));
            }
            if state.ended {
                return None;
            }
            state.take_one().await;
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

struct State {
    body: BodyStream<Body>,
    held: BytesMut,
    /// True once an XML declaration has been passed on.
    declared: bool,
    words: Words,
    out: VecDeque<Result<Bytes, BoxError>>,
    due: Instant,
    ended: bool,
}

impl State {
    async fn take_one(&mut self) {
        use futures::StreamExt as _;
        let Ok(next) = timeout_at(self.due, self.body.next()).await else {
            return self.fail("the store takes too long for its result".into());
        };
        match next {
            Some(Ok(frame)) => {
                let Ok(data) = frame.into_data() else { return };
                if self.held.len() + data.len() > LONGEST {
                    return self.fail("the store's result is too long".into());
                }
                self.held.extend_from_slice(&data);
                let blanks = begin_of_document(&self.held, &mut self.declared);
                if blanks > 0 {
                    self.out.push_back(Ok(self.held.split_to(blanks).freeze()));
                }
            }
            Some(Err(error)) => self.fail(error),
            None => {
                self.ended = true;
                if !self.held.is_empty() {
                    self.out.push_back(Ok(rewritten(&self.held, &self.words).into()));
                }
            }
        }
    }

    fn fail(&mut self, error: BoxError) {
        self.ended = true;
        self.out.push_back(Err(error));
    }
}

/// Returns the number of leading blanks in the bytes so far, including an XML declaration unless
/// one was already `declared`.
fn begin_of_document(held: &[u8], declared: &mut bool) -> usize {
    let blanks = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let first = blanks(held);
    let rest = held.get(first..).unwrap_or_default();
    if *declared || !rest.starts_with(b"<?xml") {
        return first;
    }
    match memmem::find(rest, b"?>") {
        Some(end) => {
            *declared = true;
            first + end + 2 + blanks(rest.get(end + 2..).unwrap_or_default())
        }
        None => first,
    }
}

/// Replaces the store's location in a result by the gateway's, and an error by the one that the
/// client may see.
fn rewritten(document: &[u8], words: &Words) -> Vec<u8> {
    match xml::flat(document) {
        Some((root, _)) if root == "Error" => error(document, words).into_bytes(),
        Some(_) => located(document, &words.location),
        None => unreadable(words).into_bytes(),
    }
}

fn error(document: &[u8], words: &Words) -> String {
    match filter::error(StatusCode::OK, document, &words.key_id) {
        StoreError::Told { code, message, details } => tail(&code, &message, &details, words),
        StoreError::OurKey(_) | StoreError::NotS3 => unreadable(words),
    }
}

fn unreadable(words: &Words) -> String {
    tail(
        Code::ServiceUnavailable.as_str(),
        "The store gave no answer that can be passed on. Please try again.",
        &[],
        words,
    )
}

/// Returns an error document without its declaration, which may have been sent already.
fn tail(code: &str, message: &str, details: &[(&'static str, String)], words: &Words) -> String {
    let whole = xml::error(code, message, details, &words.resource, &words.request_id);
    whole.find("<Error>").map_or_else(String::new, |begin| whole[begin..].to_owned())
}

/// Replaces the text of each `Location` directly below the root by this address. Finds them with an
/// XML reader, as comments and attributes may contain anything.
fn located(document: &[u8], location: &str) -> Vec<u8> {
    // From the first element on: the reader doesn't count a byte order mark.
    let begin = memchr::memchr(b'<', document).unwrap_or(document.len());
    let mut reader = Reader::from_reader(document.get(begin..).unwrap_or_default());
    let place = |reader: &Reader<&[u8]>| {
        usize::try_from(reader.buffer_position()).map_or(document.len(), |position| begin.saturating_add(position))
    };
    let part = |from: usize, to: usize| document.get(from..to).unwrap_or_default();
    let (mut out, mut copied, mut depth, mut open) = (Vec::with_capacity(document.len()), 0, 0_usize, None);
    loop {
        let before = place(&reader);
        match reader.read_event() {
            Ok(Event::Start(start)) => {
                depth += 1;
                if depth == 2 && start.local_name().as_ref() == b"Location" {
                    open = Some(place(&reader));
                }
            }
            Ok(Event::End(_)) => {
                if let Some(open) = open.take_if(|_| depth == 2) {
                    out.extend_from_slice(part(copied, open));
                    out.extend_from_slice(escape(location).as_bytes());
                    copied = before;
                }
                depth = depth.saturating_sub(1);
            }
            Ok(Event::Eof) | Err(_) => break,
            // Nothing else opens or closes an element.
            Ok(_) => {}
        }
    }
    out.extend_from_slice(part(copied, document.len()));
    out
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use rstest::rstest;

    use super::*;

    fn words() -> Words {
        let text = |text: &str| text.to_owned();
        Words {
            location: text("http://gateway/photos/a&b"),
            resource: text("/photos/a"),
            request_id: text("7F"),
            key_id: text("AKIAOURS"),
        }
    }

    /// Returns the client's view of a response that arrives in these pieces.
    async fn seen(pieces: &[&'static str]) -> Vec<String> {
        let frames: Vec<Result<Frame<Bytes>, BoxError>> =
            pieces.iter().map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes())))).collect();
        let mut stream = BodyStream::new(body(StreamBody::new(stream::iter(frames)).boxed_unsync(), words()));
        let mut seen = Vec::new();
        while let Some(frame) = futures::StreamExt::next(&mut stream).await {
            let data = frame.expect("it is whole").into_data().expect("data alone");
            seen.push(String::from_utf8(data.to_vec()).expect("text"));
        }
        seen
    }

    #[tokio::test]
    async fn blanks_pass_at_once_and_the_location_is_ours() {
        let pieces = [
            "<?xml version=\"1.0\"?>",
            " ",
            "\n",
            "<CompleteMultipartUploadResult><Loc",
            "ation>http://store:9000/photos/a</Location><ETag>e</ETag></CompleteMultipartUploadResult>",
        ];
        let expected = [
            "<?xml version=\"1.0\"?>",
            " ",
            "\n",
            "<CompleteMultipartUploadResult><Location>http://gateway/photos/a&amp;b</Location><ETag>e</ETag></CompleteMultipartUploadResult>",
        ];
        assert_eq!(seen(&pieces).await, expected);
    }

    #[rstest]
    #[case("<!--<Location>--><Location>", "</Location>")]
    #[case("<B a='<Location>'/><Location>", "</Location>")]
    #[case("<Location xmlns=\"x\">", "</Location>")]
    #[case("<s:Location>", "</s:Location>")]
    #[case("<Location>one</Location><Location>", "</Location>")]
    fn the_location_is_ours_wherever_it_stands(#[case] open: &str, #[case] close: &str) {
        for begin in ["", "\u{feff}"] {
            let written = located(format!("{begin}<A>{open}http://store{close}</A>").as_bytes(), "ours");
            let open = open.replace(">one<", ">ours<");
            assert_eq!(String::from_utf8(written), Ok(format!("{begin}<A>{open}ours{close}</A>")));
        }
    }

    #[tokio::test]
    async fn one_declaration_passes_however_it_comes() {
        let whole = seen(&["<?xml a?><?xml b?><c>"]).await.concat();
        assert!(whole.starts_with("<?xml a?><Error>"), "{whole}");
        assert_eq!(seen(&["<?xml a?>", "<?xml b?>", "<c>"]).await.concat(), whole);
    }

    #[rstest]
    #[case(
        "<Error><Code>InvalidPart</Code><Message>m</Message></Error>",
        "<Error><Code>InvalidPart</Code><Message>m</Message>"
    )]
    #[case(
        "<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>AKIAOURS</AWSAccessKeyId></Error>",
        "<Error><Code>ServiceUnavailable</Code>"
    )]
    #[case("<html>", "<Error><Code>ServiceUnavailable</Code>")]
    #[case(
        "<CopyObjectResult><ETag>e</ETag></CopyObjectResult>",
        "<CopyObjectResult><ETag>e</ETag></CopyObjectResult>"
    )]
    #[tokio::test]
    async fn an_error_under_200_is_filtered_too(#[case] document: &'static str, #[case] begin: &str) {
        let seen = seen(&[document]).await.concat();
        assert!(seen.starts_with(begin) && !seen.contains("AKIAOURS"), "{seen}");
    }

    #[tokio::test]
    async fn a_result_without_end_is_cut() {
        let long = Full::new(Bytes::from(vec![b'x'; LONGEST + 1])).map_err(|never| match never {}).boxed_unsync();
        assert!(body(long, words()).collect().await.is_err());
    }
}
