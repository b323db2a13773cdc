//! Responses: objects, complete or as metadata only, and statuses.

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

/// Body of every response: complete, or streamed for a watch.
pub type ApiBody = UnsyncBoxBody<Bytes, Infallible>;

/// Representation of objects that the client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    /// `PartialObjectMetadata` and its list.
    Metadata,
}

impl Form {
    /// Parses the `Accept` header. Unknown values mean the complete object.
    pub(crate) fn parse(headers: &HeaderMap) -> Self {
        let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let asks = |part: &str| {
            let parameter = part.trim();
            parameter == "as=PartialObjectMetadata" || parameter == "as=PartialObjectMetadataList"
        };
        if accept.split(';').any(asks) { Self::Metadata } else { Self::Whole }
    }

    /// Serializes a stored object.
    pub(crate) fn text(self, object: &Shared) -> Bytes {
        match self {
            Self::Whole => object.json().clone(),
            Self::Metadata => json_text(&self.of(&object.tree())),
        }
    }

    /// Returns an object in this representation.
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

    /// Serializes a list.
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

    /// Serializes an object in a list. Built-in kinds have no type there.
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

/// API version of objects that are metadata only.
const PARTIAL_VERSION: &str = "meta.k8s.io/v1";

/// An object in the representation for a response.
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

/// Returns a `Status` as an object with its type.
pub(crate) fn status_object(status: &Status) -> Value {
    let mut object = serde_json::to_value(status).expect("a status is JSON");
    object["kind"] = "Status".into();
    object["apiVersion"] = "v1".into();
    if object["metadata"].is_null() {
        object["metadata"] = json!({});
    }
    object
}

/// Returns the response for a failure.
pub fn refusal(failure: &Status) -> Response<ApiBody> {
    let code = StatusCode::from_u16(failure.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer(code, &status_object(failure), &[])
}

/// Returns the response to a DELETE that removed the object.
pub(crate) fn deleted_status(kind: &Kind, object: &Value) -> Value {
    let mut details = json!({"name": meta::name(object), "kind": kind.plural, "uid": meta::uid(object)});
    if !kind.group.is_empty() {
        details["group"] = kind.group.clone().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// Returns the response for an unknown path: plain text, as from a server.
pub fn page_not_found() -> Response<ApiBody> {
    let body = Full::new(Bytes::from_static(b"404 page not found\n"));
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::NOT_FOUND;
    let text = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

/// Returns a JSON response with warnings as headers.
pub fn answer(code: StatusCode, body: &Value, warnings: &[String]) -> Response<ApiBody> {
    answer_text(code, json_text(body), warnings)
}

/// Returns a response like [`answer`], from a serialized body.
pub fn answer_text(code: StatusCode, body: Bytes, warnings: &[String]) -> Response<ApiBody> {
    let mut response = Response::new(Full::new(body).boxed_unsync());
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    warn(headers, warnings);
    response
}

/// Adds warnings to the headers.
pub fn warn(headers: &mut HeaderMap, warnings: &[String]) {
    for warning in warnings {
        let escaped = warning.replace('\\', "\\\\").replace('"', "\\\"");
        // A text that is not a valid header value is omitted, as by a server.
        if let Ok(value) = header::HeaderValue::from_str(&format!("299 - \"{escaped}\"")) {
            headers.append(header::WARNING, value);
        }
    }
}
