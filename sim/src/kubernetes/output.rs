//! Answers: objects whole or as metadata only, and statuses.

use std::borrow::Cow;
use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use kube::core::Status;
use serde_json::{Value, json};

use super::kind::Kind;
use super::meta;
use super::store::Shared;

/// The body of every answer: complete at once, or (of a watch) streamed.
pub type ApiBody = UnsyncBoxBody<Bytes, Infallible>;

/// The form that the client accepts objects in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    /// `PartialObjectMetadata` and its list.
    Metadata,
}

impl Form {
    /// Reads the `Accept` header; what isn't known means the whole object.
    pub(crate) fn parse(headers: &HeaderMap) -> Self {
        let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let asks = |part: &str| {
            let parameter = part.trim();
            parameter == "as=PartialObjectMetadata" || parameter == "as=PartialObjectMetadataList"
        };
        if accept.split(';').any(asks) { Self::Metadata } else { Self::Whole }
    }

    /// The text of a stored object.
    pub(crate) fn text(self, object: &Shared) -> Bytes {
        match self {
            Self::Whole => object.json().clone(),
            Self::Metadata => json_text(&self.object(object)),
        }
    }

    pub(crate) fn object(self, object: &Value) -> Cow<'_, Value> {
        match self {
            Self::Whole => Cow::Borrowed(object),
            Self::Metadata => Cow::Owned(json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"],
            })),
        }
    }

    pub(crate) fn list(self, mut list: Value) -> Value {
        if self == Self::Metadata {
            list["kind"] = "PartialObjectMetadataList".into();
            list["apiVersion"] = "meta.k8s.io/v1".into();
            for item in list["items"].as_array_mut().into_iter().flatten() {
                *item = self.object(item).into_owned();
            }
        }
        list
    }
}

/// A `Status` as a whole object, with its type.
pub(crate) fn status_object(status: &Status) -> Value {
    let mut object = serde_json::to_value(status).expect("a status is JSON");
    object["kind"] = "Status".into();
    object["apiVersion"] = "v1".into();
    if object["metadata"].is_null() {
        object["metadata"] = json!({});
    }
    object
}

/// The answer to a DELETE that removed the object.
pub(crate) fn deleted_status(kind: &Kind, object: &Value) -> Value {
    let mut details = json!({"name": meta::name(object), "kind": kind.plural, "uid": meta::uid(object)});
    if !kind.group.is_empty() {
        details["group"] = kind.group.clone().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// The answer for a path that leads nowhere: plain text, as on a server.
pub(crate) fn page_not_found() -> Response<ApiBody> {
    let body = Full::new(Bytes::from_static(b"404 page not found\n"));
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::NOT_FOUND;
    let text = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

/// A JSON answer with warnings as headers.
pub(crate) fn answer(code: StatusCode, body: &Value, warnings: &[String]) -> Response<ApiBody> {
    answer_text(code, json_text(body), warnings)
}

/// A value as it goes over the wire.
pub(crate) fn json_text(value: &Value) -> Bytes {
    serde_json::to_vec(value).expect("a JSON value serializes").into()
}

/// As [`answer`], of a body that is JSON already.
pub(crate) fn answer_text(code: StatusCode, body: Bytes, warnings: &[String]) -> Response<ApiBody> {
    let mut response = Response::new(Full::new(body).boxed_unsync());
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    for warning in warnings {
        let escaped = warning.replace('\\', "\\\\").replace('"', "\\\"");
        // A text that can't stand in a header is left out, as on a server.
        if let Ok(value) = header::HeaderValue::from_str(&format!("299 - \"{escaped}\"")) {
            headers.append(header::WARNING, value);
        }
    }
    response
}
