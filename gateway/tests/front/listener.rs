//! A real listener: checks of a connection's data before there is a request.

use std::future::pending;
use std::time::Duration;

use rstest::rstest;
use stowage_gateway::server::{self, Config, Gauges};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::Stage;

// covers: 6.lines
#[rstest]
#[case::good("GET /photos/a HTTP/1.1\r\nhost: a\r\nx: y\r\nconnection: close\r\n\r\n", "HTTP/1.1 403")]
#[case::bare("GET /photos/a HTTP/1.1\r\nhost: a\nx: y\r\nconnection: close\r\n\r\n", "HTTP/1.1 400")]
#[tokio::test]
async fn a_bare_line_feed_is_refused_by_the_listener(#[case] sent: &str, #[case] expected: &str) {
    let stage = Stage::new().await;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("it has one");
    let serving = server::serve(listener, stage.gateway.clone(), None, Config::default(), Gauges::default(), pending());
    let serving = tokio::spawn(serving);
    let mut client = TcpStream::connect(address).await.expect("somebody listens");
    client.write_all(sent.as_bytes()).await.expect("it is read");
    let mut answer = String::new();
    let read = timeout(Duration::from_secs(60), client.read_to_string(&mut answer)).await;
    read.expect("the connection ends").expect("text");
    assert!(answer.starts_with(expected), "{answer}");
    assert!(stage.asked().is_empty());
    serving.abort();
}
