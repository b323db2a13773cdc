//! Manifests that a simulator is given, applied as `kubectl apply -f` would: definitions of others
//! among them, and whatever these define.

use http::{HeaderValue, Request, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use kube::discovery::pinned_kind;
use kube_front::Front;
use stowage_world::{Document, ManifestError, apply_as};
use tower::service_fn;

use super::recorder::Recorder;

/// A client that knows the server as everybody outside does, with this token; what it writes is
/// noted.
///
/// # Errors
/// The token can't stand in a header.
pub(super) fn client(front: &Front, recorder: &Recorder, token: &str) -> Result<Client, String> {
    let bearer = HeaderValue::from_str(&format!("Bearer {token}"));
    let bearer = bearer.map_err(|error| format!("the token can't be sent: {error}"))?;
    let (front, recorder) = (front.clone(), recorder.clone());
    let service = service_fn(move |mut request: Request<Body>| {
        request.headers_mut().insert(header::AUTHORIZATION, bearer.clone());
        let (front, recorder) = (front.clone(), recorder.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            recorder.ask(front, head, body).await
        }
    });
    Ok(Client::new(service, "default"))
}

/// Applies a document by the name and scope that the server has for its kind by now.
///
/// # Errors
/// With the API server's own message, when it refuses; in kubectl's words, where nothing serves the
/// kind.
pub(super) async fn apply(client: &Client, document: &Document) -> Result<(), ManifestError> {
    let kind = document.kind()?;
    let unknown = |_| {
        let (version, kind) = (kind.api_version(), &kind.kind);
        document.failed(format!(
            "no matches for kind \"{kind}\" in version \"{version}\": its definition has to come first"
        ))
    };
    let (resource, capabilities) = pinned_kind(client, &kind).await.map_err(unknown)?;
    apply_as(client, document, &resource, capabilities.scope).await.map(|_| ())
}
