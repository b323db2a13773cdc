//! The simulator's store, served over HTTP by this process, with a log of its requests.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use jiff::Timestamp;
use s3_sim::{Dialect, Store};
use stowage_world::serve::{self, RequestLog, S3Request, Server};

use crate::store::Key;

/// The account that owns all buckets.
const ACCOUNT: &str = "stowage-e2e";
/// The region of the store.
pub const REGION: &str = "us-east-1";

/// Any free port on the loopback address.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A store that is served until this is dropped.
pub struct Simulated {
    requests: RequestLog,
    server: Server,
    /// The harness' key. All keys belong to one account; the log shows which one signed a request.
    pub admin: Key,
    /// The operator's key.
    pub operator: Key,
    /// The gateway's key.
    pub gateway: Key,
}

impl Simulated {
    /// Starts an empty store.
    pub async fn start() -> Result<Self> {
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

    /// Returns the store's URL.
    pub fn endpoint(&self) -> String {
        self.server.url()
    }

    /// Returns the requests that the store has answered, from the one with this number on.
    pub fn requests(&self, first: usize) -> Result<Vec<S3Request>> {
        match self.requests.forgotten() {
            0 => Ok(self.requests.requests().into_iter().skip(first).collect()),
            forgotten => Err(anyhow!("the store's log lacks {forgotten} requests")),
        }
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
