//! Requests whose key is revoked, or whose consent is withdrawn, while a body is streamed.

use std::time::Duration;

use bytes::Bytes;
use futures::channel::mpsc;
use futures::{SinkExt as _, StreamExt as _, stream};
use http::Request;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tokio::time::{Instant, sleep};
use tower::BoxError;

use stowage_gateway::body::{Body, RECHECK};

use crate::{KEY, SECRET, SYSTEM, Stage, answer, ask, code};

/// Deletes the key of the tenant of `photos`.
async fn revoke(stage: &Stage) {
    assert!(stage.cluster.remove("secrets", SYSTEM, &format!("vc-{}", KEY.to_lowercase())).is_some());
    stage.until(|stage| !stage.knows(KEY)).await;
}

/// Returns a body of `count` KiB, one per second.
fn a_second_each(count: usize) -> Body {
    let pieces = stream::iter(0..count).then(|_| async {
        sleep(Duration::from_secs(1)).await;
        Ok::<_, BoxError>(Frame::data(Bytes::from_static(&[0; 1 << 10])))
    });
    StreamBody::new(pieces).boxed_unsync()
}

// covers: 6.again
#[tokio::test]
async fn an_upload_that_began_before_the_key_was_revoked_is_not_stored() {
    let stage = Stage::new().await;
    let (mut pieces, body) = mpsc::channel::<Bytes>(0);
    let body = StreamBody::new(body.map(|piece| Ok::<_, BoxError>(Frame::data(piece)))).boxed_unsync();
    let request: Request<Body> = ask("PUT", "/photos/a").with("content-length", "7").signed(KEY, SECRET).map(|_| body);
    let (sent, ()) = tokio::join!(stage.send(request), async {
        // The channel has no buffer, so the second piece is taken once the first was forwarded.
        pieces.send(Bytes::from_static(b"con")).await.expect("it is read");
        pieces.send(Bytes::from_static(b"te")).await.expect("it is read");
        revoke(&stage).await;
        pieces.send(Bytes::from_static(b"nt")).await.expect("it is read");
        pieces.close_channel();
    });
    assert_eq!((sent.0.as_u16(), code(&sent.2)), (403, "InvalidAccessKeyId"), "{}", sent.2);
    let asked = stage.only();
    assert!(asked.body.is_err(), "the store has it all: {asked:?}");
}

// covers: 6.again
#[tokio::test(start_paused = true)]
async fn a_long_upload_ends_soon_after_its_key() {
    let stage = Stage::new().await;
    let length = (100 << 10).to_string();
    let request = ask("PUT", "/photos/a").with("content-length", &length).signed(KEY, SECRET);
    let (sent, revoked) = tokio::join!(stage.send(request.map(|_| a_second_each(100))), async {
        sleep(Duration::from_millis(15_500)).await;
        revoke(&stage).await;
        Instant::now()
    });
    assert_eq!((sent.0.as_u16(), code(&sent.2)), (403, "InvalidAccessKeyId"), "{}", sent.2);
    assert!(revoked.elapsed() <= RECHECK, "{:?}", revoked.elapsed());
    assert!(stage.only().body.is_err());
}

// covers: 6.again
#[tokio::test(start_paused = true)]
async fn a_long_download_ends_soon_after_its_key() {
    let stage = Stage::new().await;
    stage.store_answers(|_| answer(200, &[], "").map(|_| a_second_each(100)));
    let (got, revoked) = tokio::join!(stage.signed(ask("GET", "/photos/a")), async {
        sleep(Duration::from_millis(15_500)).await;
        revoke(&stage).await;
        Instant::now()
    });
    assert!(got.0.is_success() && got.2.starts_with("broken off"), "{}: {} bytes", got.0, got.2.len());
    assert!(revoked.elapsed() <= RECHECK, "{:?}", revoked.elapsed());
}

// covers: 6.again
#[tokio::test(start_paused = true)]
async fn a_long_upload_of_a_key_that_is_good_is_stored() {
    let stage = Stage::new().await;
    let length = (60 << 10).to_string();
    let request = ask("PUT", "/photos/a").with("content-length", &length).signed(KEY, SECRET);
    let sent = stage.send(request.map(|_| a_second_each(60))).await;
    assert_eq!(sent.0.as_u16(), 200, "{}", sent.2);
    assert_eq!(stage.only().body.map(|body| body.len()), Ok(60 << 10));
}
