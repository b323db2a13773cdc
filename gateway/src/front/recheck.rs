//! Repeated authorisation of a request while its body, or the response's, is streamed.

use std::sync::Arc;

use futures::FutureExt as _;
use tokio::time::Instant;

use super::answers::unavailable;
use super::authentication::Known;
use super::shared::Shared;
use crate::body::Recheck;
use crate::decide::{Caller, Verdict, Wanted, decide, unknown_key};
use crate::head::Ask;
use crate::refusal::Refusal;

impl Shared {
    /// Returns a check that a request forwarded to this backend is still allowed.
    pub(super) fn recheck(self: &Arc<Self>, known: &Known, ask: &Arc<Ask>, backend: &str) -> Recheck {
        let key_id: Option<Arc<str>> = match known {
            Known::Key(key, _) | Known::Form(key) => Some(key.id().into()),
            Known::Nobody => None,
        };
        let (shared, ask, backend): (_, _, Arc<str>) = (self.clone(), ask.clone(), backend.into());
        Box::new(move || {
            let (shared, ask, key_id, backend) = (shared.clone(), ask.clone(), key_id.clone(), backend.clone());
            async move { shared.is_allowed_still(key_id.as_deref(), &ask, &backend).await }.boxed()
        })
    }

    async fn is_allowed_still(&self, key_id: Option<&str>, ask: &Ask, backend: &str) -> Result<(), Refusal> {
        self.fit(Instant::now()).map_err(|_| unavailable())?;
        let now = (self.clock)();
        let key = match key_id {
            Some(id) => Some(self.key(id, now).await.ok_or_else(unknown_key)?),
            None => None,
        };
        let caller = key.as_deref().map_or(Caller::Nobody, Caller::Key);
        match self.registry.ask(|tables| decide(caller, &Wanted::of(ask), tables, now))? {
            Verdict::Forward(found) if found.name == backend => Ok(()),
            // The keys of its document were authorised when the document had arrived.
            Verdict::ReadDeletion => Ok(()),
            _ => Err(unavailable()),
        }
    }
}
