//! The gateway of a scenario's tenants: the production gateway, as a child process, in this process
//! with a proxy in front of the store, or as it is installed in a cluster.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use futures::future::BoxFuture;
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri};
use jiff::Timestamp;
use kube::Client;
use kube::runtime::watcher;
use stowage_gateway::body::Body;
use stowage_gateway::front::{self, Config, Gears};
use stowage_gateway::metrics::Metrics;
use stowage_gateway::registry::{Live, Registry, Setting, Source};
use stowage_gateway::server::{self, Gauges};
use stowage_gateway::upstream::{Connect, ConnectError, RustlsConnect, Transport, Trust};
use stowage_operator::api::Unlabelled;
use stowage_world::effects::Plan;
use stowage_world::serve::Server;
use stowage_world::serve::proxy::{Proxy, Upstream};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _, service_fn};

use crate::log::Log;
use crate::process::Process;
use crate::simulated::REGION;
use crate::store::{Key, Store};
use crate::users::User;

/// Interval between checks that a gateway has read its credentials.
const LOOK: Duration = Duration::from_millis(10);
/// Any free port on the loopback address.
pub const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A gateway for the tenants of a scenario.
pub enum Gateway {
    /// A child process.
    Process(Spawned),
    /// In this process, serving until it is dropped.
    Here(Here),
    /// In a pod, at this URL.
    There(String),
}

/// Paths of a server's certificate, its key and its certificate authority, in PEM.
pub struct Certificate {
    /// The authority that signed it.
    pub authority: PathBuf,
    /// The server's certificate.
    pub certificate: PathBuf,
    /// The server's private key.
    pub key: PathBuf,
}

/// A gateway as a child process, killed when dropped.
pub struct Spawned {
    process: Process,
    listen: SocketAddr,
    url: String,
}

/// A gateway in this process, with a proxy between it and the store.
pub struct Here {
    url: String,
    proxy: Proxy,
    _to_store: Server,
    /// Watches and server, which end when this is dropped.
    _work: JoinSet<()>,
}

impl Gateway {
    /// Returns its URL for tenants.
    pub fn url(&self) -> String {
        match self {
            Self::Process(process) => process.url.clone(),
            Self::Here(here) => here.url.clone(),
            Self::There(url) => url.clone(),
        }
    }

    /// Returns the address that it listens on, if it is a process.
    pub fn address(&self) -> Result<SocketAddr> {
        match self {
            Self::Process(process) => Ok(process.listen),
            Self::Here(_) | Self::There(_) => Err(anyhow!("this gateway is no process")),
        }
    }

    /// Returns the proxy in front of its store.
    pub fn proxy(&self) -> Result<&Proxy> {
        match self {
            Self::Here(here) => Ok(&here.proxy),
            Self::Process(_) | Self::There(_) => Err(anyhow!("nothing stands between this gateway and its store")),
        }
    }

    /// Ends a gateway process. An installed gateway keeps running.
    ///
    /// # Errors
    /// Fails if a process takes more than 10 s after SIGTERM, or ends with an exit code other than
    /// 0.
    pub async fn end(self) -> Result<()> {
        match self {
            Self::Process(process) => process.terminate().await,
            Self::Here(_) | Self::There(_) => Ok(()),
        }
    }
}

impl Spawned {
    /// Starts the gateway and waits until it has read the credentials in `namespace`. `command` is
    /// the program with the arguments that come before `run`. It connects to the API server as the
    /// gateway's user, and its output is written to `log`. With a certificate it serves https.
    /// After SIGTERM it keeps accepting connections for `drain` seconds.
    pub async fn start(
        command: &[String],
        kubeconfig: &Path,
        namespace: &str,
        certificate: Option<&Certificate>,
        drain: u64,
        log: &Log,
        patience: Duration,
    ) -> Result<Self> {
        let listen = free_port()?;
        let (kubeconfig, address, drain) = (kubeconfig.display().to_string(), listen.to_string(), drain.to_string());
        let arguments = ["run", "--kubeconfig", &kubeconfig, "--context", User::Gateway.name()];
        let further = ["--namespace", namespace, "--listen", &address, "--admin-address", "127.0.0.1:0"];
        let ending = ["--drain", &drain, "--shutdown-grace", "5"];
        let files = certificate.map(|it| (it.certificate.display().to_string(), it.key.display().to_string()));
        let tls = files.as_ref().map(|(certificate, key)| ["--tls-cert", certificate, "--tls-key", key]);
        let tls = tls.as_ref().map_or(&[][..], |it| it);
        let arguments = [&arguments[..], &further, &ending, tls].concat().into_iter().map(str::to_owned);
        let mut process = Process::start("gateway", command.iter().cloned().chain(arguments).collect(), log)?;
        let url = format!("{}://{listen}", if certificate.is_some() { "https" } else { "http" });
        tokio::select! {
            known = knows_its_keys(&url, patience) => known?,
            why = process.ended() => return Err(why),
        }
        Ok(Self { process, listen, url })
    }

    /// Returns its URL for tenants.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends it.
    ///
    /// # Errors
    /// Fails if it takes more than 10 s after SIGTERM, or ends with an exit code other than 0.
    pub async fn terminate(self) -> Result<()> {
        self.process.terminate().await
    }
}

