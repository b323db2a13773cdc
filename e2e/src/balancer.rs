//! One address for several gateways, as a Service has it: a connection goes to one of those that
//! are in turn, and stays there however long that one is listed.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use stowage_testbed::gateway::LOOPBACK;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Serves as long as it is kept.
pub(crate) struct Balancer {
    address: SocketAddr,
    turns: Arc<Mutex<Turns>>,
    _work: JoinSet<()>,
}

/// Whose turn it is.
#[derive(Default)]
struct Turns {
    listed: Vec<SocketAddr>,
    taken: usize,
}

impl Turns {
    /// Where the next connection goes; `None` when nobody is listed.
    fn next(&mut self) -> Option<SocketAddr> {
        let next = self.listed.get(self.taken.checked_rem(self.listed.len())?).copied();
        self.taken += 1;
        next
    }
}

impl Balancer {
    /// Starts one that lists nobody yet, and closes each connection.
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
                // Whoever is cut off tells of it.
                connections.spawn(async move { drop(pass(client, next).await) });
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, turns, _work: work })
    }

    /// The one address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Has new connections go to these, in turns.
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

    /// Says its name to whoever connects.
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
        // A connection that is cut says as little as one that is closed.
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
