//! One of the two servers: the objects seen there, and how its answers are read.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use http::{Request, header};
use kube::Client;
use kube::client::Body;
use regex::{Captures, Regex};
use serde_json::{Value, json};

use super::super::canonical::{Names, in_order};
use super::call::Call;

/// A server, and the values it returned in this sequence.
pub(super) struct Side {
    pub(super) client: Client,
    pub(super) names: Names,
    namespace: String,
    place: String,
    seen: Seen,
}

/// Values that operations can refer to.
#[derive(Default)]
struct Seen {
    /// UIDs by resource and name.
    uids: BTreeMap<String, String>,
    /// Resource versions by resource and name, oldest first.
    versions: BTreeMap<String, Vec<String>>,
    token: String,
}

/// Pattern of a placeholder: `$(uid secrets/a)`.
static PLACE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\$\((\w+)(?: ([^)]*))?\)").expect("the pattern is well formed"));

/// A UID that no object has.
const NO_UID: &str = "no-such-uid";

/// Answer of a server before it is made comparable.
pub(super) struct ServerAnswer {
    pub(super) code: u16,
    content_type: String,
    warnings: Vec<String>,
    pub(super) body: Value,
}

impl Side {
    pub(super) fn new(client: Client, namespace: &str, place: &str) -> Self {
        let (namespace, place) = (namespace.to_owned(), place.to_owned());
        Self { client, names: Names::default(), namespace, place, seen: Seen::default() }
    }

    /// Sends a request and returns the answer in its canonical form.
    ///
    /// # Errors
    /// Returns an error if the server does not answer.
    pub(super) async fn call(&mut self, call: &Call) -> Result<Value, String> {
        let answer = self.send(call).await?;
        Ok(self.comparable(&answer))
    }

    /// Sends a request, and records the values in the answer.
    ///
    /// # Errors
    /// Returns an error if the server does not answer.
    pub(super) async fn send(&mut self, call: &Call) -> Result<ServerAnswer, String> {
        let bytes = match self.filled(&call.body) {
            Value::Null => Vec::new(),
            Value::String(text) => text.into_bytes(),
            body => body.to_string().into_bytes(),
        };
        let query: Vec<(&str, String)> = call.query.iter().map(|(name, value)| (*name, self.text(value))).collect();
        let request = Request::builder()
            .method(call.verb.method())
            .uri(self.uri(&call.path(), &query))
            .header(header::CONTENT_TYPE, call.verb.content_type())
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, "stowage-conformance/1")
            .body(Body::from(bytes))
            .map_err(|error| error.to_string())?;
        let response = self.client.send(request).await.map_err(|error| error.to_string())?;
        let (head, body) = response.into_parts();
        let text = |value: &header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let bytes = body.collect_bytes().await.map_err(|error| error.to_string())?;
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
        self.seen.note(&body, call);
        Ok(ServerAnswer {
            code: head.status.as_u16(),
            content_type: head.headers.get(header::CONTENT_TYPE).map(text).unwrap_or_default(),
            warnings: head.headers.get_all(header::WARNING).iter().map(text).collect(),
            body,
        })
    }

    /// Returns an answer in its canonical form.
    pub(super) fn comparable(&mut self, answer: &ServerAnswer) -> Value {
        let mut whole = json!({
            "code": answer.code,
            "contentType": answer.content_type,
            "warnings": answer.warnings,
            "body": answer.body,
        });
        in_order(&mut whole["body"]);
        self.names.canonical(&whole)
    }

    /// Returns the encoded path with its query parameters.
    pub(super) fn uri(&self, path: &str, query: &[(&str, String)]) -> String {
        let path = self.text(path);
        if query.is_empty() {
            return path;
        }
        let query = query.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
        format!("{path}?{}", query.collect::<Vec<_>>().join("&"))
    }

    /// Records an object that was not received as an answer.
    pub(super) fn note(&mut self, object: &Value, plural: &str) {
        self.seen.object(object, plural);
    }

    fn filled(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.filled(item)).collect(),
            Value::Object(fields) => {
                Value::Object(fields.iter().map(|(name, field)| (self.text(name), self.filled(field))).collect())
            }
            other => other.clone(),
        }
    }

    /// Returns a text with its placeholders filled in.
    pub(super) fn text(&self, text: &str) -> String {
        // The name in a placeholder can contain `$(place)` itself.
        let text = text.replace("$(place)", &self.place);
        let filled = PLACE.replace_all(&text, |place: &Captures<'_>| {
            let of = place.get(2).map_or("", |of| of.as_str());
            let versions = self.seen.versions.get(of);
            match &place[1] {
                "namespace" => self.namespace.clone(),
                "uid" => self.seen.uids.get(of).map_or(NO_UID, String::as_str).to_owned(),
                "version" => versions.and_then(|all| all.last()).map_or("0", String::as_str).to_owned(),
                "first" => versions.and_then(|all| all.first()).map_or("0", String::as_str).to_owned(),
                "continue" => self.seen.token.clone(),
                _ => place[0].to_owned(),
            }
        });
        filled.into_owned()
    }
}

impl Seen {
    /// Records the values in an answer.
    fn note(&mut self, body: &Value, call: &Call) {
        let Some(items) = body["items"].as_array() else { return self.object(body, call.kind.plural()) };
        for item in items {
            self.object(item, call.kind.plural());
        }
        self.token = body["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    }

    fn object(&mut self, object: &Value, plural: &str) {
        let text = |name: &str| object["metadata"][name].as_str();
        let (Some(name), Some(uid), Some(version)) = (text("name"), text("uid"), text("resourceVersion")) else {
            return;
        };
        let key = format!("{plural}/{name}");
        self.uids.insert(key.clone(), uid.to_owned());
        let versions = self.versions.entry(key).or_default();
        if versions.last().is_none_or(|last| last != version) {
            versions.push(version.to_owned());
        }
    }
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}
