//! A simulator that people and programs use from outside: a Kubernetes API, a store, the production
//! gateway and the operator, on sockets of this machine and on its clock.
//!
//! [`Up::start`] puts it together; `stowage-sim up` runs it. What the parts are is the same code as
//! in a [`crate::world::World`]: there on virtual time and without sockets.
//!
//! - `simulator`: the parts, and what is done to them by hand;
//! - `controllers`, `stores`: what goes on beside: the cluster's own controllers, a store for each
//!   backend that is applied;
//! - `identity`, `kubeconfig`, `listener`: how clients of Kubernetes reach it;
//! - `admin`: the API behind `stowage-sim env`, `calls`, `fault` and `clock`.

mod admin;
mod clock;
mod controllers;
mod identity;
mod kubeconfig;
mod listener;
mod simulator;
mod stores;
mod traffic;
mod view;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use kube::client::Body;
pub use kube_sim::Authorization;
use kube_sim::{ApiBody, BODY_LIMIT, Front, FrontOptions};
use serde::Serialize;
use stowage_gateway::server::{self, Config as GatewayConfig, Gauges};
use stowage_operator::api::Endpoint;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::{BoxError, ServiceExt, service_fn};

use self::identity::Identity;
use self::simulator::Simulator;
use crate::serve::{self, RequestLog, Server};
use crate::world::{ADMIN_ACCESS_KEY, ADMIN_SECRET_KEY, Document, OPERATOR_NAMESPACE, apply, parse};

/// Where it listens; port 0 is any that is free.
#[derive(Clone, Copy, Debug)]
pub struct Listen {
    /// The Kubernetes API.
    pub kube: SocketAddr,
    /// The gateway, which tenants use.
    pub s3: SocketAddr,
    /// The store behind it, for whoever wants to look behind the gateway.
    pub store: SocketAddr,
    /// The admin API.
    pub admin: SocketAddr,
}

/// How a simulator is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens.
    pub listen: Listen,
    /// File that its kubeconfig is written to.
    pub kubeconfig: PathBuf,
    /// Whether the operator is at work from the beginning.
    pub operator: bool,
    /// Who may do what in the cluster. The kubeconfig's user may do everything in any case.
    pub authorization: Authorization,
    /// What is applied at the start. Without an S3Backend among them there is one, `main`, for the
    /// store that is served.
    pub manifests: Vec<Document>,
}

/// Where what is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Served {
    /// The kubeconfig, which names the Kubernetes API.
    pub kubeconfig: PathBuf,
    /// URL of the Kubernetes API.
    pub kubernetes: String,
    /// URL of the gateway, where the credentials of claims work.
    pub s3: String,
    /// URL of the store behind it.
    pub store: String,
    /// URL of the admin API.
    pub admin: String,
}

/// A running simulator. When dropped it ends at once, with all of its connections.
pub struct Up {
    served: Arc<Served>,
    simulator: Simulator,
    /// The servers of store and admin API.
    servers: [Server; 2],
    work: JoinSet<()>,
}

impl Up {
    /// Starts everything, and applies what there is to apply.
    ///
    /// # Errors
    /// In one sentence: an address that can't be had, a file that can't be written, a manifest that
    /// is refused.
    pub async fn start(options: Options) -> Result<Self, String> {
        let Listen { kube, s3, store, admin } = options.listen;
        let kube_listener = listener::take(kube, "the Kubernetes API", "--kube-address").await?;
        let s3_listener = listener::take(s3, "the gateway", "--s3-address").await?;
        let store_listener = listener::take(store, "the store", "--store-address").await?;
        let admin_listener = listener::take(admin, "the admin API", "--admin-address").await?;
        let served = Arc::new(Served {
            kubeconfig: std::path::absolute(&options.kubeconfig).unwrap_or(options.kubeconfig),
            kubernetes: url("https", &kube_listener)?,
            s3: url("http", &s3_listener)?,
            store: url("http", &store_listener)?,
            admin: url("http", &admin_listener)?,
        });
        let endpoint = |url: &str| Endpoint::parse(url).map_err(|error| format!("{url} is no endpoint: {error}"));
        let simulator = Simulator::new(endpoint(&served.s3)?, &endpoint(&served.store)?);
        let simulator = simulator.map_err(|error| format!("can't start a thread: {error}"))?;
        let identity = Identity::new(kube.ip())?;
        let text = kubeconfig::text(&served.kubernetes, &identity.authority, &identity.token);
        let unwritable = |error| format!("can't write {}: {error}", served.kubeconfig.display());
        kubeconfig::write(&served.kubeconfig, &text).map_err(unwritable)?;
        let mut work = JoinSet::new();
        let (runs, authority) = (simulator.clone(), identity.authority.clone());
        work.spawn(async move { runs.run(&authority).await });
        let front = simulator.cluster().front(front_options(&identity, options.authorization));
        work.spawn(listener::serve(
            kube_listener,
            identity.tls,
            service_fn(move |request| ask(front.clone(), request)),
        ));
        work.spawn(gateway(s3_listener, simulator.gateway().production()));
        let broken = |error: io::Error| format!("a listener has no address: {error}");
        let store = serve::store_on(store_listener, simulator.store(), &RequestLog::default()).map_err(broken)?;
        let admin = admin::router(simulator.clone(), served.clone());
        let admin = Server::on(admin_listener, admin).map_err(broken)?;
        let up = Self { served, simulator, servers: [store, admin], work };
        up.furnish(&options.manifests).await?;
        if options.operator {
            up.simulator.start_operator().await;
        }
        Ok(up)
    }

