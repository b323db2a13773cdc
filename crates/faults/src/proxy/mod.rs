//! Proxy for an API server and S3 stores, which is the fault layer between real clients and real
//! servers.
//!
//! One [`Proxy`] belongs to one controller. It serves the API server on one address and each store
//! on another, and numbers all calls that pass in one sequence, with the same layer that is used
//! below the controller's clients in a simulation. So a plan and its numbers mean the same in both,
//! if the controller makes the same calls in the same order. [`router`] has the proxy's controls
//! over HTTP, for a harness in another process.
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
//! Modules: `control` is the admin API; `disturb` changes answers where a simulated server would do
//! it itself; `upstream` is a server behind the proxy; `server` is a socket in front of it, also
//! for any other tower service.
//!
//! # Guarantees
//!
//! - A call without a fault is forwarded as its client sent it, with the client's credentials and
//!   none of the proxy's. Only hop-by-hop headers, and the host name by which the client knows the
//!   API server, are not forwarded. Bodies are streamed.
//! - A plan is refused as a whole if one of its faults cannot be injected here, see [`Unplayable`];
//!   the previous plan stays.
//! - From the end of a process until [`Proxy::next_life`], no call is carried out or answered.
//! - Calls to a store with an access key id of [`Upstream::unnumbered`] are not the controller's,
//!   and none of this applies to them.
//!
//! # Limits
//!
//! - The proxy cannot end a process. From the call of a planned crash on, no call is carried out or
//!   answered; [`Proxy::crash`] returns, so that its caller can kill the process. After that,
//!   [`Proxy::next_life`] lets calls pass again. The process may not receive an answer that was
//!   forwarded just before a crash; for the rest of the world there is no difference.
//! - `unreachable` is a connection that breaks, not one that is refused, because the address is the
//!   proxy's own.
//! - Faults that need earlier states of a server, or changes to the cluster or store, are refused
//!   by name. This includes all that a project's own [`Vocabulary`] leaves to the world.
//! - Stores have to be addressed in path style, and are reached without TLS.
//! - It speaks HTTP/1.1 without TLS, and trusts every client that can reach it. Run it only on a
//!   loopback or pod network.

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

/// Faults that one controller meets on its way to real servers. Clones are the same proxy.
#[derive(Clone, Debug)]
pub struct Proxy<V = Nobody> {
    /// Shared with the proxies of other controllers, see [`Proxy::beside`].
    effects: Arc<Mutex<Effects<V>>>,
    life: Arc<Mutex<Instance>>,
}

/// End of a controller's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    /// Number of the process, counted from 1.
    pub life: u32,
    /// Number of the call at which it had to crash; `None` if it was ended by a request.
    pub effect: Option<u64>,
}

/// API of a call, which selects its layer.
#[derive(Clone, Copy, Debug)]
enum Api {
    Kube,
    S3,
}

impl<V: Vocabulary> Proxy<V> {
    /// Creates a proxy with this plan and a first process of the controller.
    ///
    /// # Errors
    /// Returns an error if the plan has a fault that cannot be injected here.
    pub fn new(plan: Plan<V>) -> Result<Self, Unplayable<V>> {
        let effects = run(plan)?;
        let life = effects.instance();
        Ok(Self { effects: Arc::new(Mutex::new(effects)), life: Arc::new(Mutex::new(life)) })
    }

    /// Creates a proxy for another controller, with separate processes and a common numbering of
    /// calls. A store that both controllers reach at one address cannot tell them apart: calls
    /// there count as those of the controller whose proxy serves it.
    #[must_use]
    pub fn beside(&self) -> Self {
        let life = self.effects.lock().instance();
        Self { effects: self.effects.clone(), life: Arc::new(Mutex::new(life)) }
    }

    /// Serves an API server behind the faults.
    ///
    /// # Errors
    /// Returns an error if the address cannot be bound.
    pub async fn serve_kube(&self, address: SocketAddr, upstream: Upstream) -> io::Result<Server> {
        Server::start(address, self.front(Api::Kube, upstream)).await
    }

    /// Serves a store behind the faults.
    ///
    /// # Errors
    /// Returns an error if the address cannot be bound.
    pub async fn serve_s3(&self, address: SocketAddr, upstream: Upstream) -> io::Result<Server> {
        Server::start(address, self.front(Api::S3, upstream)).await
    }

    /// Starts a new run: numbers count from one, no call has been made, and the controller is in
    /// its first process. The next process of other controllers has to be started with
    /// [`Proxy::next_life`].
    ///
    /// # Errors
    /// Returns an error and changes nothing if the plan has a fault that cannot be injected here.
    pub fn begin(&self, plan: Plan<V>) -> Result<(), Unplayable<V>> {
        let effects = run(plan)?;
        // Ends the old process first, so that its remaining calls get no number in the new run.
        std::mem::replace(&mut *self.life.lock(), effects.instance()).kill();
        *self.effects.lock() = effects;
        Ok(())
    }

    /// Replaces the plan. Numbers continue, and patterns count from one.
    ///
    /// # Errors
    /// Returns an error and changes nothing if the plan has a fault that cannot be injected here.
    pub fn set_plan(&self, plan: Plan<V>) -> Result<(), Unplayable<V>> {
        check(&plan)?;
        self.effects.lock().set_plan(plan);
        Ok(())
    }

    /// Ends the controller's process, if it has not ended, and starts the next one. Returns its
    /// number. Call it after the process has died and before the next one starts.
    pub fn next_life(&self) -> u32 {
        let life = self.effects.lock().instance();
        let id = life.id();
        std::mem::replace(&mut *self.life.lock(), life).kill();
        id
    }

    /// Ends the controller's process: from now on none of its calls is carried out or answered,
    /// until [`Proxy::next_life`]. Call it after the process was killed, if another party may
    /// restart it.
    pub fn end_life(&self) {
        self.life.lock().kill();
    }

    /// Returns the numbered calls of the current run: trace, counters, the remaining plan.
    /// [`Proxy::begin`] starts a run with new calls.
    pub fn effects(&self) -> Effects<V> {
        self.effects.lock().clone()
    }

    /// Completes when the current process of the controller has ended: by a planned crash at that
    /// call, or by [`Proxy::end_life`], [`Proxy::next_life`] or [`Proxy::begin`]. From then on
    /// none of its calls is carried out, and the caller has to kill the process.
    pub async fn crash(&self) -> Crash {
        let life = self.life.lock().clone();
        let effect = life.death().await;
        Crash { life: life.id(), effect }
    }

    /// Returns the service that handles requests to this proxy.
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

    /// Returns the layer of the current process.
    fn layer(&self, api: Api) -> EffectLayer<V> {
        let life = self.life.lock().clone();
        let effects = self.effects.lock();
        match api {
            Api::Kube => effects.kube_layer(&life),
            Api::S3 => effects.s3_layer(&life),
        }
    }
}

/// Creates the calls of a run between real servers.
fn run<V: Vocabulary>(plan: Plan<V>) -> Result<Effects<V>, Unplayable<V>> {
    check(&plan)?;
    Ok(Effects::within(plan, Arc::new(OnTheWay)))
}
