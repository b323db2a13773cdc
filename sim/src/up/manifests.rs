//! Manifests given to a simulator, applied as `kubectl apply -f` would, including
//! CustomResourceDefinitions and their custom resources.

use http::{HeaderValue, Request, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use kube::discovery::pinned_kind;
use kube_front::Front;
use stowage_world::{Document, ManifestError, apply_as};
use tower::service_fn;

use super::recorder::Recorder;

/// Creates a client that uses the server as external clients do, with this token. Its writes are
/// recorded.
///
/// # Errors
/// Returns an error if the token can't be put into a header.
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

/// Applies a document with the resource and scope that the server currently has for its kind.
///
/// # Errors
/// Returns the API server's message if it refuses the document, or kubectl's message if the kind
/// isn't served.
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
