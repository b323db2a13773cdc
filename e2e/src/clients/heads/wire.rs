//! A head as bytes on a connection of its own: no client's library stands between.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use http::header::{CONNECTION, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use stowage_gateway::sigv4::{Outgoing, Signer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::generate::Head;

/// How the body is signed: not at all.
pub(super) const PAYLOAD: &str = "UNSIGNED-PAYLOAD";
/// For one request and its answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most that is read of an answer.
const LONGEST: u64 = 1 << 20;

/// The headers of a head, signed as a client does that understands its own request.
///
/// # Errors
/// When something of it can't stand in a header.
pub(super) fn signed(head: &Head, signer: &Signer, host: &str, now: Timestamp) -> Result<HeaderMap> {
    let mut headers = head.headers.clone();
    let Head { method, path, query, .. } = head;
    let outgoing = Outgoing { method, host, path, query, payload: PAYLOAD };
    signer.sign(&outgoing, &mut headers, now).context("a head can't be signed")?;
    if matches!(*method, "PUT" | "POST") {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(head.body.len()));
    }
    headers.append(CONNECTION, HeaderValue::from_static("close"));
    Ok(headers)
}

/// Sends it, and gives the status of the answer.
///
/// # Errors
/// When there is no answer.
pub(super) async fn send(to: SocketAddr, head: &Head, headers: &HeaderMap) -> Result<u16> {
    let mut request = format!("{} {} HTTP/1.1\r\n", head.method, head.target).into_bytes();
    for (name, value) in headers {
        request.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    request.extend(b"\r\n");
    request.extend(&head.body);
    let answered = async {
        let mut connection = TcpStream::connect(to).await?;
        connection.write_all(&request).await?;
        let mut answer = Vec::new();
        connection.take(LONGEST).read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = timeout(PATIENCE, answered).await.context("the gateway did not answer")??;
    let line = answer.split(|byte| *byte == b'\r').next().map(String::from_utf8_lossy).unwrap_or_default();
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| anyhow!("the gateway answered {line:?} to {:?}", head.target))
}
