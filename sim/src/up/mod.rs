//! A simulator for use from outside by people and programs: a Kubernetes API, a store, the
//! production gateway and the operator, on sockets of this machine and with its clock.
//!
//! [`Up::start`] assembles it; `stowage-sim up` runs it. The parts are the same code as in a
//! [`stowage_world::World`], which has virtual time and no sockets.
//!
//! - `simulator`: the parts, and the operations of users on them;
//! - `kinds`: the kinds that it serves besides those of every cluster;
//! - `controllers`, `stores`: background work: the cluster's own controllers, and a store for each
//!   backend that is applied;
//! - `data`: the state that outlives the process, if there is a data directory;
//! - `identity`, `kubeconfig`, `listener`: access for Kubernetes clients; `manifests`: manifests to
//!   apply at the start; `webhooks`: calls of admission webhooks;
//! - `served`: addresses and URLs;
//! - `admin`, `admin_state`, `lives`: the API behind `stowage-sim env`, `calls`, `fault`, `clock`,
//!   `reset` and `snapshot`; `connection` implements `env`, and `again` the last two;
//! - `recorder`, `befell`: the actions of users and the faults of calls, for `history`.

mod admin;
mod admin_state;
mod again;
mod befell;
mod clock;
mod connection;
mod controllers;
mod data;
mod identity;
mod kinds;
mod kubeconfig;
mod listener;
mod lives;
mod manifests;
mod recorder;
mod served;
mod simulator;
mod stores;
mod traffic;
mod view;
mod webhooks;
mod workloads;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use http::{Request, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
pub use kube_front::Authorization;
use kube_front::{BODY_LIMIT, Front, FrontOptions, Issued, KeepIssued};
use kube_sim::ApiBody;
use stowage_gateway::server::{self, Config as GatewayConfig, Gauges};
use stowage_operator::api::Endpoint;
use stowage_world::Document;
use stowage_world::serve::{self, RequestLog, Server};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::{BoxError, service_fn};

use self::again::Beginning;
use self::data::{Data, Held};
use self::identity::{Identity, Lasting};
use self::kinds::Kinds;
pub use self::lives::SNAPSHOT;
use self::recorder::Recorder;
use self::served::url;
pub use self::served::{ADMIN_URL, KUBECONFIG, Listen, Served, is_private, use_of};
use self::simulator::Simulator;

/// The options of a simulator.
#[derive(Clone, Debug)]
pub struct Options {
    /// The addresses to listen on.
    pub listen: Listen,
    /// File to write the kubeconfig to.
    pub kubeconfig: PathBuf,
    /// True to run the operator from the start.
    pub operator: bool,
    /// The authorization mode of the cluster. The kubeconfig's user may do everything in any case.
    pub authorization: Authorization,
    /// True to serve ObjectBucketClaims, with a storage class for them.
    pub obc: bool,
    /// True to mark workloads as ready, though nothing runs.
    pub workloads_ready: bool,
    /// Data directory for state that outlives the process.
    pub data: Option<PathBuf>,
    /// Manifests to apply at the start. Without an S3Backend among them, the backend `main` is
    /// created for the served store.
    pub manifests: Vec<Document>,
}

/// A running simulator. Dropping it ends it at once, with all of its connections.
pub struct Up {
    served: Arc<Served>,
    simulator: Simulator,
    /// The servers of the store and of the admin API.
    servers: [Server; 2],
    work: JoinSet<()>,
}

impl Up {
    /// Starts all parts and applies the manifests.
    ///
    /// # Errors
    /// Returns an error message: an address that can't be bound, a file that can't be written, or a
    /// manifest that is refused.
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
        let directory = options.data.as_deref();
        let kinds = if options.obc { Kinds::WithObjectBuckets } else { Kinds::Own };
        let (simulator, before) = Simulator::new(endpoint(&served.s3)?, &endpoint(&served.store)?, directory, kinds)?;
        let identity = Identity::new(lasting(simulator.data())?, kube.ip())?;
        let text = kubeconfig::text(&served.kubernetes, &identity.authority, &identity.token);
        let unwritable = |error| format!("can't write {}: {error}", served.kubeconfig.display());
        kubeconfig::write(&served.kubeconfig, &text).map_err(unwritable)?;
        let mut work = JoinSet::new();
        let (runs, authority) = (simulator.clone(), identity.authority.clone());
        work.spawn(async move { runs.run(&authority, options.workloads_ready).await });
        let data = simulator.data().cloned();
        let front = front_options(&identity, options.authorization, before.tokens, data.clone());
        let front = Front::new(simulator.cluster(), front);
        simulator.hand_over(front.clone());
        let recorder = simulator.recorder().clone();
        let service = service_fn(move |request| ask(front.clone(), recorder.clone(), data.clone(), request));
        work.spawn(listener::serve(kube_listener, identity.tls, service));
        work.spawn(gateway(s3_listener, simulator.gateway().production()));
        let broken = |error: io::Error| format!("a listener has no address: {error}");
        let store = serve::store_on(store_listener, simulator.store(), &RequestLog::default()).map_err(broken)?;
        let beginning = Arc::new(Beginning::new(options.manifests, &served.store, kinds, &identity.token)?);
        let admin = admin::router(simulator.clone(), served.clone(), beginning.clone());
        let admin = Server::on(admin_listener, admin).map_err(broken)?;
        let up = Self { served, simulator, servers: [store, admin], work };
        beginning.bring(&up.simulator, !before.furnished).await?;
        if options.operator {
            up.simulator.start_operator().await;
        }
        if let Some(data) = up.simulator.data() {
            data.safe().await?;
        }
        Ok(up)
    }

