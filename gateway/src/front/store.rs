//! Forwarding: sends the parsed request to the store, and returns its response.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body::Body as _;
use jiff::Timestamp;
use stowage_api::BucketName;
use tokio::time::Instant;

use super::answers::unavailable;
use super::authentication::Known;
use super::quota::fate_of;
use super::record::{self, Record};
use super::shared::Shared;
use super::{answers, source};
use crate::answer::Unhappy;
use crate::body::pace::{Floor, paced_above};
use crate::body::{Body, ChunkSignatures, Outgoing, Trailers, nothing, outgoing, rechecked, rechecked_upload};
use crate::head::Ask;
use crate::metrics::Trouble;
use crate::quota::Fate;
use crate::refusal::{Code, Refusal};
use crate::registry::Backend;
use crate::sigv4::{self, HASH_OF_NOTHING};
use crate::upstream::{Call, CallError, Client, NotNow, Tenant};

/// A request to be forwarded.
pub(super) struct Passed {
    pub(super) ask: Ask,
    pub(super) backend: Arc<Backend>,
    pub(super) body: Body,
    pub(super) now: Timestamp,
    /// The URL by which the client addressed the object.
    pub(super) location: String,
}

/// An extension of a response for the connection: the minimum speed at which the client has to read
/// it while it occupies a call to the store.
#[derive(Clone)]
pub(crate) struct Reading(pub(crate) Arc<dyn Floor>);

impl Shared {
    /// Forwards a request, and returns the store's response.
    pub(super) async fn pass(
        self: &Arc<Self>,
        passed: Passed,
        known: Known,
        record: &mut Record,
    ) -> Result<Response<Body>, Unhappy> {
        let Passed { mut ask, backend, body, now, location } = passed;
        let client = self.client(&backend)?;
        let tenant = self.tenant(&known, &ask);
        let admitted = client.admit(tenant, Instant::now()).map_err(|why| self.not_now(&backend, why))?;
        let metered = self.metered(&ask, &backend, &known)?;
        let store = (&*client, &admitted);
        let copied = source::look(&mut ask, known.is_access(), metered.is_some(), store, now).await?;
        let mut room = self.reserve(metered.as_ref(), &ask, copied, now).await?;
        let ask = Arc::new(ask);
        let recheck = || self.recheck(&known, &ask, &backend.name);
        let signatures: Option<Box<dyn ChunkSignatures>> = match &known {
            Known::Key(_, verified) => Some(Box::new(verified.chain())),
            Known::Form(_) | Known::Nobody => None,
        };
        let floor = client.floor();
        let out = outgoing(paced_above(body, floor.clone()), ask.payload, Trailers::Understood, signatures).await?;
        let out = if has_body(&ask) { rechecked_upload(out, recheck()).await? } else { out };
        let failure = out.failure.clone();
        let began = Instant::now();
        let call = call(&ask, out)?;
        let mut fate = |fate| room.iter_mut().for_each(|room| room.is(fate));
        // Stays unknown if the client disconnects meanwhile.
        fate(Fate::Unknown);
        let answer = client.ask(call, &admitted, now).await;
        let content = if has_body(&ask) { ask.payload.length() } else { 0 };
        fate(fate_of(answer.as_ref().ok().map(Response::status), failure.passed(), content));
        self.metrics.bytes(failure.passed(), 0);
        if let Some(refusal) = failure.reason() {
            // The body was not the signed one, so the store's response to it is irrelevant.
            return Err(refusal.into());
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Err(self.unanswered(&backend, &error).into()),
        };
        if answer.status().is_success() && ask.operation.stores_body() && failure.passed() != ask.payload.length() {
            // The store can't have stored bytes that it didn't get, and a body that wasn't sent to
            // its end isn't verified.
            self.metrics.trouble(&backend.name, Trouble::NotS3);
            return Err(unavailable().into());
        }
        self.note_removal(metered.as_ref(), ask.operation, answer.status());
        self.metrics.store_answered(&backend.name, began.elapsed());
        let words = answers::words(location, &ask, record.id(), client.key_id());
        let heard = answers::Heard { backend: &backend.name, region: &self.config.region, metrics: &self.metrics };
        let mut answer = answers::from_store(answer, &ask, words, &heard).await?;
        answer.extensions_mut().insert(Reading(floor));
        if !answer.body().is_end_stream() {
            answer = answer.map(|body| rechecked(body, recheck()));
        }
        Ok(record::holding(answer, record::Held::new(admitted)))
    }

