//! Signature Version 4, compared with published examples and other implementations.

mod botocore;
mod differential;
mod vectors;

use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use stowage_api::SecretKey;
use stowage_gateway::refusal::Refusal;
use stowage_gateway::sigv4::{Claim, Raw, SigningSecret, Verified, claim, verify};
use stowage_gateway::uri::{Pair, decode_path, parse_query};

/// A head, parsed as by the gateway.
struct Head {
    method: String,
    path: Vec<u8>,
    query: Vec<Pair>,
    headers: HeaderMap,
}

impl Head {
    fn read<N: AsRef<[u8]>, V: AsRef<[u8]>>(method: &str, target: &str, headers: &[(N, V)]) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let header = |(name, value): &(N, V)| {
            let name = HeaderName::from_bytes(name.as_ref()).expect("a name");
            (name, HeaderValue::from_bytes(value.as_ref()).expect("a value"))
        };
        let mut all = HeaderMap::new();
        for (name, value) in headers.iter().map(header) {
            all.append(name, value);
        }
        let path = decode_path(path).expect("a path");
        Self { method: method.to_owned(), path, query: parse_query(query).expect("a query"), headers: all }
    }

    fn raw(&self) -> Raw<'_> {
        Raw { method: &self.method, path: &self.path, query: &self.query, headers: &self.headers }
    }

    fn claim(&self) -> Claim {
        claim(&self.raw()).expect("the claim can be read").expect("there is one")
    }

    /// Verifies the head at the time of its signature.
    fn verify(&self, payload: &str, secret: &str, region: &str) -> Result<Verified, Refusal> {
        let claim = self.claim();
        verify(&self.raw(), &claim, payload, &SigningSecret::new(&SecretKey::new(secret.into())), region, claim.time)
    }
}

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}
