//! Authentication: verifies a request's signature and finds its key.

use std::sync::Arc;

use jiff::Timestamp;

use super::shared::Shared;
use crate::decide::Caller;
use crate::head::Sent;
use crate::refusal::{Code, Refusal};
use crate::registry::{Holder, Key};
use crate::sigv4::{self, Claim, How, Raw, Verified};

/// The authenticated sender of a request.
pub(super) enum Known {
    /// The holder of this key, who signed the request.
    Key(Arc<Key>, Box<Verified>),
    /// The holder of this key, who signed the policy of a form.
    Form(Arc<Key>),
    /// Anonymous.
    Nobody,
}

impl Known {
    pub(super) fn caller(&self) -> Caller<'_> {
        match self {
            Self::Key(key, _) | Self::Form(key) => Caller::Key(key),
            Self::Nobody => Caller::Nobody,
        }
    }

    /// Returns true for a key of an access, which may be limited to present objects.
    pub(super) fn is_access(&self) -> bool {
        match self {
            Self::Key(key, _) | Self::Form(key) => matches!(key.holder, Holder::Access(_)),
            Self::Nobody => false,
        }
    }
}

impl Shared {
    /// Verifies a request's signature. Returns the sender, the kind of signature, and the value of
    /// `x-amz-content-sha256`.
    pub(super) async fn know(&self, sent: &Sent, now: Timestamp) -> Result<(Known, Option<How>, String), Refusal> {
        let raw = Raw { method: sent.method.as_str(), path: &sent.path, query: &sent.query, headers: &sent.headers };
        let Some(claim) = sigv4::claim(&raw)? else {
            return Ok((Known::Nobody, None, "UNSIGNED-PAYLOAD".to_owned()));
        };
        let word = self.word(sent, &claim)?;
        let (region, dated) = (&self.config.region, (self.clock_of_clients)());
        let Some(key) = self.key(&claim.access_key_id, now).await else {
            return Err(sigv4::refuse_unknown(&raw, &claim, word, region, dated));
        };
        let verify = |word| sigv4::verify(&raw, &claim, word, &key.signing, region, dated);
        let verified = match (verify(word), claim.how) {
            // Some clients pin a hash in a presigned URL but sign `UNSIGNED-PAYLOAD`.
            (Err(refusal), How::Query { .. }) if refusal.code == Code::SignatureDoesNotMatch => {
                verify("UNSIGNED-PAYLOAD").map_err(|_| refusal)?
            }
            (verified, _) => verified?,
        };
        Ok((Known::Key(key, Box::new(verified)), Some(claim.how), word.to_owned()))
    }

    /// Finds the key with this id. A claim's key that no watch has delivered yet is read from the
    /// API server. An expired key counts as unknown.
    pub(super) async fn key(&self, id: &str, now: Timestamp) -> Option<Arc<Key>> {
        let key = match self.registry.key(id) {
            Some(key) => Some(key),
            None => self.live.key(id).await,
        };
        key.filter(|key| !key.is_expired(now))
    }

    fn word<'a>(&self, sent: &'a Sent, claim: &Claim) -> Result<&'a str, Refusal> {
        let by_query = matches!(claim.how, How::Query { .. });
        match sent.payload_word(by_query)? {
            Some(word) => Ok(word),
            None if by_query => Ok("UNSIGNED-PAYLOAD"),
            None => {
                let message = "Missing required header for this request: x-amz-content-sha256";
                Err(Refusal::new(Code::MissingSecurityHeader, message))
            }
        }
    }
}
