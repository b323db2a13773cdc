//! The steps of a request, in order.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{Method, Response};
use tokio::time::Instant;

use super::authentication::Known;
use super::peer::Peer;
use super::record::Record;
use super::shared::Shared;
use super::store::Passed;
use super::{answers, record, upload};
use crate::answer::Unhappy;
use crate::body::{Body, nothing};
use crate::cors;
use crate::decide::{Verdict, Wanted, decide};
use crate::head::Sent;
use crate::refusal::{Code, Refusal};
use crate::registry::Tables;
use crate::sigv4::How;

/// Maximum length of a head: the request target and all headers, in bytes.
const LONGEST_HEAD: usize = 32 << 10;

impl Shared {
    /// Returns the age of the cached cluster state, or the reason why it can't be used.
    pub(super) fn fit(&self, now: Instant) -> Result<Duration, String> {
        match self.registry.age(now).filter(|_| self.registry.is_ready()) {
            None => Err("the first view of the cluster is not whole yet".to_owned()),
            Some(age) if age > self.config.max_staleness => {
                Err(format!("the API server was not heard of for {} s", age.as_secs()))
            }
            Some(age) => Ok(age),
        }
    }

    pub(super) async fn answer(
        self: &Arc<Self>,
        parts: Parts,
        body: Body,
        peer: &Peer,
        record: &mut Record,
    ) -> Result<Response<Body>, Unhappy> {
        check_size(&parts)?;
        self.fit(Instant::now()).map_err(|_| {
            Refusal::new(Code::ServiceUnavailable, "The gateway doesn't know its credentials now. Please try again.")
        })?;
        if parts.method == Method::OPTIONS {
            record.asks_for_leave();
            return self.preflight(&parts);
        }
        let now = (self.clock)();
        let location = answers::location_of(&parts, peer);
        let sent = Sent::read(parts, &self.config.domains)?;
        if let Some(boundary) = upload::boundary(&sent)? {
            return self.upload(sent, (boundary, body), peer, (now, location), record).await;
        }
        let (known, how, word) = self.know(&sent, now).await?;
        if let Known::Key(key, _) = &known {
            record.signed_by(key, if matches!(how, Some(How::Header)) { "AuthHeader" } else { "QueryString" });
        }
        let ask = sent.ask(matches!(how, Some(How::Query { .. })), &word)?;
        record.asks(&ask);
        let verdict = self.registry.ask(|tables| decide(known.caller(), &Wanted::of(&ask), tables, now))?;
        match verdict {
            Verdict::TellBuckets(buckets) => Ok(answers::buckets(&buckets, &ask)),
            Verdict::TellConfiguration => Ok(answers::configuration(ask.operation)?),
            Verdict::TellRegion => Ok(answers::region(&self.config.region)),
            Verdict::Forward(backend) => {
                record.forwarded(&backend.name);
                let held = self.admit(&known, &ask, peer)?;
                let passed = Passed { ask, backend, body, now, location };
                let passed = self.with_document(passed, &known).await?;
                let answer = self.carry_out(passed, known, record).await?;
                Ok(record::holding(answer, held))
            }
            Verdict::ReadDeletion => {
                let held = self.admit(&known, &ask, peer)?;
                let (passed, aside, _room) = self.read_deletion(ask, body, &known, location, record).await?;
                record.forwarded(&passed.backend.name);
                let answer = self.carry_out_deletion(passed, aside, known, record).await?;
                Ok(record::holding(answer, held))
            }
        }
    }

    /// Answers a CORS preflight. It carries no signature.
    fn preflight(&self, parts: &Parts) -> Result<Response<Body>, Unhappy> {
        let rules = |tables: &Tables| cors::preflight(tables.rules(), &parts.headers);
        let mut answer = Response::new(nothing());
        *answer.headers_mut() = self.registry.ask(rules)?;
        Ok(answer)
    }

    /// Adds the CORS headers to a response: by the rule of the backend that the request was
    /// forwarded to, or by any backend's rule if it was not forwarded.
    pub(super) fn mark(&self, asked: &cors::Asked, backend: Option<&str>, answer: &mut Response<Body>) {
        let headers = answer.headers_mut();
        self.registry.ask(|tables| match backend {
            Some(name) => cors::mark(tables.backend(name).and_then(|backend| backend.cors.as_ref()), asked, headers),
            None => cors::mark(tables.rules(), asked, headers),
        });
    }
}

fn check_size(parts: &Parts) -> Result<(), Refusal> {
    let line = parts.uri.path_and_query().map_or(0, |target| target.as_str().len());
    let headers: usize = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if line + headers > LONGEST_HEAD {
        let message = "Your request header section exceeds the maximum allowed size of 32768 bytes.";
        return Err(Refusal::new(Code::RequestHeaderSectionTooLarge, message));
    }
    Ok(())
}
