//! The PROXY protocol, versions 1 and 2: the header that a load balancer sends before the client's
//! data.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use ppp::v1::Addresses as Text;
use ppp::v2::Addresses as Binary;
use ppp::{HeaderResult, PartialResult};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Time limit for the header. A balancer sends it at once.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum length of a header in bytes. Those of cloud providers have some hundred bytes besides
/// the addresses.
const LONGEST: usize = 1024;
/// Interval between two checks for new data.
const LOOK: Duration = Duration::from_millis(5);

/// Reads the header, and nothing after it. Returns the client's address, or `None` if the balancer
/// opened the connection itself, for example for a health check.
///
/// # Errors
/// Returns an error if the header is missing or malformed, or doesn't arrive in time.
pub(super) async fn read(stream: &mut TcpStream) -> io::Result<Option<SocketAddr>> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, "no PROXY header came in time");
    timeout(PATIENCE, header(stream)).await.map_err(|_| late())?
}

async fn header(stream: &mut TcpStream) -> io::Result<Option<SocketAddr>> {
    let mut seen = [0; LONGEST];
    let mut before = 0;
    loop {
        let length = stream.peek(&mut seen).await?;
        let came = seen.get(..length).unwrap_or_default();
        if came.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let parsed = HeaderResult::parse(came);
        if parsed.is_complete() || length == LONGEST {
            let (used, client) = understood(&parsed)?;
            stream.read_exact(seen.get_mut(..used).unwrap_or_default()).await?;
            return Ok(client);
        }
        // Peeked data stays readable, so only additional data is news.
        if length == before {
            sleep(LOOK).await;
        }
        before = length;
    }
}

/// Returns the length of the header, and the address that it names.
fn understood(parsed: &HeaderResult<'_>) -> io::Result<(usize, Option<SocketAddr>)> {
    let wrong = |error: String| io::Error::new(io::ErrorKind::InvalidData, format!("no PROXY header: {error}"));
    match parsed {
        HeaderResult::V1(Ok(header)) => {
            let client = match &header.addresses {
                Text::Tcp4(it) => Some((it.source_address, it.source_port).into()),
                Text::Tcp6(it) => Some((it.source_address, it.source_port).into()),
                Text::Unknown => None,
            };
            Ok((header.header.len(), client))
        }
        HeaderResult::V2(Ok(header)) => {
            let client = match &header.addresses {
                Binary::IPv4(it) => Some((it.source_address, it.source_port).into()),
                Binary::IPv6(it) => Some((it.source_address, it.source_port).into()),
                Binary::Unix(_) | Binary::Unspecified => None,
            };
            Ok((header.len(), client))
        }
        HeaderResult::V1(Err(error)) => Err(wrong(error.to_string())),
        HeaderResult::V2(Err(error)) => Err(wrong(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    /// Returns the server's result for these bytes, and what it reads after them.
    async fn taken(bytes: &'static [u8]) -> (io::Result<Option<SocketAddr>>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it has one");
        let sent = tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            // In two pieces, as may happen on a network.
            let (first, rest) = bytes.split_at(bytes.len() / 2);
            stream.write_all(first).await.expect("it reads");
            stream.flush().await.expect("it reads");
            sleep(Duration::from_millis(30)).await;
            // Fails if the first piece was refused.
            let _ = stream.write_all(rest).await;
        });
        let (mut stream, _) = listener.accept().await.expect("somebody comes");
        let client = read(&mut stream).await;
        let mut rest = Vec::new();
        if client.is_ok() {
            stream.read_to_end(&mut rest).await.expect("it ends");
        }
        drop(stream);
        sent.await.expect("it was sent");
        (client, rest)
    }

    const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc6\x33\x64\x01\x0a\x00\x00\x01\x12\x34\x1f\x40GET /";
    const V2_LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00GET /";

    #[rstest]
    #[case(b"PROXY TCP4 198.51.100.1 10.0.0.1 4660 8000\r\nGET /", Some("198.51.100.1:4660"))]
    #[case(b"PROXY UNKNOWN\r\nGET /", None)]
    #[case(V2, Some("198.51.100.1:4660"))]
    #[case(V2_LOCAL, None)]
    #[tokio::test]
    async fn the_client_is_who_the_header_names(#[case] bytes: &'static [u8], #[case] client: Option<&str>) {
        let (found, rest) = taken(bytes).await;
        assert_eq!(found.expect("it is a header").map(|it| it.to_string()).as_deref(), client);
        assert_eq!(rest, b"GET /");
    }

    #[rstest]
    #[case(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")]
    #[case(b"PROXY TCP4 here there 1 2\r\n")]
    #[tokio::test]
    async fn what_is_no_header_ends_the_connection(#[case] bytes: &'static [u8]) {
        assert!(taken(bytes).await.0.is_err());
    }
}
