//! A client that reports responses of the API server. A watch only passes on changes, so without
//! changes a healthy watch looks like a dead one.

use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;

/// Wraps a client to call `heard` on each successful response and on each piece of its body.
/// Bookmarks are such pieces.
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
