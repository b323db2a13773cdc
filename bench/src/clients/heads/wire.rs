//! A request as bytes on a separate connection, without a client library.

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

/// The payload hash in the signature: bodies are not signed.
pub(super) const PAYLOAD: &str = "UNSIGNED-PAYLOAD";
/// Time limit for one request and its response.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum number of bytes read of a response.
const LONGEST: u64 = 1 << 20;

/// Used instead of a status if a connection was closed without a response.
pub(super) const CUT: u16 = 0;

/// A sender: its key, its bucket, and the gateway's address.
pub(super) struct Caller {
    pub(super) key: Key,
    pub(super) region: String,
    /// Signer with the same key, for signatures in headers.
    pub(super) signer: Signer,
    pub(super) bucket: String,
    /// Host and port, as in a `Host` header.
    pub(super) host: String,
    pub(super) address: SocketAddr,
}

/// A signed and encoded request.
pub(super) struct Written {
    pub(super) method: &'static str,
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// A response.
pub(super) struct Answer {
    pub(super) status: u16,
    /// All of it, the head included.
    pub(super) bytes: Vec<u8>,
}

impl Caller {
    /// Signs a request as an honest client would, from its decoded path and query.
    ///
    /// # Errors
    /// Fails if a part of it is not allowed in a header.
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

    /// Sends a request, and reads the response.
    ///
    /// # Errors
    /// Fails if the gateway can't be reached or sends no response in time.
    pub(super) async fn send(&self, written: &Written) -> Result<Answer> {
        let request = written.bytes();
        let answered = async {
            let mut connection = TcpStream::connect(self.address).await?;
            // The gateway may close the connection early for a request that it refuses by its head,
            // even within its response.
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

/// Ignores the error of a connection that was closed by the other end.
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

    /// Returns the request as text, without its signature, up to `most` bytes.
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
    /// Returns the text of the first element with this name.
    pub(super) fn element(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.bytes);
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once(&format!("</{name}>"))?.0.to_owned())
    }

    /// Returns the header with this name, in lower case.
    pub(super) fn header(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.bytes);
        let fields = text.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_once(':'));
        let mut found = fields.filter(|(found, _)| found.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim().to_owned())
    }

    /// True if the response contains a text.
    pub(super) fn holds(&self, text: &str) -> bool {
        self.bytes.windows(text.len().max(1)).any(|window| window == text.as_bytes())
    }
}
