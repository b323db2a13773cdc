//! Forms before they are authenticated: they share little memory, and keep it for a short time.

use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{once, pending};
use http::Request;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use stowage_gateway::front::Peer;
use tokio::task::JoinSet;
use tower::BoxError;

use crate::{Stage, ask, code};

/// Returns a form of which one field arrives, and nothing else.
fn endless() -> Request<stowage_gateway::body::Body> {
    let request = ask("POST", "/photos").with("content-type", "multipart/form-data; boundary=x");
    let field = Bytes::from_static(b"--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nvalue");
    let begun = once(async move { Ok::<_, BoxError>(Frame::data(field)) });
    request.with("content-length", "1000000").plain().map(|_| StreamBody::new(begun.chain(pending())).boxed_unsync())
}

/// Sends `count` forms from an address, and returns the codes of the responses within this time.
async fn codes(stage: &Stage, host: u8, count: usize, within: Duration) -> Vec<String> {
    let peer = Peer { address: (Ipv4Addr::new(203, 0, 113, host), 4711).into(), is_tls: false };
    let mut forms = JoinSet::new();
    for _ in 0..count {
        let gateway = stage.gateway.clone();
        forms.spawn(async move {
            let body = gateway.serve(endless(), peer).await.into_body().collect().await.expect("it is whole");
            code(&String::from_utf8_lossy(&body.to_bytes())).to_owned()
        });
    }
    let mut codes = Vec::new();
    let all = async {
        while let Some(code) = forms.join_next().await {
            codes.push(code.expect("no panic"));
        }
    };
    drop(tokio::time::timeout(within, all).await);
    codes
}

// covers: 6.form.bound
#[tokio::test]
async fn forms_of_which_no_field_ends_share_little_memory() {
    let stage = Stage::new().await;
    tokio::time::pause();
    let refused = codes(&stage, 1, 400, Duration::from_secs(1)).await;
    assert_eq!((refused.len(), refused.iter().all(|code| code == "SlowDown")), (400 - 256, true));
    // All others have been given up by now.
    tokio::time::sleep(Duration::from_secs(1)).await;
    // One source doesn't block another.
    let (ours, theirs) =
        tokio::join!(codes(&stage, 1, 256, Duration::from_secs(9)), codes(&stage, 2, 10, Duration::from_secs(11)),);
    assert_eq!(ours, Vec::<String>::new(), "they are waited for");
    assert_eq!(theirs, vec!["RequestTimeout"; 10], "ten seconds, and no more");
}
