//! A request as bytes on a connection of its own: no client's library stands between.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST};
use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use stowage_gateway::sigv4::{Outgoing, Signer};
use stowage_testbed::request::{Ask, Signed};
use stowage_testbed::sigv4;
use stowage_testbed::store::Key;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::generate::{Body, Request};

/// How the body is signed: not at all.
pub(super) const PAYLOAD: &str = "UNSIGNED-PAYLOAD";
/// For one request and its answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most that is read of an answer.
const LONGEST: u64 = 1 << 20;

/// In the place of a status where a connection was cut before the answer.
pub(super) const CUT: u16 = 0;

/// The signer, and towards which bucket of which gateway.
pub(super) struct Caller {
    pub(super) key: Key,
    pub(super) region: String,
    /// The same key, for requests that are signed in their headers.
    pub(super) signer: Signer,
    pub(super) bucket: String,
    /// Host and port, as a `Host` header has them.
    pub(super) host: String,
    pub(super) address: SocketAddr,
}

/// A request as it is sent.
pub(super) struct Written {
    pub(super) method: &'static str,
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// The answer.
pub(super) struct Answer {
    pub(super) status: u16,
    /// All of it, the head included.
    pub(super) bytes: Vec<u8>,
}

impl Caller {
    /// A request, signed as a client does that understands its own.
    ///
    /// # Errors
    /// When something of it can't stand in a header.
    pub(super) fn write(&self, request: &Request, now: Timestamp) -> Result<Written> {
        let Request { method, path, query, target, .. } = request;
        let method = *method;
        let (mut headers, mut target) = (request.headers.clone(), target.clone());
        let signer = sigv4::Signer { key: &self.key, region: &self.region, now };
        let body = match &request.body {
            Body::Bytes(bytes) => bytes.clone(),
            Body::Form(form) => form.body(&signer, &self.bucket),
        };
        match request.signed {
            Signed::Headers => {
                let outgoing = Outgoing { method, host: &self.host, path, query, payload: PAYLOAD };
                self.signer.sign(&outgoing, &mut headers, now).context("a request can't be signed")?;
            }
            Signed::Query => target = signer.in_query(Ask::new(method, target), &self.host).target,
            Signed::Form => {}
        }
        headers.insert(HOST, HeaderValue::from_str(&self.host).context("a host")?);
        if matches!(method, "PUT" | "POST") {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        headers.append(CONNECTION, HeaderValue::from_static("close"));
        Ok(Written { method, target, headers, body })
    }

    /// Sends a request, and reads the answer.
    ///
    /// # Errors
    /// When there is none.
    pub(super) async fn send(&self, written: &Written) -> Result<Answer> {
        let request = written.bytes();
        let answered = async {
            let mut connection = TcpStream::connect(self.address).await?;
            // A request that is refused by its head may be cut, and its answer, too.
            cut_or(connection.write_all(&request).await)?;
            let mut answer = Vec::new();
            cut_or(connection.take(LONGEST).read_to_end(&mut answer).await.map(|_| ()))?;
            std::io::Result::Ok(answer)
        };
        let bytes = timeout(PATIENCE, answered).await.context("the gateway did not answer")??;
        if bytes.is_empty() {
            return Ok(Answer { status: CUT, bytes });
        }
        let line = bytes.split(|byte| *byte == b'\r').next().map(String::from_utf8_lossy).unwrap_or_default();
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| anyhow!("the gateway answered {line:?}"))?;
        Ok(Answer { status, bytes })
    }
}

/// An error, but for that of a connection that the other end has cut.
fn cut_or(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => Ok(()),
        result => result,
    }
}

impl Written {
    fn bytes(&self) -> Vec<u8> {
        let mut request = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        for (name, value) in &self.headers {
            request.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        request.extend(b"\r\n");
        request.extend(&self.body);
        request
    }

    /// The request to be read, without its signature, up to so many bytes.
    pub(super) fn text(&self, most: usize) -> String {
        let mut bytes = format!("{} {}\n", self.method, self.target).into_bytes();
        for (name, value) in self.headers.iter().filter(|(name, _)| *name != "authorization") {
            bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\n"].concat());
        }
        bytes.extend([b"\n", self.body.as_slice()].concat());
        bytes.truncate(most);
        bytes.utf8_chunks().map(|chunk| format!("{}{}", chunk.valid(), chunk.invalid().escape_ascii())).collect()
    }
}

impl Answer {
    /// The text of the first element of this name.
    pub(super) fn element(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.bytes);
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once(&format!("</{name}>"))?.0.to_owned())
    }

    /// The header of this name, in lower case.
    pub(super) fn header(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.bytes);
        let fields = text.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_once(':'));
        let mut found = fields.filter(|(found, _)| found.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim().to_owned())
    }

    /// A text is in it.
    pub(super) fn holds(&self, text: &str) -> bool {
        self.bytes.windows(text.len().max(1)).any(|window| window == text.as_bytes())
    }
}
