//! The fault layer between real clients and real servers.
//!
//! One [`Proxy`] belongs to one operator. It serves the API server on one address and each store on another, and gives
//! all calls that pass one numbering, by the very layer that the simulator puts below the operator's clients. So a plan
//! and its numbers mean the same on both, as far as the operator makes the same calls in the same order.
//!
//! # What is different between real servers
//! - A crash can't end a process from here. From the call on that it is planned for nothing is carried out and nothing
//!   answered; [`Proxy::crash`] tells whoever can kill the process. Once that is done [`Proxy::next_life`] lets calls
//!   pass again. Of an answer that was let through right before a crash the process may see nothing; to the rest of the
//!   world that comes to the same.
//! - `unreachable` is a connection that breaks, not one that is refused: the address is the proxy's own.
//! - Faults that need a server's past or somebody's hands in cluster or store are refused by name, see [`Unplayable`].
//! - Stores have to be addressed in path style.

mod body;
mod control;
mod disturb;
mod upstream;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use body::Body;
pub use control::{Crash, EffectLine, router};
pub use disturb::Unplayable;
use disturb::{Disturbed, OnTheWay, check};
use http::{Request, Response};
use hyper::body::Incoming;
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};
pub use upstream::{Upstream, UpstreamError};

use super::server::Server;
use crate::effects::{EffectLayer, Effects, Instance, Plan};

/// The faults that one operator meets on its way to real servers. Clones are the same.
#[derive(Clone, Debug)]
pub struct Proxy {
    /// Shared with the proxies of operators that run beside this one.
    effects: Arc<Mutex<Effects>>,
    life: Arc<Mutex<Instance>>,
}

/// Which layer a call goes through.
#[derive(Clone, Copy, Debug)]
enum Api {
    Kube,
    S3,
}

impl Proxy {
    /// Faults by this plan, with a first life of the operator.
    ///
    /// # Errors
    /// When the plan has a fault that can't happen here.
    pub fn new(plan: Plan) -> Result<Self, Unplayable> {
        let effects = run(plan)?;
        let life = effects.instance();
        Ok(Self { effects: Arc::new(Mutex::new(effects)), life: Arc::new(Mutex::new(life)) })
    }

    /// The faults of one more operator, numbered together with those of this one; its lives are its own. A store that
    /// both reach at one address can't tell them apart: calls there count as those of the operator whose proxy serves it.
    #[must_use]
    pub fn beside(&self) -> Self {
        let life = lock(&self.effects).instance();
        Self { effects: self.effects.clone(), life: Arc::new(Mutex::new(life)) }
    }

    /// Serves an API server behind the faults.
    ///
    /// # Errors
    /// When the address can't be had.
    pub async fn serve_kube(&self, address: SocketAddr, upstream: Upstream) -> io::Result<Server> {
        Server::start(address, self.front(Api::Kube, upstream)).await
    }

    /// Serves a store behind the faults.
    ///
    /// # Errors
    /// When the address can't be had.
    pub async fn serve_s3(&self, address: SocketAddr, upstream: Upstream) -> io::Result<Server> {
        Server::start(address, self.front(Api::S3, upstream)).await
    }

    /// Begins anew: numbers count from one, nothing has been called yet, and the operator is in its first life. Of
    /// operators beside this one the next life has to be begun by hand.
    ///
    /// # Errors
    /// When the plan has a fault that can't happen here; then nothing changes.
    pub fn begin(&self, plan: Plan) -> Result<(), Unplayable> {
        let effects = run(plan)?;
        // The old life ends first: what it still asks for is to have no number in the new run.
        std::mem::replace(&mut *lock(&self.life), effects.instance()).kill();
        *lock(&self.effects) = effects;
        Ok(())
    }

    /// From now on, this is the plan: numbers go on from where they are, patterns count from one.
    ///
    /// # Errors
    /// When it has a fault that can't happen here; then nothing changes.
    pub fn set_plan(&self, plan: Plan) -> Result<(), Unplayable> {
        check(&plan)?;
        lock(&self.effects).set_plan(plan);
        Ok(())
    }

    /// Ends the operator's life, if it goes on still, and begins its next one; gives its number. To be called when its
    /// process is dead and before the next one starts.
    pub fn next_life(&self) -> u32 {
        let life = lock(&self.effects).instance();
        let id = life.id();
        std::mem::replace(&mut *lock(&self.life), life).kill();
        id
    }

    /// Ends the operator's life: from now on nothing of it is carried out and nothing answered, until
    /// [`Proxy::next_life`]. To be called when its process was killed and somebody else may start it again.
    pub fn end_life(&self) {
        lock(&self.life).kill();
    }

    /// The numbered effects: trace, counters, what of the plan is still to come. Of the run that is on now; what
    /// [`Proxy::begin`] begins has effects of its own.
    pub fn effects(&self) -> Effects {
        lock(&self.effects).clone()
    }

    /// Comes to an end when the life of the operator that goes on now has: by a crash that was planned, at that effect,
    /// or by [`Proxy::end_life`], [`Proxy::next_life`] or [`Proxy::begin`]. From then on nothing of that life is carried out, and its process
    /// is to be killed.
    pub async fn crash(&self) -> Crash {
        let life = lock(&self.life).clone();
        let effect = life.death().await;
        Crash { life: life.id(), effect }
    }

    /// What a server of this proxy does with a request.
    fn front(
        &self,
        api: Api,
        upstream: Upstream,
    ) -> impl Service<Request<Incoming>, Response = Response<Body>, Error = BoxError, Future: Send> + Clone + use<>
    {
        let proxy = self.clone();
        service_fn(move |request: Request<Incoming>| {
            let (proxy, upstream) = (proxy.clone(), upstream.clone());
            async move {
                let request = upstream.addressed(request.map(Body::new))?;
                proxy.layer(api).layer(Disturbed(upstream)).oneshot(request).await
            }
        })
    }

    /// The layer of the life that goes on now.
    fn layer(&self, api: Api) -> EffectLayer {
        let life = lock(&self.life).clone();
        let effects = lock(&self.effects);
        match api {
            Api::Kube => effects.kube_layer(&life),
            Api::S3 => effects.s3_layer(&life),
        }
    }
}

/// The effects of a run between real servers.
fn run(plan: Plan) -> Result<Effects, Unplayable> {
    check(&plan)?;
    Ok(Effects::within(plan, Arc::new(OnTheWay)))
}

/// Each change is one assignment, so a panic elsewhere leaves it whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
