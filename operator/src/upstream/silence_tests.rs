use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use aws_sdk_s3::operation::list_buckets::ListBucketsError;
use rstest::rstest;
use store_tls::Trust;

use super::super::connect::{Connect, RustlsConnect};
use super::super::scripted;
use super::super::{Class, Flaw, UpstreamError};
use super::*;

/// Returns the failure of a probe of this endpoint.
async fn failure(endpoint: &str) -> Class {
    let http = RustlsConnect.connect(&Trust::Anything).expect("a client");
    let failed: UpstreamError = scripted::client(endpoint, http).probe().await.expect_err("it is no store");
    failed.class
}

/// Returns a server that runs `serve` on a connection once it has received something.
fn server<T: Send + 'static>(serve: impl FnOnce(TcpStream) -> T + Send + 'static) -> (SocketAddr, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let served = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let heard = stream.read(&mut [0; 4096]).expect("a request");
        assert!(heard > 0);
        serve(stream)
    });
    (address, served)
}

// covers: 3.5.why
#[tokio::test]
async fn nobody_listens() {
    let gone = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    assert_eq!(failure(&format!("http://{gone}")).await, Class::NoAnswer(Silence::Refused));
}

/// A label of a host name has at most 63 characters, so no resolver is queried.
// covers: 3.5.why
#[tokio::test]
async fn a_name_is_not_resolved() {
    let endpoint = format!("http://{}.invalid", "x".repeat(64));
    assert_eq!(failure(&endpoint).await, Class::NoAnswer(Silence::Unresolved));
}

// covers: 3.5.why
#[tokio::test]
async fn a_server_hangs_up() {
    let (address, _) = server(drop);
    let class = failure(&format!("http://{address}")).await;
    assert!(matches!(class, Class::NoAnswer(Silence::Closed | Silence::Broken)), "{class:?}");
}

// covers: 3.5.why
#[tokio::test]
async fn a_server_does_not_speak_tls() {
    let (address, _) = server(|mut stream: TcpStream| stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n"));
    assert_eq!(failure(&format!("https://{address}")).await, Class::NoAnswer(Silence::Tls));
}

#[tokio::test]
async fn an_answer_breaks_off() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n<ListAllMyBucketsResult>";
    let (address, _) = server(|mut stream: TcpStream| stream.write_all(head));
    assert_eq!(failure(&format!("http://{address}")).await, Class::Unusable(Flaw::Cut));
}

#[tokio::test]
async fn what_answers_is_no_store() {
    let page = b"HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n<html>hi</html>";
    let (address, _) = server(|mut stream: TcpStream| stream.write_all(page));
    assert_eq!(failure(&format!("http://{address}")).await, Class::Unusable(Flaw::Unreadable));
}

/// The kernel buffers some megabytes of the server that nobody reads.
// covers: 3.5.answer
#[tokio::test]
async fn a_server_that_does_not_come_to_an_end_is_hung_up_on() {
    const MOST: usize = 32 << 20;
    let (address, sent) = server(|mut stream: TcpStream| {
        let blanks = [b' '; 64 << 10];
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 629145600\r\n\r\n").expect("it is read");
        (0..).take_while(|_| stream.write_all(&blanks).is_ok()).count() * blanks.len()
    });
    assert_eq!(failure(&format!("http://{address}")).await, Class::Unusable(Flaw::TooLong));
    let sent = tokio::task::spawn_blocking(|| sent.join().expect("it serves")).await.expect("it is waited for");
    assert!(sent < MOST, "{sent} bytes were taken off its hands");
}

#[tokio::test]
async fn the_head_of_an_answer_has_an_end_too() {
    const MOST: usize = 32 << 20;
    let (address, sent) = server(|mut stream: TcpStream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").expect("it is read");
        let blanks = [b'x'; 64 << 10];
        (0..).take_while(|_| stream.write_all(&blanks).is_ok()).count() * blanks.len()
    });
    let class = failure(&format!("http://{address}")).await;
    assert!(matches!(class, Class::NoAnswer(Silence::Closed | Silence::Broken)), "{class:?}");
    let sent = tokio::task::spawn_blocking(|| sent.join().expect("it serves")).await.expect("it is waited for");
    assert!(sent < MOST, "{sent} bytes were taken off its hands");
}

fn certificate(why: CertificateError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, rustls::Error::InvalidCertificate(why))
}

// covers: 3.5.why
#[rstest]
#[case(certificate(CertificateError::UnknownIssuer), Silence::Certificate(Doubt::Issuer))]
#[case(certificate(CertificateError::NotValidForName), Silence::Certificate(Doubt::Name))]
#[case(
    certificate(CertificateError::Other(rustls::OtherError(Arc::new(webpki::Error::CaUsedAsEndEntity)))),
    Silence::Certificate(Doubt::Authority)
)]
#[case(certificate(CertificateError::Expired), Silence::Certificate(Doubt::Time))]
#[case(
    certificate(CertificateError::Other(rustls::OtherError(Arc::new(fmt::Error)))),
    Silence::Certificate(Doubt::Other)
)]
#[case(io::Error::from(io::ErrorKind::HostUnreachable), Silence::Unreachable)]
#[case(io::Error::from(io::ErrorKind::ConnectionReset), Silence::Closed)]
#[case(io::Error::from(io::ErrorKind::TimedOut), Silence::Late)]
#[case(io::Error::other("http://s3.example/photos?key=1 at 23:31:30"), Silence::Broken)]
fn causes_are_told_in_words_of_ours(#[case] cause: io::Error, #[case] expected: Silence) {
    let error = SdkError::<ListBucketsError, HttpResponse>::dispatch_failure(ConnectorError::io(cause.into()));
    assert_eq!(Silence::of(&error), expected);
}
