//! The fault layer between real clients and real servers: a proxy for an API server and S3 stores.
//!
//! One [`Proxy`] belongs to one controller. It serves the API server on one address and each store
//! on another, and gives all calls that pass one numbering, by the very layer that stands below the
//! controller's clients in a simulation. So a plan and its numbers mean the same on both, as far as
//! the controller makes the same calls in the same order. [`router`] has the proxy's controls over
//! HTTP, for a harness in another process.
//!
//! ```
//! use std::convert::Infallible;
//!
//! use faults::Plan;
//! use faults::proxy::{Body, Proxy, Server, Upstream};
//! use http::{Response, StatusCode};
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use tower::service_fn;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let anywhere = "127.0.0.1:0".parse()?;
//! let answer = || Ok::<_, Infallible>(Response::new(Body::from(b"stored".to_vec())));
//! let store = Server::start(anywhere, service_fn(move |_| async move { answer() })).await?;
//!
//! let plan: Plan = "s3:GetObject@1 slow-down".parse()?;
//! let proxy = Proxy::new(plan)?;
//! let served = proxy.serve_s3(anywhere, Upstream::s3(&store.url().parse()?)?).await?;
//!
//! let client = Client::builder(TokioExecutor::new()).build_http::<String>();
//! let get = || format!("{}/photos/a.txt", served.url()).parse();
//! assert_eq!(client.get(get()?).await?.status(), StatusCode::SERVICE_UNAVAILABLE);
//! assert_eq!(client.get(get()?).await?.status(), StatusCode::OK);
//! let trace = proxy.effects().trace();
//! let calls: Vec<String> = trace.lines().iter().map(|line| line.call.to_string()).collect();
//! assert_eq!(calls, ["s3:GetObject photos/a.txt"; 2]);
//! # Ok(())
//! # }
//! ```
//!
//! Rooms: `control` is the admin API; `disturb` does to an answer on its way what a simulated
//! server would do itself; `upstream` is a server behind the proxy, `server` a socket before it,
//! for any other tower service too.
//!
//! # Guarantees
//!
//! - A call without a fault goes on as its client sent it, with its credentials and none of the
//!   proxy's; only what concerns one connection, and the name that the client knows the API server
//!   by, are not passed on. Bodies are streamed.
//! - A plan is refused as a whole if one of its faults can't be made to happen here, see
//!   [`Unplayable`]; what was planned before stays.
//! - From the end of a life until [`Proxy::next_life`] nothing more is carried out and nothing
//!   answered.
//! - Calls to a store that name a key of [`Upstream::unnumbered`] are somebody else's: none of this
//!   concerns them.
//!
//! # Limits
//!
//! - A crash can't end a process from here. From the call on that it is planned for nothing is
//!   carried out and nothing answered; [`Proxy::crash`] tells whoever can kill the process. Once
//!   that is done [`Proxy::next_life`] lets calls pass again. Of an answer that was let through
//!   right before a crash the process may see nothing; to the rest of the world that comes to the
//!   same.
//! - `unreachable` is a connection that breaks, not one that is refused: the address is the proxy's
//!   own.
//! - Faults that need a server's past or somebody's hands in cluster or store, among them all that
//!   a project's own [`Vocabulary`] leaves to the world, are refused by name.
//! - Stores have to be addressed in path style, and are reached without TLS.
//! - It speaks HTTP/1.1 without TLS, and believes whoever can reach it: it belongs on a loopback or
//!   a pod network.

mod body;
mod control;
mod disturb;
mod server;
#[cfg(test)]
mod tests;
mod upstream;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

pub use body::Body;
pub use control::{EffectLine, Untold, router};
pub use disturb::Unplayable;
use disturb::{Disturbed, OnTheWay, check};
use http::{Request, Response};
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
pub use server::Server;
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};
pub use upstream::{Upstream, UpstreamError};

use crate::{EffectLayer, Effects, Instance, Nobody, Plan, Vocabulary};

/// The faults that one controller meets on its way to real servers. Clones are the same.
#[derive(Clone, Debug)]
pub struct Proxy<V = Nobody> {
    /// Shared with the proxies of controllers that run beside this one.
    effects: Arc<Mutex<Effects<V>>>,
    life: Arc<Mutex<Instance>>,
}

/// How a life of the controller ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    /// Which life, counted from 1.
    pub life: u32,
    /// Number of the effect that it was to crash at; absent if it was ended by hand.
    pub effect: Option<u64>,
}

