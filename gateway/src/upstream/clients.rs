//! A client for each backend, created again when any of its inputs changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Response;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::call::{self, Call, CallError, Place};
use super::circuit::{Circuit, Leave};
use super::shares::{Full, Place as Share, Shares, Tenant};
use super::transport::{Connect, Transport};
use crate::body::Body;
use crate::body::pace::Floor;
use crate::registry::Backend;
use crate::sigv4::Signer;

/// The clients of all backends.
pub struct Clients {
    connect: Box<dyn Connect>,
    /// Maximum number of concurrent calls to each store.
    calls: usize,
    made: Mutex<BTreeMap<String, Made>>,
}

/// The client of a backend revision, or the reason why there is none.
#[derive(Clone)]
struct Made {
    revision: u64,
    client: Result<Arc<Client>, Arc<str>>,
}

/// A client of one store.
pub struct Client {
    backend: String,
    place: Place,
    signer: Signer,
    key_id: String,
    transport: Transport,
    calls: Arc<Shares>,
    circuit: Mutex<Circuit>,
}

/// Permission to make a call, valid until it is dropped.
#[derive(Debug)]
pub struct Admitted {
    leave: Leave,
    _share: Share,
}

/// The reason why a call is not permitted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// The store's maximum of calls is in progress.
    Busy,
    /// The tenant has used up its share of them.
    Share,
    /// The store could not be reached recently, so its circuit is open.
    Resting,
}

impl Clients {
    /// Creates an empty set of clients.
    pub fn new(connect: Box<dyn Connect>, calls: usize) -> Self {
        Self { connect, calls, made: Mutex::default() }
    }

    /// Returns the client of a backend in its current revision. `is_there` returns true for
    /// backends that exist: whenever a client is created, those of deleted backends are removed.
    ///
    /// # Errors
    /// Returns a sentence for the log with the reason why the store can't be called. It contains
    /// nothing of a Secret.
    pub fn get(&self, backend: &Backend, is_there: impl Fn(&str) -> bool) -> Result<Arc<Client>, Arc<str>> {
        let known = self.made.lock().get(&backend.name).cloned();
        if let Some(made) = known.as_ref().filter(|made| made.revision >= backend.revision) {
            return made.client.clone();
        }
        // Without the lock: this parses a bundle, or reads the system's certificate authorities.
        let calls = known.and_then(|made| made.client.ok()).map(|client| client.calls.clone());
        let client = self.make(backend, calls).map(Arc::new).map_err(Arc::from);
        let mut made = self.made.lock();
        made.retain(|name, _| is_there(name));
        let newer = made.get(&backend.name).filter(|made| made.revision >= backend.revision);
        if let Some(newer) = newer {
            return newer.client.clone();
        }
        made.insert(backend.name.clone(), Made { revision: backend.revision, client: client.clone() });
        client
    }

    /// Returns the names of all backends with a client, and true for those with an open circuit.
    #[must_use]
    pub fn resting(&self) -> Vec<(String, bool)> {
        let made = self.made.lock();
        let is_open = |made: &Made| made.client.as_ref().is_ok_and(|client| client.circuit.lock().is_open());
        made.iter().map(|(name, made)| (name.clone(), is_open(made))).collect()
    }

    /// Creates a client. `calls` are those of the previous client, so that calls in progress count.
    fn make(&self, backend: &Backend, calls: Option<Arc<Shares>>) -> Result<Client, String> {
        let access = backend.access.as_ref().map_err(ToString::to_string)?;
        let place = Place::of(&backend.endpoint, backend.addressing);
        let place = place.ok_or_else(|| "its endpoint has no host".to_owned())?;
        let transport = self.connect.connect(&access.trust).map_err(|error| error.to_string())?;
        Ok(Client {
            backend: backend.name.clone(),
            place,
            signer: Signer::new(access.key.id.clone(), &access.key.secret, backend.region.clone()),
            key_id: access.key.id.clone(),
            transport,
            calls: calls.unwrap_or_else(|| Arc::new(Shares::new(self.calls))),
            circuit: Mutex::default(),
        })
    }
}

impl Client {
    /// Permits one call for a tenant.
    ///
    /// # Errors
    /// Returns an error if the store's maximum or the tenant's share of calls is reached, or the
    /// circuit is open.
    pub fn admit(&self, tenant: Tenant, now: Instant) -> Result<Admitted, NotNow> {
        // The share comes first, so that a caller without one doesn't use up a trial.
        let share = self.calls.take(tenant, 1).map_err(|full| match full {
            Full::All => NotNow::Busy,
            Full::Share => NotNow::Share,
        })?;
        let leave = self.circuit.lock().admit(now).ok_or(NotNow::Resting)?;
        Ok(Admitted { leave, _share: share })
    }

    /// Returns the minimum speed of bodies, which depends on the number of free calls.
    #[must_use]
    pub fn floor(&self) -> Arc<dyn Floor> {
        self.calls.clone()
    }

    /// Sends a call to the store.
    ///
    /// # Errors
    /// Returns an error if there is no response.
    pub async fn ask(&self, call: Call, admitted: &Admitted, now: Timestamp) -> Result<Response<Body>, CallError> {
        let began = Instant::now();
        let answer = call::ask(&self.transport, &self.place, &self.signer, call, now).await;
        match &answer {
            Ok(_) if self.circuit.lock().answered(Instant::now()) => {
                tracing::info!(backend = self.backend, "a store answers again");
            }
            Err(error)
                if error.is_about_the_store() && self.circuit.lock().failed(admitted.leave, began, Instant::now()) =>
            {
                tracing::warn!(backend = self.backend, %error, "a store can't be reached, and is left alone");
            }
            Ok(_) | Err(_) => {}
        }
        answer
    }

    /// Returns the id of the gateway's key for the store. No response may show it.
    #[must_use]
    pub fn key_id(&self) -> &str {
        &self.key_id
    }
}
