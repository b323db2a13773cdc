//! Request bodies as JSON. Protobuf and YAML are decoded here, JSON is passed on unchanged.

use std::borrow::Cow;

use bytes::Bytes;
use http::request::Parts;
use kube_sim::json::json_text;
use kube_sim::status::{Failure, bad_request};
use serde_json::Value;

use super::media::{media_type, unsupported};
use super::protobuf;

/// Converts the body to JSON. A body that is neither protobuf nor YAML is taken for JSON; the code
/// that parses it reports an error if it isn't.
///
/// # Errors
/// Returns 400 for a body that can't be decoded, and 415 for CBOR and for protobuf of an unknown
/// kind.
pub(super) fn json(head: &Parts, body: &Bytes) -> Result<Bytes, Failure> {
    if body.is_empty() {
        return Ok(body.clone());
    }
    match media_type(head) {
        protobuf::MEDIA_TYPE => Ok(json_text(&protobuf::decode(body)?)),
        // Apply parses YAML itself, and has its own error messages for it.
        "application/yaml" | "text/yaml" | "application/x-yaml" => Ok(json_text(&yaml(body)?)),
        "application/cbor" | "application/apply-patch+cbor" => Err(unsupported("application/cbor")),
        _ => Ok(body.clone()),
    }
}

/// Parses the body as a JSON object.
///
/// # Errors
/// See [`json`]; also returns 400 if the body is not an object.
pub(super) fn object(head: &Parts, body: &Bytes) -> Result<Value, Failure> {
    let text: Cow<'_, [u8]> = json(head, body)?.to_vec().into();
    match serde_json::from_slice::<Value>(&text) {
        Ok(value) if value.is_object() => Ok(value),
        Ok(_) => Err(bad_request("the body of the request is not an object")),
        Err(error) => Err(bad_request(format!("the body of the request is not JSON: {error}"))),
    }
}

fn yaml(body: &[u8]) -> Result<Value, Failure> {
    let text = std::str::from_utf8(body).map_err(|_| bad_request("the body of the request is not text"))?;
    serde_saphyr::from_str(text).map_err(|error| bad_request(format!("error converting YAML to JSON: {error}")))
}