    /// Where what is served.
    pub fn served(&self) -> &Served {
        &self.served
    }

    /// Stops the operator in good order, and then everything else.
    pub async fn stop(self) {
        self.simulator.stop_operator().await;
        let [store, admin] = self.servers;
        tokio::join!(store.stop(), admin.stop());
        drop(self.work);
    }

    /// Applies what the simulator begins with.
    async fn furnish(&self, manifests: &[Document]) -> Result<(), String> {
        let namespace = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {OPERATOR_NAMESPACE}}}}}");
        let mut first = parse("namespace", &namespace).map_err(|error| error.to_string())?;
        if !manifests.iter().any(|it| it.object.types.as_ref().is_some_and(|types| types.kind == "S3Backend")) {
            first.extend(backend(&self.served.store)?);
        }
        let client = self.simulator.cluster().client("default");
        for document in first.iter().chain(manifests) {
            apply(&client, document).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// The backend for the store that is served.
fn backend(endpoint: &str) -> Result<Vec<Document>, String> {
    let text = include_str!("backend.yaml")
        .replace("STORE_ENDPOINT", endpoint)
        .replace("STORE_ACCESS_KEY", ADMIN_ACCESS_KEY)
        .replace("STORE_SECRET_KEY", ADMIN_SECRET_KEY);
    parse("the first backend", &text).map_err(|error| error.to_string())
}

fn url(scheme: &str, listener: &TcpListener) -> Result<String, String> {
    let address = listener.local_addr().map_err(|error| format!("a listener has no address: {error}"))?;
    Ok(format!("{scheme}://{address}"))
}

/// Asks the Kubernetes API, once the request's body is there. One byte over the limit comes along,
/// so that it can say that there were too many.
async fn ask(front: Front, request: Request<Incoming>) -> Result<Response<ApiBody>, BoxError> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_LIMIT + 1).collect().await?.to_bytes();
    Ok(front.oneshot(Request::from_parts(head, Body::from(body))).await?)
}

/// How the Kubernetes API knows its clients: whoever has the kubeconfig may do everything, whoever
/// hasn't nothing.
fn front_options(identity: &Identity, authorization: Authorization) -> FrontOptions {
    let admin = kube_sim::Identity::new("admin", &["system:masters"]);
    FrontOptions {
        tokens: [(identity.token.clone(), admin)].into(),
        anonymous: None,
        authorization,
        ..FrontOptions::open(Arc::new(identity::random))
    }
}

async fn gateway(listener: TcpListener, gateway: stowage_gateway::front::Gateway) {
    let (config, gauges) = (GatewayConfig::default(), Gauges::default());
    if let Err(error) = server::serve(listener, gateway, None, config, gauges, std::future::pending()).await {
        tracing::error!(%error, "the gateway serves no more");
    }
}

/// The kubeconfig that a simulator writes unless it is told another place.
pub const KUBECONFIG: &str = ".stowage/kubeconfig";

/// Where a simulator listens unless it is told otherwise.
pub const ADMIN_URL: &str = "http://127.0.0.1:9002";

/// Whether an address can be reached from this machine alone.
pub fn is_private(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// The command by which a shell gets to use a kubeconfig.
pub fn use_of(kubeconfig: &Path) -> String {
    format!("export KUBECONFIG={}", quoted(&kubeconfig.to_string_lossy()))
}

/// A word as a POSIX shell reads it back.
pub fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./:@%+=,".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
