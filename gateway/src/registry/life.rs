//! A client that tells when the API server is heard: what a watch passes on are changes, and where
//! nothing changes one that is well looks like one that is dead.

use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;

/// The same client, that calls `heard` with each answer that is no error, and with each piece of
/// its body: bookmarks are such.
pub(super) fn listening(client: &Client, heard: impl Fn() + Clone + Send + Sync + 'static) -> Client {
    let inner = client.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, heard) = (inner.clone(), heard.clone());
        async move {
            let answer = inner.send(request).await?;
            let is_good = answer.status().is_success();
            let tell = move || {
                if is_good {
                    heard();
                }
            };
            tell();
            let pieces = |body: Body| {
                body.map_frame(move |frame| {
                    tell();
                    frame
                })
            };
            Ok::<_, kube::Error>(answer.map(pieces))
        }
    });
    Client::new(service, client.default_namespace())
}
