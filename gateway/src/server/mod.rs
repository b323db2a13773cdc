//! The listener: limits the number of connections and the time they may take, and shuts down
//! gracefully.

mod connection;
mod heads;
mod proxy_protocol;
mod stage;
mod tls;

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::sleep;

use self::stage::Stage;
pub use self::tls::{Certificate, CertificateError};
use crate::front::{Gateway, Proxies};
use crate::limits::{Counts, Source};
pub use crate::metrics::Gauges;

/// The configuration of the server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Maximum number of concurrent connections.
    pub connections: usize,
    /// Maximum number of concurrent connections from one source other than a trusted proxy.
    pub per_source: u32,
    /// Trusted proxies. They may exceed the maximum per source, and their connections begin with a
    /// PROXY header if that is enabled.
    pub proxies: Proxies,
    /// True if connections begin with a PROXY header: those of trusted proxies, or all of them if
    /// there are none.
    pub proxy_protocol: bool,
    /// Time after the shutdown signal during which new connections are still accepted, until load
    /// balancers notice it.
    pub drain: Duration,
    /// Time that requests in progress get after `drain`, before their connections are cut.
    pub grace: Duration,
}

impl Default for Config {
    /// Returns the command line's defaults.
    fn default() -> Self {
        Self {
            connections: 4096,
            per_source: 512,
            proxies: Proxies::default(),
            proxy_protocol: false,
            drain: Duration::from_secs(8),
            grace: Duration::from_secs(600),
        }
    }
}

/// Serves until `end` is ready, and then for the times of `config`.
///
/// # Errors
/// Returns an error if the listener itself is broken. A single connection never causes an error.
pub async fn serve(
    listener: TcpListener,
    gateway: Gateway,
    certificate: Option<Certificate>,
    config: Config,
    gauges: Gauges,
    end: impl Future<Output = ()>,
) -> io::Result<()> {
    let all = Arc::new(Semaphore::new(config.connections));
    let sources = Counts::new(config.per_source);
    let (tell, told) = watch::channel(Stage::Serving);
    let taking = take(
        &listener,
        |stream, peer, permit| {
            let is_proxy = config.proxies.trust(peer.ip());
            let announced = config.proxy_protocol && (is_proxy || config.proxies.is_empty());
            let (gateway, certificate, told) = (gateway.clone(), certificate.clone(), told.clone());
            let (gauges, sources) = (gauges.clone(), sources.clone());
            // A proxy for many clients has no limit of its own. Its clients have, once they are
            // known.
            let admit = move |client: IpAddr| {
                let speaks_for_many = is_proxy && client == peer.ip();
                speaks_for_many.then_some(None).or_else(|| sources.take(Source::of(client)).map(Some))
            };
            tokio::spawn(async move {
                gauges.open.fetch_add(1, Ordering::Relaxed);
                let refused = &gauges.refused;
                connection::serve(stream, (peer, announced), (admit, refused), gateway, certificate, told).await;
                gauges.open.fetch_sub(1, Ordering::Relaxed);
                drop(permit);
            });
        },
        &all,
        || {
            gauges.refused.fetch_add(1, Ordering::Relaxed);
        },
    );
    let mut taking = Box::pin(taking);
    tokio::select! {
        broken = &mut taking => return broken,
        () = end => (),
    }
    let _ = tell.send(Stage::Draining);
    tokio::select! {
        broken = &mut taking => return broken,
        () = sleep(config.drain) => (),
    }
    drop(taking);
    let _ = tell.send(Stage::Ending);
    let most = u32::try_from(config.connections).unwrap_or(u32::MAX);
    tokio::select! {
        // Every connection has returned its permit.
        _ = all.acquire_many(most) => tracing::info!("every request is answered"),
        () = sleep(config.grace) => {
            let left = gauges.open.load(Ordering::Relaxed);
            tracing::warn!(left, "connections are cut whose requests did not end in the grace time");
        }
    }
    Ok(())
}

/// Accepts connections forever. Calls `full` for each one without a permit.
async fn take(
    listener: &TcpListener,
    mut serve: impl FnMut(TcpStream, SocketAddr, OwnedSemaphorePermit),
    all: &Arc<Semaphore>,
    full: impl Fn(),
) -> io::Result<()> {
    loop {
        match listener.accept().await {
            // Without a permit, the client is disconnected at once, and may try again. If it had to
            // wait, the other clients would decide for how long.
            Ok((stream, peer)) => match all.clone().try_acquire_owned() {
                Ok(permit) => serve(stream, peer, permit),
                Err(_) => full(),
            },
            Err(error) if is_of_one(&error) => (),
            Err(error) => {
                // Most likely out of file descriptors. That passes, and a tight loop would not
                // help.
                tracing::warn!(%error, "no connection can be taken");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Returns true if an error of `accept` concerns only the one connection.
fn is_of_one(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    matches!(error.kind(), K::ConnectionAborted | K::ConnectionReset | K::ConnectionRefused | K::Interrupted)
}
