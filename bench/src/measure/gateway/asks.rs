//! Requests of tenants, signed in advance.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use stowage_gateway::sigv4::{Outgoing, Signer};
use stowage_operator::api::SecretKey;
use stowage_testbed::simulated::REGION;
use stowage_testbed::store::Key;

use super::chunks;
use super::hash::{OF_NOTHING, sha256};
use super::load::{Answer, Ask, Body, Expect};
use super::pattern;

/// Size of a small object, in bytes.
const SMALL: u64 = 1024;
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// A tenant's key and bucket.
#[derive(Clone)]
pub(super) struct Tenant {
    pub(super) key: Key,
    pub(super) bucket: String,
}

/// Host and time of requests.
pub(super) struct Asking<'a> {
    pub(super) host: &'a str,
    pub(super) now: Timestamp,
}

/// A request before it is signed.
struct Raw<'a> {
    method: &'a str,
    path: String,
    payload: String,
    length: Option<u64>,
    headers: &'a [(&'static str, String)],
}

impl Asking<'_> {
    /// Returns a ListBuckets request of this tenant.
    pub(super) fn buckets(&self, tenant: &Tenant) -> Result<Ask> {
        let head = self.signed(&tenant.key, &get("/".to_owned()))?;
        let expected = format!("<Name>{}</Name>", tenant.bucket);
        Ok(Ask { head, body: none(), expect: Expect { status: 200, body: Answer::With(expected) } })
    }

    /// Returns a GET request that is signed with a wrong key.
    pub(super) fn badly_signed(&self, tenant: &Tenant) -> Result<Ask> {
        let key = Key { id: tenant.key.id.clone(), secret: "guessed".to_owned() };
        let head = self.signed(&key, &get(object(tenant, "get", SMALL)))?;
        Ok(Ask { head, body: none(), expect: refused("SignatureDoesNotMatch") })
    }

    /// Returns a GET request for an object in the bucket of another tenant.
    pub(super) fn of_another(&self, tenant: &Tenant, another: &Tenant) -> Result<Ask> {
        let head = self.signed(&tenant.key, &get(object(another, "get", SMALL)))?;
        Ok(Ask { head, body: none(), expect: refused("AccessDenied") })
    }

    /// Returns a HEAD request for a small object.
    pub(super) fn head(&self, tenant: &Tenant) -> Result<Ask> {
        let raw = Raw { method: "HEAD", ..get(object(tenant, "get", SMALL)) };
        let expect = Expect { status: 200, body: Answer::Told(SMALL) };
        Ok(Ask { head: self.signed(&tenant.key, &raw)?, body: none(), expect })
    }

    /// Returns a GET request for an object of this length.
    pub(super) fn get(&self, tenant: &Tenant, length: u64) -> Result<Ask> {
        let head = self.signed(&tenant.key, &get(object(tenant, "get", length)))?;
        Ok(Ask { head, body: none(), expect: Expect { status: 200, body: Answer::Pattern(length) } })
    }

    /// Returns PUT requests for the objects that are read from a real store.
    pub(super) fn objects(&self, tenant: &Tenant) -> Result<Vec<Ask>> {
        [SMALL, 1 << 20]
            .map(|length| {
                let raw = Raw {
                    method: "PUT",
                    payload: UNSIGNED.to_owned(),
                    length: Some(length),
                    ..get(object(tenant, "get", length))
                };
                Ok(Ask { head: self.signed(&tenant.key, &raw)?, body: Body::Pattern(length), expect: stored() })
            })
            .into_iter()
            .collect()
    }

    /// Returns a GET request for a small object.
    pub(super) fn get_small(&self, tenant: &Tenant) -> Result<Ask> {
        self.get(tenant, SMALL)
    }

    /// Returns a PUT request of 1 KiB with its hash in the head.
    pub(super) fn put_small(&self, tenant: &Tenant) -> Result<Ask> {
        let body = Bytes::from_static(pattern::piece(0, SMALL));
        let payload = hex::encode(sha256(&body));
        let raw = Raw { method: "PUT", payload, length: Some(SMALL), ..get(object(tenant, "put", SMALL)) };
        Ok(Ask { head: self.signed(&tenant.key, &raw)?, body: Body::Bytes(body), expect: stored() })
    }

    /// Returns a PUT request for an object of this length, without a hash of the body.
    pub(super) fn put(&self, tenant: &Tenant, length: u64) -> Result<Ask> {
        let path = object(tenant, "put", length);
        let raw = Raw { method: "PUT", payload: UNSIGNED.to_owned(), length: Some(length), ..get(path) };
        Ok(Ask { head: self.signed(&tenant.key, &raw)?, body: Body::Pattern(length), expect: stored() })
    }

    /// Returns a PUT request for an object of this length in signed chunks, all of which are
    /// prepared in advance.
    pub(super) fn put_chunks(&self, tenant: &Tenant, length: u64) -> Result<Ask> {
        let (body, encoded) = (chunks::Chain::new(&tenant.key, self.now), chunks::encoded(length));
        let headers = [("x-amz-decoded-content-length", length.to_string())];
        let path = object(tenant, "put", length);
        let raw = Raw {
            method: "PUT",
            payload: "STREAMING-AWS4-HMAC-SHA256-PAYLOAD".to_owned(),
            length: Some(encoded),
            headers: &headers,
            ..get(path)
        };
        let head = self.signed(&tenant.key, &raw)?;
        let body = body.of(&head, length)?;
        Ok(Ask { head, body: Body::Bytes(body), expect: stored() })
    }

    fn signed(&self, key: &Key, raw: &Raw<'_>) -> Result<Bytes> {
        let mut headers = HeaderMap::new();
        for (name, value) in raw.headers {
            let value = HeaderValue::from_str(value).context("a header that can't be written")?;
            headers.insert(HeaderName::from_static(name), value);
        }
        let signer = Signer::new(key.id.clone(), &SecretKey::new(key.secret.clone()), REGION.to_owned());
        let outgoing = Outgoing {
            method: raw.method,
            host: self.host,
            path: raw.path.as_bytes(),
            query: &[],
            payload: &raw.payload,
        };
        signer.sign(&outgoing, &mut headers, self.now).context("a request can't be signed")?;
        let mut head = format!("{} {} HTTP/1.1\r\n", raw.method, raw.path).into_bytes();
        // Like SDKs: a user agent of realistic length, and an `Accept` header.
        head.extend_from_slice(b"user-agent: stowage-e2e/0 md/bench lang/rust cfg/retry-mode#none\r\naccept: */*\r\n");
        for (name, value) in &headers {
            head.extend_from_slice(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        if let Some(length) = raw.length {
            head.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        Ok(head.into())
    }
}

fn get(path: String) -> Raw<'static> {
    Raw { method: "GET", path, payload: OF_NOTHING.to_owned(), length: None, headers: &[] }
}

/// Returns the path of an object with its length in the key.
fn object(tenant: &Tenant, verb: &str, length: u64) -> String {
    format!("/{}/measured/{verb}-{length}", tenant.bucket)
}

fn none() -> Body {
    Body::Bytes(Bytes::new())
}

fn refused(code: &str) -> Expect {
    Expect { status: 403, body: Answer::With(format!("<Code>{code}</Code>")) }
}

fn stored() -> Expect {
    Expect { status: 200, body: Answer::Pattern(0) }
}
