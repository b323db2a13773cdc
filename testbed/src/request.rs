//! Requests to a store or a gateway, written byte by byte, so that no library normalizes a path,
//! follows a redirect or retries.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use http::Uri;
use jiff::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

pub use crate::ask::Ask;
use crate::sigv4::Signer;
use crate::store::Key;

/// Time limit for one request and its response.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum number of bytes read of a response.
const LONGEST: u64 = 1 << 20;

/// Place of the signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signed {
    /// In the headers.
    Headers,
    /// In the query, as in a presigned URL.
    Query,
    /// In the policy of a form; the request itself is not signed.
    Form,
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    /// Its status code.
    pub status: u16,
    /// Status line and headers.
    head: String,
    /// Its body, with chunks joined.
    pub body: String,
}

impl Answer {
    /// True if the request succeeded: S3 may also send an error with status 200.
    pub fn is_done(&self) -> bool {
        (200..300).contains(&self.status) && self.code().is_none()
    }

    /// Returns the S3 error code, if the body is an error.
    pub fn code(&self) -> Option<&str> {
        self.body.contains("<Error>").then(|| self.element("Code")).flatten()
    }

    /// Returns the content of the body's first element of this name, which must not contain
    /// elements.
    pub fn element(&self, name: &str) -> Option<&str> {
        self.elements(name).into_iter().next()
    }

    /// Returns the contents of all elements of this name.
    pub fn elements(&self, name: &str) -> Vec<&str> {
        let (begin, end) = (format!("<{name}>"), format!("</{name}>"));
        self.body.split(&begin).skip(1).filter_map(|rest| Some(rest.split_once(&end)?.0)).collect()
    }

    /// Returns the header with this name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// A client with a key, an endpoint and a region.
pub struct Asker {
    key: Key,
    region: String,
    /// Host and port.
    host: String,
}

impl Asker {
    /// Creates a client of this endpoint, without TLS. Sends no request.
    ///
    /// # Errors
    /// Fails if the endpoint is not an `http` URL with a host and a port.
    pub fn new(endpoint: &str, region: &str, key: Key) -> Result<Self> {
        let uri: Uri = endpoint.parse().with_context(|| format!("{endpoint} is no URL"))?;
        let authority = uri.authority().filter(|it| it.port().is_some()).map(ToString::to_string);
        let host = authority.with_context(|| format!("{endpoint} names no port"))?;
        ensure!(uri.scheme_str() == Some("http"), "{endpoint} is asked by TLS");
        Ok(Self { key, region: region.to_owned(), host })
    }

    /// Returns host and port, as in the `Host` header.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns a signer with the current time.
    pub fn signer(&self) -> Signer<'_> {
        Signer { key: &self.key, region: &self.region, now: Timestamp::now() }
    }

    /// Signs a request and sends it.
    ///
    /// # Errors
    /// Fails if there is no response in time, or if it is malformed.
    pub async fn ask(&self, ask: Ask, signed: Signed) -> Result<Answer> {
        let what = format!("{} {}", ask.method, ask.target);
        let ask = match signed {
            Signed::Headers => self.signer().in_headers(ask, &self.host).with_context(|| what.clone())?,
            Signed::Query => self.signer().in_query(ask, &self.host),
            Signed::Form => ask,
        };
        let answered = timeout(PATIENCE, self.send(&ask)).await;
        answered.map_err(|_| anyhow!("no answer")).and_then(|it| it).with_context(|| what)
    }

    async fn send(&self, ask: &Ask) -> Result<Answer> {
        let host = ask.host.as_ref().unwrap_or(&self.host);
        let mut request = format!("{} {} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n", ask.method, ask.target);
        for (name, value) in &ask.headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if matches!(ask.method, "PUT" | "POST") {
            request.push_str(&format!("content-length: {}\r\n", ask.body.len()));
        }
        request.push_str("\r\n");
        // Sent at once, so that a server that refuses by the head has received the body too, and
        // can close the connection.
        let request = [request.as_bytes(), &ask.body].concat();
        let mut connection = TcpStream::connect(&self.host).await?;
        connection.write_all(&request).await?;
        let mut answer = Vec::new();
        connection.take(LONGEST).read_to_end(&mut answer).await?;
        read(&answer)
    }
}

fn read(answer: &[u8]) -> Result<Answer> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").context("an answer without an end of its head")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("no status in {:?}", head.lines().next()))?;
    let mut answer = Answer { status, head, body: String::from_utf8_lossy(&answer[end + 4..]).into_owned() };
    if answer.header("transfer-encoding").is_some() {
        answer.body = without_chunks(&answer.body)?;
    }
    Ok(answer)
}

fn without_chunks(mut rest: &str) -> Result<String> {
    let mut body = String::new();
    loop {
        let (length, behind) = rest.split_once("\r\n").context("a chunk without a length")?;
        let length = usize::from_str_radix(length, 16).with_context(|| format!("a chunk of {length}"))?;
        if length == 0 {
            return Ok(body);
        }
        let chunk = behind.get(..length).context("a chunk that is cut")?;
        body.push_str(chunk);
        rest = behind.get(length + 2..).context("a chunk without an end")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{REGION, Simulated};

    #[tokio::test]
    async fn a_store_believes_both_signatures_and_not_those_of_another_key() {
        let simulated = Simulated::start().await.unwrap();
        let asker = |key: &Key| Asker::new(&simulated.endpoint(), REGION, key.clone()).unwrap();
        let owner = asker(&simulated.admin);
        let stranger = asker(&Key { secret: "guessed".to_owned(), ..simulated.admin.clone() });
        let put = |target: &str| Ask { body: b"data".to_vec(), ..Ask::new("PUT", target.to_owned()) };
        for signed in [Signed::Headers, Signed::Query] {
            let made = owner.ask(Ask::new("PUT", "/photos".to_owned()), signed).await.unwrap();
            assert!(made.is_done() || made.code() == Some("BucketAlreadyOwnedByYou"), "{made:?}");
            assert!(owner.ask(put("/photos/a%20b"), signed).await.unwrap().is_done());
            let listed = owner.ask(Ask::new("GET", "/photos?list-type=2&prefix=a".to_owned()), signed).await.unwrap();
            assert_eq!(listed.elements("Key"), ["a b"]);
            let read = owner.ask(Ask::new("GET", "/photos/a%20b".to_owned()), signed).await.unwrap();
            assert_eq!((read.status, read.body.as_str()), (200, "data"));
            let refused = stranger.ask(Ask::new("GET", "/photos/a%20b".to_owned()), signed).await.unwrap();
            assert_eq!(refused.code(), Some("SignatureDoesNotMatch"));
        }
    }

    #[test]
    fn an_answer_in_chunks_is_read_in_one_piece() {
        let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n<A>b\r\n5\r\n</A>c\r\n0\r\n\r\n";
        let answer = read(answer).unwrap();
        assert_eq!((answer.status, answer.body.as_str(), answer.element("A")), (200, "<A>b</A>c", Some("b")));
        assert!(read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n<A>").is_err());
        assert!(read(b"HTTP/1.1 200 OK").is_err());
    }
}
