//! Who a request is from: its signature, and the key that it is by.

use std::sync::Arc;

use jiff::Timestamp;

use super::shared::Shared;
use crate::decide::Caller;
use crate::head::Sent;
use crate::refusal::{Code, Refusal};
use crate::registry::{Holder, Key};
use crate::sigv4::{self, Claim, How, Raw, Verified};

/// Who a request is from.
pub(super) enum Known {
    /// Who holds this key.
    Key(Arc<Key>, Box<Verified>),
    /// Who signed the policy of a form with this key.
    Form(Arc<Key>),
    /// Nobody known.
    Nobody,
}

impl Known {
    pub(super) fn caller(&self) -> Caller<'_> {
        match self {
            Self::Key(key, _) | Self::Form(key) => Caller::Key(key),
            Self::Nobody => Caller::Nobody,
        }
    }

    /// The key is one of an access, which may be for present objects alone.
    pub(super) fn is_access(&self) -> bool {
        match self {
            Self::Key(key, _) | Self::Form(key) => matches!(key.holder, Holder::Access(_)),
            Self::Nobody => false,
        }
    }
}

impl Shared {
    /// Who signed a request, and how, and what is said of its body.
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
            // Some pin a hash in a presigned URL and sign the word.
            (Err(refusal), How::Query { .. }) if refusal.code == Code::SignatureDoesNotMatch => {
                verify("UNSIGNED-PAYLOAD").map_err(|_| refusal)?
            }
            (verified, _) => verified?,
        };
        Ok((Known::Key(key, Box::new(verified)), Some(claim.how), word.to_owned()))
    }

    /// The key of this id; asked for where no watch has told of it. One whose time has come is as
    /// good as none.
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