impl Here {
    /// Starts a gateway for the credentials in `namespace`. All its store calls are sent through a
    /// proxy to `store`, whatever endpoint they name.
    pub async fn start(client: Client, namespace: &str, store: &str, patience: Duration) -> Result<Self> {
        let proxy = Proxy::new(Plan::default())?;
        let upstream = Upstream::s3(&store.parse().with_context(|| store.to_owned())?)?;
        let to_store = proxy.serve_s3(LOOPBACK, upstream).await.context("can't serve the gateway")?;
        let authority: Authority = to_store.address().to_string().parse().context("an address is an authority")?;

        let registry =
            Registry::new(Setting { namespaces: [namespace.to_owned()].into(), unlabelled: Unlabelled::Refused });
        let gears = Gears {
            registry: registry.clone(),
            live: Live::new(client.clone(), namespace),
            connect: Box::new(ThroughProxy(authority)),
            clock: Arc::new(Timestamp::now),
            clock_of_clients: Arc::new(Timestamp::now),
            first_id: 0,
            log: None,
            metrics: Metrics::new(),
        };
        let listener = TcpListener::bind(LOOPBACK).await.context("can't serve the gateway")?;
        let url = url_of(listener.local_addr().context("can't serve the gateway")?);
        let source = Source { client, namespace: namespace.to_owned(), watch: watcher::Config::default() };
        let gateway = front::Gateway::new(gears, Config { region: REGION.to_owned(), ..Config::default() });
        let (counting, counts) = (gateway.clone(), source.clone());
        let follows = registry.follow(source);
        let serves = server::serve(
            listener,
            gateway,
            None,
            server::Config { drain: Duration::ZERO, grace: Duration::ZERO, ..server::Config::default() },
            Gauges::default(),
            std::future::pending(),
        );
        let mut work = JoinSet::new();
        work.spawn(async move { match follows.await {} });
        work.spawn(async move { match counting.keep_quotas(counts).await {} });
        // An error of the server is not handled here: the tenants' requests will fail.
        work.spawn(async move { drop(serves.await) });
        knows_its_keys(&url, patience).await?;
        Ok(Self { url, proxy, _to_store: to_store, _work: work })
    }
}

/// Connects to a proxy instead of any store. Requests keep the host that they were signed for.
struct ThroughProxy(Authority);

impl Connect for ThroughProxy {
    fn connect(&self, trust: &Trust) -> Result<Transport, ConnectError> {
        let (plain, proxy) = (RustlsConnect.connect(trust)?, self.0.clone());
        Ok(BoxCloneSyncService::new(service_fn(move |mut request: Request<Body>| {
            let mut parts = std::mem::take(request.uri_mut()).into_parts();
            (parts.scheme, parts.authority) = (Some(Scheme::HTTP), Some(proxy.clone()));
            // Boxed, because the compiler can't prove through the service that the future is
            // `Send`.
            let answer: BoxFuture<'static, Result<Response<Body>, BoxError>> = match Uri::from_parts(parts) {
                Ok(uri) => {
                    *request.uri_mut() = uri;
                    Box::pin(plain.clone().oneshot(request))
                }
                Err(error) => Box::pin(std::future::ready(Err(error.into()))),
            };
            answer
        })))
    }
}

fn url_of(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// Returns a port that was free at the time of the call.
pub fn free_port() -> Result<SocketAddr> {
    let listener = std::net::TcpListener::bind(LOOPBACK).context("no free port")?;
    listener.local_addr().context("no free port")
}

/// Waits until a gateway has read its credentials: from then on it answers an unknown access key
/// with InvalidAccessKeyId, and before that it answers no request so.
pub async fn knows_its_keys(url: &str, patience: Duration) -> Result<()> {
    let nobody = Key { id: "NOBODY".to_owned(), secret: "guessed".to_owned() };
    let gateway = Store::of_whoever_answers(url, REGION, &nobody)?;
    let knows = async {
        while !gateway.probe().await.is_err_and(|why| why.is("InvalidAccessKeyId")) {
            sleep(LOOK).await;
        }
    };
    timeout(patience, knows).await.map_err(|_| anyhow!("the gateway did not read its credentials"))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::header::HOST;
    use hyper::body::Incoming;
    use stowage_gateway::answer::nothing;
    use stowage_world::serve::proxy;

    use super::*;

    #[tokio::test]
    async fn a_call_comes_to_the_proxy_with_the_host_that_it_was_signed_for() {
        let mirror = service_fn(|request: Request<Incoming>| async move {
            let host = request.headers().get(HOST).cloned();
            let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
            let mut answer = Response::new(proxy::Body::from(Vec::new()));
            answer.headers_mut().extend(host.map(|host| (HOST, host)));
            answer.headers_mut().insert("x-path", path.parse().unwrap());
            Ok::<_, Infallible>(answer)
        });
        let server = Server::start(LOOPBACK, mirror).await.unwrap();
        let authority = server.address().to_string().parse().unwrap();
        let transport = ThroughProxy(authority).connect(&Trust::Anything).unwrap();
        let request = Request::get("http://store.invalid:9000/photos/a?tagging=").header(HOST, "store.invalid:9000");
        let answer = transport.oneshot(request.body(nothing()).unwrap()).await.unwrap();
        assert_eq!(answer.headers()[HOST], "store.invalid:9000");
        assert_eq!(answer.headers()["x-path"], "/photos/a?tagging=");
    }
}
