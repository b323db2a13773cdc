//! The simulator's store and gateway, served over HTTP by this process; the store's log tells what
//! it was asked.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use jiff::Timestamp;
use kube::Client;
use s3_sim::{Dialect, Store};
use stowage_sim::effects::Plan;
use stowage_sim::gateway::{self, Remote};
use stowage_sim::serve::proxy::{Proxy, Upstream};
use stowage_sim::serve::{self, RequestLog, S3Request, Server};
use tokio::time::{sleep, timeout};

use crate::store::Key;

/// The account that owns all buckets.
const ACCOUNT: &str = "stowage-e2e";
/// The region of the store.
pub(crate) const REGION: &str = "us-east-1";
/// Between two looks at whether a gateway has read its credentials, which it announces to nobody.
const LOOK: Duration = Duration::from_millis(10);

/// Any free port, for this machine alone.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A store that is served as long as this lives.
pub(crate) struct Simulated {
    requests: RequestLog,
    server: Server,
    /// The key of the harness. All keys belong to one account, and tell who asks.
    pub(crate) admin: Key,
    /// The operator's key.
    pub(crate) operator: Key,
    /// The gateway's key.
    gateway: Key,
}

/// A gateway that is served as long as this lives, with a proxy between it and the store.
pub(crate) struct Gateway {
    server: Server,
    _to_store: Server,
    proxy: Proxy,
}

impl Gateway {
    /// Where tenants reach it.
    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// What happens to its calls to the store.
    pub(crate) fn proxy(&self) -> &Proxy {
        &self.proxy
    }
}

impl Simulated {
    /// Starts with an empty store.
    pub(crate) async fn start() -> Result<Self> {
        let store = Store::new(Arc::new(Timestamp::now), Dialect::default());
        let (admin, operator, gateway) = (random_key("ADMIN")?, random_key("OPERATOR")?, random_key("GATEWAY")?);
        for key in [&admin, &operator, &gateway] {
            store.add_account(ACCOUNT, &key.id, &key.secret);
        }
        let requests = RequestLog::default();
        let server = serve::store(LOOPBACK, &store, &requests).await;
        let server = server.context("can't serve the store")?;
        Ok(Self { requests, server, admin, operator, gateway })
    }

    /// The store's URL.
    pub(crate) fn endpoint(&self) -> String {
        self.server.url()
    }

    /// The requests that the store has answered, from the one with this number on.
    pub(crate) fn requests(&self, first: usize) -> Result<Vec<S3Request>> {
        match self.requests.forgotten() {
            0 => Ok(self.requests.requests().into_iter().skip(first).collect()),
            forgotten => Err(anyhow!("the store's log lacks {forgotten} requests")),
        }
    }

    /// Starts a gateway for the credentials in this namespace, to which this store is known as
    /// `backend`.
    pub(crate) async fn gateway(
        &self,
        client: Client,
        namespace: &str,
        backend: &str,
        patience: Duration,
    ) -> Result<Gateway> {
        let proxy = Proxy::new(Plan::default())?;
        let endpoint = self.endpoint();
        let store = endpoint.parse().with_context(|| endpoint.clone())?;
        let upstream = Upstream::s3(&store)?;
        let to_store = proxy.serve_s3(LOOPBACK, upstream).await;
        let to_store = to_store.context("can't serve the gateway")?;
        let (endpoint, Key { id, secret }) = (to_store.url(), &self.gateway);
        let endpoint = endpoint.parse().with_context(|| endpoint.clone())?;
        let remote = Remote::new(&endpoint, REGION, id, secret)?;
        let stores = BTreeMap::from([(backend.to_owned(), remote)]);
        let gateway = gateway::Gateway::before_stores(client, namespace, Arc::new(Timestamp::now), stores);
        let server = serve::gateway(LOOPBACK, &gateway, &RequestLog::default()).await;
        let server = server.context("can't serve the gateway")?;
        let ready = async {
            while !gateway.is_ready() {
                sleep(LOOK).await;
            }
        };
        timeout(patience, ready).await.map_err(|_| anyhow!("the gateway did not read its credentials"))?;
        Ok(Gateway { server, _to_store: to_store, proxy })
    }
}

fn random_key(id: &str) -> Result<Key> {
    let mut bytes = [0; 20];
    getrandom::fill(&mut bytes).context("no random numbers")?;
    Ok(Key { id: id.to_owned(), secret: hex::encode(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store as Client;

    #[tokio::test]
    async fn a_served_store_answers_the_sdk_and_notes_who_called() {
        let simulated = Simulated::start().await.unwrap();
        let admin = Client::new(&simulated.endpoint(), REGION, &simulated.admin).unwrap();
        let operator = Client::new(&simulated.endpoint(), REGION, &simulated.operator).unwrap();
        admin.make("photos").await.unwrap();
        operator.put("photos", 7).await.unwrap();
        assert_eq!(admin.keys("photos").await.unwrap(), ["objects/00007"]);
        let requests = simulated.requests(0).unwrap();
        let told = requests.iter().map(|request| (request.who.as_deref(), request.operation.name(), request.status));
        let expected = [
            (Some("ADMIN"), "CreateBucket", Some(200)),
            (Some("OPERATOR"), "PutObject", Some(200)),
            (Some("ADMIN"), "ListObjectsV2", Some(200)),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        assert_eq!(simulated.requests(2).unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_key_that_nobody_was_given_is_refused() {
        let simulated = Simulated::start().await.unwrap();
        let stranger = Key { id: "ADMIN".to_owned(), secret: "guessed".to_owned() };
        let stranger = Client::new(&simulated.endpoint(), REGION, &stranger).unwrap();
        assert!(stranger.probe().await.unwrap_err().is("SignatureDoesNotMatch"));
    }
}
