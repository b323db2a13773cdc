//! One client for each backend, made anew when anything changes that it is made of.

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
    /// Most calls that each store has at once.
    calls: usize,
    made: Mutex<BTreeMap<String, Made>>,
}

/// What was made of a backend, or why nothing could be.
#[derive(Clone)]
struct Made {
    revision: u64,
    client: Result<Arc<Client>, Arc<str>>,
}

/// What asks one store.
pub struct Client {
    backend: String,
    place: Place,
    signer: Signer,
    key_id: String,
    transport: Transport,
    calls: Arc<Shares>,
    circuit: Mutex<Circuit>,
}

/// Leave to make a call, as long as it is held.
#[derive(Debug)]
pub struct Admitted {
    leave: Leave,
    _share: Share,
}

/// Why a call may not be made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// The store has as many as it may.
    Busy,
    /// The tenant has its share of them.
    Share,
    /// Nobody could reach it of late.
    Resting,
}

impl Clients {
    /// None yet.
    pub fn new(connect: Box<dyn Connect>, calls: usize) -> Self {
        Self { connect, calls, made: Mutex::default() }
    }

    /// The client of a backend as it is now. `is_there` says which backends there are: with a
    /// change of one the clients of those that are gone go.
    ///
    /// # Errors
    /// A sentence for the log: why it can't be asked. It holds nothing of a Secret.
    pub fn get(&self, backend: &Backend, is_there: impl Fn(&str) -> bool) -> Result<Arc<Client>, Arc<str>> {
        let known = self.made.lock().get(&backend.name).cloned();
        if let Some(made) = known.as_ref().filter(|made| made.revision >= backend.revision) {
            return made.client.clone();
        }
        // Without the lock: a bundle is parsed, or the system's authorities are read.
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

    /// Which stores there are clients of, and whether they are left alone.
    #[must_use]
    pub fn resting(&self) -> Vec<(String, bool)> {
        let made = self.made.lock();
        let is_open = |made: &Made| made.client.as_ref().is_ok_and(|client| client.circuit.lock().is_open());
        made.iter().map(|(name, made)| (name.clone(), is_open(made))).collect()
    }

    /// `calls` are those of the client before: what is under way counts.
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
    /// Leave to make a call for a tenant.
    ///
    /// # Errors
    /// Where the store has as many as it may, or the tenant its share, or it is left alone.
    pub fn admit(&self, tenant: Tenant, now: Instant) -> Result<Admitted, NotNow> {
        // The place first: a trial is not used up by who finds none.
        let share = self.calls.take(tenant, 1).map_err(|full| match full {
            Full::All => NotNow::Busy,
            Full::Share => NotNow::Share,
        })?;
        let leave = self.circuit.lock().admit(now).ok_or(NotNow::Resting)?;
        Ok(Admitted { leave, _share: share })
    }

    /// The speed that bodies have to keep up, by how many calls are free.
    #[must_use]
    pub fn floor(&self) -> Arc<dyn Floor> {
        self.calls.clone()
    }

    /// Asks the store.
    ///
    /// # Errors
    /// When there is no answer.
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

    /// The id of the key that the store knows us by: no answer may show it.
    #[must_use]
    pub fn key_id(&self) -> &str {
        &self.key_id
    }
}
