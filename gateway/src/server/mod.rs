//! The listener: connections with a bound on their number and on their patience, and an end in good
//! order.

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

/// How connections are taken and given up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Most connections at once.
    pub connections: usize,
    /// Most of them from one source, trusted proxies apart.
    pub per_source: u32,
    /// Whose connections may be more than that, and begin with a PROXY header where one is asked
    /// for.
    pub proxies: Proxies,
    /// Whether connections begin with a PROXY header: those of trusted proxies, all where none is
    /// named.
    pub proxy_protocol: bool,
    /// How long new connections are still taken once the end is asked for, so that who routes here
    /// hears of it.
    pub drain: Duration,
    /// How long requests under way then have, before their connections are cut.
    pub grace: Duration,
}

impl Default for Config {
    /// As the command line has it by default.
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

/// Serves until `end` is ready, and then as long as `config` has it.
///
/// # Errors
/// Never for a connection's sake: when the listener itself is broken.
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
            // Who speaks for many has no bound of its own; whom it speaks for has, once that is
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
        // Every connection has given its permit back.
        _ = all.acquire_many(most) => tracing::info!("every request is answered"),
        () = sleep(config.grace) => {
            let left = gauges.open.load(Ordering::Relaxed);
            tracing::warn!(left, "connections are cut whose requests did not end in the grace time");
        }
    }
    Ok(())
}

/// Takes connections for ever; `full` is told of one for which there was no room.
async fn take(
    listener: &TcpListener,
    mut serve: impl FnMut(TcpStream, SocketAddr, OwnedSemaphorePermit),
    all: &Arc<Semaphore>,
    full: impl Fn(),
) -> io::Result<()> {
    loop {
        match listener.accept().await {
            // Who finds no room is told at once, and may come again; to let them wait would let
            // whoever holds the others decide how long.
            Ok((stream, peer)) => match all.clone().try_acquire_owned() {
                Ok(permit) => serve(stream, peer, permit),
                Err(_) => full(),
            },
            Err(error) if is_of_one(&error) => (),
            Err(error) => {
                // Out of descriptors, most likely: that passes, and a tight loop would not help it.
                tracing::warn!(%error, "no connection can be taken");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Whether an error of `accept` is of the one connection that it would have been.
fn is_of_one(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    matches!(error.kind(), K::ConnectionAborted | K::ConnectionReset | K::ConnectionRefused | K::Interrupted)
}