/// Which layer a call goes through.
#[derive(Clone, Copy, Debug)]
enum Api {
    Kube,
    S3,
}

impl<V: Vocabulary> Proxy<V> {
    /// Faults by this plan, with a first life of the controller.
    ///
    /// # Errors
    /// When the plan has a fault that can't happen here.
    pub fn new(plan: Plan<V>) -> Result<Self, Unplayable<V>> {
        let effects = run(plan)?;
        let life = effects.instance();
        Ok(Self { effects: Arc::new(Mutex::new(effects)), life: Arc::new(Mutex::new(life)) })
    }

    /// The faults of one more controller, numbered together with those of this one; its lives are
    /// its own. A store that both reach at one address can't tell them apart: calls there count as
    /// those of the controller whose proxy serves it.
    #[must_use]
    pub fn beside(&self) -> Self {
        let life = self.effects.lock().instance();
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

    /// Begins anew: numbers count from one, nothing has been called yet, and the controller is in
    /// its first life. Of controllers beside this one the next life has to be begun by hand.
    ///
    /// # Errors
    /// When the plan has a fault that can't happen here; then nothing changes.
    pub fn begin(&self, plan: Plan<V>) -> Result<(), Unplayable<V>> {
        let effects = run(plan)?;
        // The old life ends first: what it still asks for is to have no number in the new run.
        std::mem::replace(&mut *self.life.lock(), effects.instance()).kill();
        *self.effects.lock() = effects;
        Ok(())
    }

    /// From now on, this is the plan: numbers go on from where they are, patterns count from one.
    ///
    /// # Errors
    /// When it has a fault that can't happen here; then nothing changes.
    pub fn set_plan(&self, plan: Plan<V>) -> Result<(), Unplayable<V>> {
        check(&plan)?;
        self.effects.lock().set_plan(plan);
        Ok(())
    }

    /// Ends the controller's life, if it goes on still, and begins its next one; gives its number.
    /// To be called when its process is dead and before the next one starts.
    pub fn next_life(&self) -> u32 {
        let life = self.effects.lock().instance();
        let id = life.id();
        std::mem::replace(&mut *self.life.lock(), life).kill();
        id
    }

    /// Ends the controller's life: from now on nothing of it is carried out and nothing answered,
    /// until [`Proxy::next_life`]. To be called when its process was killed and somebody else may
    /// start it again.
    pub fn end_life(&self) {
        self.life.lock().kill();
    }

    /// The numbered effects: trace, counters, what of the plan is still to come. Of the run that is
    /// on now; what [`Proxy::begin`] begins has effects of its own.
    pub fn effects(&self) -> Effects<V> {
        self.effects.lock().clone()
    }

    /// Comes to an end when the life of the controller that goes on now has: by a crash that was
    /// planned, at that effect, or by [`Proxy::end_life`], [`Proxy::next_life`] or
    /// [`Proxy::begin`]. From then on nothing of that life is carried out, and its process is to be
    /// killed.
    pub async fn crash(&self) -> Crash {
        let life = self.life.lock().clone();
        let effect = life.death().await;
        Crash { life: life.id(), effect }
    }

    /// What a server of this proxy does with a request.
    fn front(
        &self,
        api: Api,
        upstream: Upstream,
    ) -> impl Service<Request<Incoming>, Response = Response<Body>, Error = BoxError, Future: Send> + Clone + use<V>
    {
        let proxy = self.clone();
        service_fn(move |request: Request<Incoming>| {
            let (proxy, upstream) = (proxy.clone(), upstream.clone());
            async move {
                let request = upstream.addressed(request.map(Body::new))?;
                if upstream.is_past(&request) {
                    return upstream.oneshot(request).await;
                }
                proxy.layer(api).layer(Disturbed(upstream)).oneshot(request).await
            }
        })
    }

    /// The layer of the life that goes on now.
    fn layer(&self, api: Api) -> EffectLayer<V> {
        let life = self.life.lock().clone();
        let effects = self.effects.lock();
        match api {
            Api::Kube => effects.kube_layer(&life),
            Api::S3 => effects.s3_layer(&life),
        }
    }
}

/// The effects of a run between real servers.
fn run<V: Vocabulary>(plan: Plan<V>) -> Result<Effects<V>, Unplayable<V>> {
    check(&plan)?;
    Ok(Effects::within(plan, Arc::new(OnTheWay)))
}
