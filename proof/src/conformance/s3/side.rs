//! One of the two stores: the ids seen there, and how its answers are read.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Limited};
use md5::{Digest as _, Md5};
use regex::{Captures, Regex};
use s3s::Body as Wire;
use serde_json::Value;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

use super::call::{Body, Call, DIGEST, Listing};
use super::canonical::{Names, header_text};
use super::sign::{Keys, encoded};
use super::xml;

/// HTTP client for a store.
pub(super) type Transport = BoxCloneSyncService<Request<Wire>, Response<Wire>, BoxError>;

/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum size of an answer in bytes.
const LONGEST: usize = 64 * 1024 * 1024;
/// Maximum number of pages of a list. A list that never ends is also a difference.
const PAGES: usize = 12;

/// A store, and the values it returned in this sequence.
pub(super) struct Side {
    transport: Transport,
    authority: String,
    keys: Keys,
    place: String,
    names: Names,
    seen: Seen,
}

/// Values that operations can refer to, by bucket and key, the newest last.
#[derive(Default)]
struct Seen {
    versions: BTreeMap<String, Vec<String>>,
    uploads: BTreeMap<String, Vec<String>>,
}

/// Pattern of a placeholder: `$(version a/k 0)`, `$(upload a/k)`.
static PLACE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\$\((version|upload) ([^)]+?)(?: (\d+))?\)").expect("the pattern is well formed"));

/// Answer of a store before it is made comparable.
pub(super) struct StoreAnswer {
    pub(super) code: u16,
    pub(super) headers: HeaderMap,
    bytes: Bytes,
    /// Parsed body, if the body is a document.
    pub(super) document: Option<Value>,
}

impl Side {
    pub(super) fn new(transport: Transport, authority: &str, keys: &Keys, place: &str) -> Self {
        let (authority, place) = (authority.to_owned(), place.to_owned());
        Self { transport, authority, keys: keys.clone(), place, names: Names::default(), seen: Seen::default() }
    }

    /// Sends a request and returns the answer in its canonical form.
    ///
    /// # Errors
    /// Returns an error if the store does not answer.
    pub(super) async fn call(&mut self, call: &Call) -> Result<Value, String> {
        let answer = self.send(call).await?;
        Ok(self.comparable(call, &answer))
    }

    /// Requests a list until its end, each page with the marker of the page before.
    ///
    /// # Errors
    /// Returns an error if the store does not answer.
    pub(super) async fn pages(&mut self, listing: Listing, first: &Call) -> Result<Value, String> {
        let mut all = Vec::new();
        let mut call = first.clone();
        for _ in 0..PAGES {
            let answer = self.send(&call).await?;
            all.push(self.comparable(&call, &answer));
            let Some(next) = answer.document.as_ref().and_then(|document| next_page(listing, document)) else { break };
            call = first.clone();
            call.query.retain(|(name, _)| next.iter().all(|(known, _)| known != name));
            call.query.extend(next.into_iter().map(|(name, value)| (name, Some(value))));
        }
        Ok(all.into())
    }

    /// Sends a request, and records the values in the answer.
    ///
    /// # Errors
    /// Returns an error if the store does not answer.
    pub(super) async fn send(&mut self, call: &Call) -> Result<StoreAnswer, String> {
        let request = self.request(call)?.map(Wire::from);
        let answer = async {
            let (head, body) = self.transport.clone().oneshot(request).await?.into_parts();
            let bytes = Limited::new(body, LONGEST).collect().await?.to_bytes();
            Ok::<_, BoxError>((head, bytes))
        };
        let answer = tokio::time::timeout(PATIENCE, answer).await.map_err(|_| "no answer in a minute".to_owned())?;
        let (head, bytes) = answer.map_err(|error| format!("no answer: {error}"))?;
        let code = head.status.as_u16();
        let is_document = code >= 300 || !(call.is_object() && call.method == "GET");
        let document = if is_document && !bytes.is_empty() { Some(xml::read(&bytes)?) } else { None };
        let answer = StoreAnswer { code, headers: head.headers, bytes, document };
        self.seen.note(call, &answer);
        Ok(answer)
    }

    fn comparable(&mut self, call: &Call, answer: &StoreAnswer) -> Value {
        let mut document = answer.document.clone();
        if let Some(list) = document.as_mut().and_then(|it| it.get_mut("ListAllMyBucketsResult")?.as_object_mut()) {
            // A real store may have buckets of other users.
            let ours = |bucket: &&Value| bucket["Name"].as_str().is_some_and(|name| name.starts_with(&self.place));
            let all = list.remove("Buckets");
            let all = all.as_ref().and_then(|all| all["Bucket"].as_array()).into_iter().flatten();
            list.insert("Buckets".to_owned(), all.filter(ours).cloned().collect());
        }
        self.names.canonical(call, answer.code, &answer.headers, document.as_ref(), &answer.bytes)
    }

