//! Answers: objects whole or as metadata only, and statuses.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use kube::core::Status;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::json::json_text;
use super::kind::Kind;
use super::list::List;
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
            Self::Metadata => json_text(&self.of(&object.tree())),
        }
    }

    /// An object in this form.
    pub(crate) fn of(self, object: &Value) -> Formed<'_> {
        match self {
            Self::Whole => Formed::Whole(object),
            Self::Metadata => Formed::Metadata {
                api_version: PARTIAL_VERSION,
                kind: "PartialObjectMetadata",
                metadata: &object["metadata"],
            },
        }
    }

    /// The text of a list.
    pub(crate) fn list(self, kind: &Kind, list: &List) -> Bytes {
        let (api_version, list_kind) = match self {
            Self::Whole => (kind.api_version(), format!("{}List", kind.kind)),
            Self::Metadata => (PARTIAL_VERSION.to_owned(), "PartialObjectMetadataList".to_owned()),
        };
        let mut text = Vec::new();
        text.extend_from_slice(b"{\"apiVersion\":");
        text.extend_from_slice(&json_text(&api_version));
        text.extend_from_slice(b",\"items\":[");
        for (index, object) in list.objects.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            text.extend_from_slice(&self.item(kind, object));
        }
        text.extend_from_slice(b"],\"kind\":");
        text.extend_from_slice(&json_text(&list_kind));
        text.extend_from_slice(b",\"metadata\":");
        text.extend_from_slice(&json_text(&list.metadata));
        text.push(b'}');
        text.into()
    }

    /// The text of an object in a list: of built-in kinds without its type.
    fn item(self, kind: &Kind, object: &Shared) -> Bytes {
        if self == Self::Whole && kind.is_custom() {
            return object.json().clone();
        }
        let tree = object.tree();
        match tree.as_object() {
            Some(fields) if self == Self::Whole => json_text(&Formed::Untyped(fields)),
            _ => json_text(&self.of(&tree)),
        }
    }
}

/// The version of objects that are metadata only.
const PARTIAL_VERSION: &str = "meta.k8s.io/v1";

/// An object as it goes over the wire.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Formed<'a> {
    Whole(&'a Value),
    #[serde(serialize_with = "without_type")]
    Untyped(&'a Map<String, Value>),
    #[serde(rename_all = "camelCase")]
    Metadata {
        api_version: &'static str,
        kind: &'static str,
        metadata: &'a Value,
    },
}

fn without_type<S: Serializer>(fields: &Map<String, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind")))
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

/// The answer that tells of a failure.
pub fn refusal(failure: &Status) -> Response<ApiBody> {
    let code = StatusCode::from_u16(failure.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer(code, &status_object(failure), &[])
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
pub fn page_not_found() -> Response<ApiBody> {
    let body = Full::new(Bytes::from_static(b"404 page not found\n"));
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::NOT_FOUND;
    let text = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

/// A JSON answer with warnings as headers.
pub fn answer(code: StatusCode, body: &Value, warnings: &[String]) -> Response<ApiBody> {
    answer_text(code, json_text(body), warnings)
}

/// As [`answer`], of a body that is JSON already.
pub fn answer_text(code: StatusCode, body: Bytes, warnings: &[String]) -> Response<ApiBody> {
    let mut response = Response::new(Full::new(body).boxed_unsync());
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    warn(headers, warnings);
    response
}

/// Adds warnings.
pub fn warn(headers: &mut HeaderMap, warnings: &[String]) {
    for warning in warnings {
        let escaped = warning.replace('\\', "\\\\").replace('"', "\\\"");
        // A text that can't stand in a header is left out, as on a server.
        if let Ok(value) = header::HeaderValue::from_str(&format!("299 - \"{escaped}\"")) {
            headers.append(header::WARNING, value);
        }
    }
}
