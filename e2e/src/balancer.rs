//! One address for several gateways, like a Service: each connection is forwarded to one of the
//! listed gateways in turn, and stays there even after that gateway is removed from the list.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use stowage_testbed::gateway::LOOPBACK;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A round-robin balancer that serves until it is dropped.
pub(crate) struct Balancer {
    address: SocketAddr,
    turns: Arc<Mutex<Turns>>,
    _work: JoinSet<()>,
}

/// The list of gateways, with the position of the next one.
#[derive(Default)]
struct Turns {
    listed: Vec<SocketAddr>,
    taken: usize,
}

impl Turns {
    /// Returns the gateway for the next connection; `None` if the list is empty.
    fn next(&mut self) -> Option<SocketAddr> {
        let next = self.listed.get(self.taken.checked_rem(self.listed.len())?).copied();
        self.taken += 1;
        next
    }
}

impl Balancer {
    /// Starts a balancer with an empty list, which closes each connection.
    pub(crate) async fn start() -> Result<Self> {
        let listener = TcpListener::bind(LOOPBACK).await.context("can't serve before the gateways")?;
        let address = listener.local_addr().context("can't serve before the gateways")?;
        let turns = Arc::new(Mutex::new(Turns::default()));
        let mut work = JoinSet::new();
        let for_work = turns.clone();
        work.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let next = for_work.lock().next();
                // Errors are ignored: the client sees that its connection was closed.
                connections.spawn(async move { drop(pass(client, next).await) });
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, turns, _work: work })
    }

    /// Returns the balancer's URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Replaces the list of gateways for new connections.
    pub(crate) fn list(&self, gateways: &[SocketAddr]) {
        self.turns.lock().listed = gateways.to_vec();
    }
}

async fn pass(mut client: TcpStream, gateway: Option<SocketAddr>) -> std::io::Result<()> {
    let Some(gateway) = gateway else { return Ok(()) };
    let mut gateway = TcpStream::connect(gateway).await?;
    gateway.set_nodelay(true)?;
    client.set_nodelay(true)?;
    copy_bidirectional(&mut client, &mut gateway).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Serves each connection by sending `name`.
    async fn says(name: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind(LOOPBACK).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                client.write_all(name).await.unwrap();
            }
        });
        address
    }

    async fn heard(balancer: &Balancer) -> String {
        let mut text = String::new();
        let mut stream = TcpStream::connect(balancer.address).await.unwrap();
        // An error counts as no data: the connection may be reset instead of closed.
        let _ = stream.read_to_string(&mut text).await;
        text
    }

    #[tokio::test]
    async fn connections_go_to_those_that_are_listed_in_turns() {
        let balancer = Balancer::start().await.unwrap();
        assert_eq!(heard(&balancer).await, "");
        let (one, two) = (says(b"one").await, says(b"two").await);
        balancer.list(&[one, two]);
        let mut first = [heard(&balancer).await, heard(&balancer).await];
        first.sort();
        assert_eq!(first, ["one", "two"]);
        balancer.list(&[two]);
        assert_eq!([heard(&balancer).await, heard(&balancer).await], ["two", "two"]);
    }
}
