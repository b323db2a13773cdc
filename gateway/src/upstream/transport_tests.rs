//! The end of a connection to a store, as the store sees it.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::{self, BoxFuture};
use futures::{StreamExt as _, stream};
use http::header::CONTENT_LENGTH;
use http_body::Frame;
use http_body_util::StreamBody;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rstest::rstest;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::*;

const PIECE: usize = 16 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Plain,
    Tls,
}

#[derive(Clone, Copy, Debug)]
enum Cut {
    /// The body fails.
    Fails,
    /// The caller stops waiting for the response.
    GivenUp,
}

/// Returns a body of zeros without its last one. It pauses until the store has read all others.
fn body(length: usize, cut: Cut, arrived: Arc<Notify>) -> Body {
    let pieces: Vec<Bytes> = vec![0; length - 1].chunks(PIECE).map(Bytes::copy_from_slice).collect();
    let end = stream::once(async move {
        match cut {
            Cut::Fails => arrived.notified().await,
            Cut::GivenUp => future::pending().await,
        }
        Err(BoxError::from("it broke off"))
    });
    let pieces = stream::iter(pieces.into_iter().map(|piece| Ok(Frame::data(piece))));
    StreamBody::new(pieces.chain(end)).boxed_unsync()
}

fn acceptor() -> TlsAcceptor {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["s3.example".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("they fit together");
    TlsAcceptor::from(Arc::new(config))
}

/// Reads until this many zeros have come, notifies `arrived`, and reads on to the end.
async fn read_all(mut connection: impl AsyncRead + Unpin, zeros: usize, arrived: &Notify) -> io::Result<()> {
    let (mut buffer, mut come) = (vec![0; PIECE], 0);
    loop {
        let read = connection.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        come += buffer[..read].iter().filter(|byte| **byte == 0).count();
        if come == zeros {
            arrived.notify_one();
        }
    }
}

async fn store(listener: TcpListener, way: Way, zeros: usize, arrived: Arc<Notify>) -> io::Result<()> {
    let (connection, _) = listener.accept().await?;
    match way {
        Way::Plain => read_all(connection, zeros, &arrived).await,
        Way::Tls => read_all(acceptor().accept(connection).await?, zeros, &arrived).await,
    }
}

// covers: 6.body.reset
/// versitygw 1.8.0 keeps the bytes before an orderly end.
#[rstest]
#[tokio::test]
async fn a_body_that_broke_off_is_followed_by_a_reset(
    #[values(100_000, 1 << 20)] length: usize,
    #[values(Way::Plain, Way::Tls)] way: Way,
    #[values(Cut::Fails, Cut::GivenUp)] cut: Cut,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let scheme = if way == Way::Tls { "https" } else { "http" };
    let url = format!("{scheme}://{}/photos/a", listener.local_addr().expect("an address"));
    let arrived = Arc::new(Notify::new());
    let store = tokio::spawn(store(listener, way, length - 1, arrived.clone()));
    let request = Request::put(url).header(CONTENT_LENGTH, length).body(body(length, cut, arrived.clone()));
    let transport = RustlsConnect.connect(&Trust::Anything).expect("a transport");
    let call: BoxFuture<'static, _> = Box::pin(transport.oneshot(request.expect("a request")));
    match cut {
        Cut::Fails => assert!(call.await.is_err()),
        Cut::GivenUp => tokio::select! {
            _ = call => panic!("the store answers nothing"),
            () = arrived.notified() => {}
        },
    }
    let end = timeout(Duration::from_secs(30), store).await.expect("it ends").expect("it doesn't panic");
    assert_eq!(end.map_err(|error| error.kind()), Err(io::ErrorKind::ConnectionReset));
}

// covers: 6.body.reset
/// The kernel closes the sockets of a killed process in the same way.
#[tokio::test]
async fn a_connection_is_reset_whoever_closes_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let connection = TcpStream::connect(listener.local_addr().expect("an address")).await;
    let connection = reset_at_the_end(connection.map(TokioIo::new)).expect("a connection");
    assert_eq!(connection.inner().linger().expect("an option"), Some(Duration::ZERO));
}