    fn request(&self, call: &Call) -> Result<Request<Bytes>, String> {
        let mut path = String::from("/");
        if let Some(bucket) = &call.bucket {
            path += &encoded(&self.text(bucket), "");
        }
        if let Some(key) = &call.key {
            path += &format!("/{}", encoded(key, "/"));
        }
        let pairs = call.query.iter().map(|(name, value)| match value {
            Some(value) => format!("{name}={}", encoded(&self.text(value), "")),
            None => format!("{name}="),
        });
        let query = pairs.collect::<Vec<_>>().join("&");
        if !query.is_empty() {
            path += &format!("?{query}");
        }
        let uri = Uri::builder().scheme("http").authority(self.authority.as_str()).path_and_query(path).build();
        let body = match &call.body {
            Body::Text(text) => Bytes::from(self.text(text)),
            Body::Filled(byte, length) => Bytes::from(vec![*byte; *length]),
        };
        let mut request = Request::new(body);
        *request.method_mut() = call.method.parse().map_err(|_| format!("no method: {}", call.method))?;
        *request.uri_mut() = uri.map_err(|error| error.to_string())?;
        let digest = STANDARD.encode(Md5::digest(request.body()));
        let headers = request.headers_mut();
        headers.insert(header::HOST, HeaderValue::from_str(&self.authority).map_err(|error| error.to_string())?);
        for (name, value) in &call.headers {
            let value =
                HeaderValue::from_str(&self.text(value).replace(DIGEST, &digest)).map_err(|error| error.to_string())?;
            headers.insert(HeaderName::from_static(name), value);
        }
        self.keys.sign(&mut request, call.signer)?;
        if matches!(call.method, "PUT" | "POST") {
            let length = request.body().len();
            request.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        }
        Ok(request)
    }

    /// Returns a text with its placeholders filled in.
    pub(super) fn text(&self, text: &str) -> String {
        let text = text.replace("$(place)", &self.place);
        let filled = PLACE.replace_all(&text, |place: &Captures<'_>| {
            let back = place.get(3).and_then(|back| back.as_str().parse().ok()).unwrap_or(0);
            let (known, none) = match &place[1] {
                "version" => (&self.seen.versions, "null"),
                _ => (&self.seen.uploads, "no-such-upload"),
            };
            let found = known.get(&place[2]).and_then(|all| all.iter().rev().nth(back));
            found.map_or_else(|| none.to_owned(), String::clone)
        });
        filled.into_owned()
    }
}

impl Seen {
    /// Records the values in an answer.
    fn note(&mut self, call: &Call, answer: &StoreAnswer) {
        let version = header_text(&answer.headers, &HeaderName::from_static("x-amz-version-id"));
        if call.key.is_some() && answer.code < 300 {
            push(&mut self.versions, call.object(), &version);
        }
        let Some(document) = &answer.document else { return };
        let upload = document["InitiateMultipartUploadResult"]["UploadId"].as_str();
        push(&mut self.uploads, call.object(), upload.unwrap_or_default());
        for deleted in document["DeleteResult"]["Deleted"].as_array().into_iter().flatten() {
            let marker = deleted["DeleteMarkerVersionId"].as_str().unwrap_or_default();
            let key = deleted["Key"].as_str().unwrap_or_default();
            push(&mut self.versions, format!("{}{key}", call.object()), marker);
        }
    }
}

fn push(all: &mut BTreeMap<String, Vec<String>>, of: String, id: &str) {
    // Stores do not always return the version id `null`.
    if id.is_empty() || id == "null" {
        return;
    }
    let known = all.entry(of).or_default();
    if !known.iter().any(|known| known == id) {
        known.push(id.to_owned());
    }
}

/// Returns the parameters of the next page, if there is one.
fn next_page(listing: Listing, document: &Value) -> Option<Vec<(&'static str, String)>> {
    let (root, markers): (_, &[(&'static str, &str)]) = match listing {
        Listing::Objects => ("ListBucketResult", &[("marker", "NextMarker")]),
        Listing::ObjectsV2 => ("ListBucketResult", &[("continuation-token", "NextContinuationToken")]),
        Listing::Versions => {
            ("ListVersionsResult", &[("key-marker", "NextKeyMarker"), ("version-id-marker", "NextVersionIdMarker")])
        }
        Listing::Uploads => (
            "ListMultipartUploadsResult",
            &[("key-marker", "NextKeyMarker"), ("upload-id-marker", "NextUploadIdMarker")],
        ),
        Listing::Parts => ("ListPartsResult", &[("part-number-marker", "NextPartNumberMarker")]),
    };
    let page = &document[root];
    if page["IsTruncated"] != "true" {
        return None;
    }
    let said = markers.iter().filter_map(|(name, field)| Some((*name, page[*field].as_str()?.to_owned())));
    let said: Vec<_> = said.collect();
    // Without a delimiter, ListObjects returns no marker: the client continues from the last key.
    let last = || Some(vec![("marker", page["Contents"].as_array()?.last()?["Key"].as_str()?.to_owned())]);
    if said.is_empty() && listing == Listing::Objects { last() } else { Some(said).filter(|said| !said.is_empty()) }
}