    /// Returns the tenant whose share of calls a request counts for.
    pub(super) fn tenant(&self, known: &Known, ask: &Ask) -> Tenant {
        self.registry.ask(|tables| match known {
            Known::Key(key, _) | Known::Form(key) => match tables.namespace_of(key) {
                Some(namespace) => Tenant::Namespace(namespace.to_owned()),
                None => Tenant::Holder(key.holder_uid().to_owned()),
            },
            Known::Nobody => {
                let bucket = ask.target.bucket().map_or("", BucketName::as_str);
                let namespace = tables.binding(bucket).and_then(|binding| tables.namespace_of_binding(binding));
                Tenant::Public(namespace.unwrap_or(bucket).to_owned())
            }
        })
    }

    pub(super) fn client(&self, backend: &Backend) -> Result<Arc<Client>, Refusal> {
        let is_there = |name: &str| {
            let there = self.registry.backend(name).is_some();
            if !there {
                self.metrics.forget(name);
            }
            there
        };
        self.clients.get(backend, is_there).map_err(|why| {
            tracing::debug!(backend = backend.name, %why, "a backend can't be asked");
            self.metrics.trouble(&backend.name, Trouble::NotSetUp);
            unavailable()
        })
    }

    fn not_now(&self, backend: &Backend, why: NotNow) -> Refusal {
        let (trouble, message) = match why {
            NotNow::Busy => {
                (Some(Trouble::Busy), "The store behind this bucket is busy. Please reduce your request rate.")
            }
            NotNow::Share => {
                (None, "Your namespace has its share of the requests to this store. Please reduce your request rate.")
            }
            NotNow::Resting => (Some(Trouble::Resting), "The store behind this bucket can't be reached now."),
        };
        if let Some(trouble) = trouble {
            self.metrics.trouble(&backend.name, trouble);
        }
        Refusal::new(Code::SlowDown, message)
    }

    fn unanswered(&self, backend: &Backend, error: &CallError) -> Refusal {
        let trouble = match error {
            CallError::Late => Trouble::Late,
            CallError::Unreached(_) | CallError::Broken(_) | CallError::Unwritable(_) => Trouble::Unreachable,
        };
        tracing::warn!(backend = backend.name, %error, "a store gave no answer");
        self.metrics.trouble(&backend.name, trouble);
        unavailable()
    }
}

impl ChunkSignatures for sigv4::Chain {
    fn check_chunk(&mut self, sha256: &[u8; 32], signature: &str) -> bool {
        Self::check_chunk(self, sha256, signature)
    }

    fn check_trailer(&mut self, sha256: &[u8; 32], signature: &str) -> bool {
        Self::check_trailer(self, sha256, signature)
    }
}

/// Returns true if the request to the store has a body.
fn has_body(ask: &Ask) -> bool {
    ask.operation.stores_body() || ask.operation.longest_document().is_some()
}

/// Builds the call to the store, only from what was parsed.
fn call(ask: &Ask, out: Outgoing) -> Result<Call, Refusal> {
    let mut headers: HeaderMap = ask.headers.clone();
    let unwritable = |_| Refusal::new(Code::InvalidRequest, "A header can't be written.");
    let mut set = |name: &'static str, value: &str| -> Result<(), Refusal> {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).map_err(unwritable)?);
        Ok(())
    };
    if let Some(source) = &ask.copy {
        set("x-amz-copy-source", &source.header())?;
    }
    if let Some(decoded) = out.decoded_length {
        set("x-amz-decoded-content-length", &decoded.to_string())?;
    }
    if let Some(trailer) = out.trailer {
        set("x-amz-trailer", trailer)?;
    }
    let has_body = has_body(ask);
    Ok(Call {
        method: ask.method(),
        target: ask.target.clone(),
        query: ask.query.clone(),
        headers,
        payload: if has_body { out.payload.into_owned() } else { HASH_OF_NOTHING.to_owned() },
        length: has_body.then_some(out.length),
        body: if has_body { out.body } else { nothing() },
        is_long: ask.operation.is_long(),
    })
}