    /// Returns the addresses of all parts.
    pub fn served(&self) -> &Served {
        &self.served
    }

    /// Waits until the state can't be saved any more. Returns an error message with the reason.
    pub async fn failure(&self) -> String {
        match self.simulator.data() {
            Some(data) => data.failure().await,
            None => std::future::pending().await,
        }
    }

    /// Stops the operator gracefully, and then everything else.
    pub async fn stop(self) {
        self.simulator.stop_operator().await;
        let [store, admin] = self.servers;
        tokio::join!(store.stop(), admin.stop());
        drop(self.work);
        if let Some(data) = self.simulator.data() {
            data.close().await;
        }
    }
}

/// Returns the identity of the server: the saved one if there is a data directory.
fn lasting(data: Option<&Data>) -> Result<Lasting, String> {
    match data {
        Some(data) => Lasting::read(&data.file("identity", || Lasting::new().map(|new| new.text()))?),
        None => Lasting::new(),
    }
}

/// Passes a request to the Kubernetes API after reading its body, up to one byte over the limit so
/// that the API can report a body that is too long. The answer is held back until its data is
/// durable.
async fn ask(
    front: Front,
    recorder: Recorder,
    data: Option<Data>,
    request: Request<Incoming>,
) -> Result<Response<Held<ApiBody>>, BoxError> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_LIMIT + 1).collect().await?.to_bytes();
    let answer = recorder.ask(front, head, body).await?;
    if let Some(data) = &data {
        data.settled().await;
    }
    Ok(answer.map(|body| Held::new(body, data)))
}

/// Returns the options of the API: users of the kubeconfig may do everything, anonymous users
/// nothing.
fn front_options(
    identity: &Identity,
    authorization: Authorization,
    issued: Vec<Issued>,
    data: Option<Data>,
) -> FrontOptions {
    let admin = kube_front::Identity::new("admin", &["system:masters"]);
    FrontOptions {
        tokens: [(identity.token.clone(), admin)].into(),
        anonymous: None,
        authorization,
        issued,
        webhooks: Some(Arc::new(webhooks::Https)),
        keep_issued: data.map(|data| -> KeepIssued { Arc::new(move |issued: &Issued| data.keep_token(issued)) }),
        ..FrontOptions::open(Arc::new(identity::random))
    }
}

async fn gateway(listener: TcpListener, gateway: stowage_gateway::front::Gateway) {
    let (config, gauges) = (GatewayConfig::default(), Gauges::default());
    if let Err(error) = server::serve(listener, gateway, None, config, gauges, std::future::pending()).await {
        tracing::error!(%error, "the gateway serves no more");
    }
}
