//! A cluster and a store on loopback, behind a proxy.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use kube::Client;
use kube_sim::Cluster;
use s3_sim::{Dialect, Store};
use stowage_operator::upstream::{Connect, RustlsConnect, Trust};
use stowage_world::effects::Plan;
use stowage_world::serve::proxy::{Proxy, Upstream};
use stowage_world::serve::{self, RequestLog, Server};

pub const ANYWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
pub const ACCOUNT: &str = "acme";
pub const ACCESS_KEY: &str = "AKIAACME";
pub const SECRET_KEY: &str = "acme-secret";

/// Time limit for anything that a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// All parts on sockets.
pub struct Parts {
    pub cluster: Cluster,
    pub store: Store,
    pub log: RequestLog,
    pub proxy: Proxy,
    pub kube: Server,
    pub s3: Server,
    /// Held, because a server serves until it is dropped.
    _api: Server,
    pub stored: Server,
}

pub fn plan(text: &str) -> Plan {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

impl Parts {
    pub async fn new(faults: &str) -> Self {
        let cluster = Cluster::new(Arc::new(jiff::Timestamp::now), 1);
        let store = Store::new(Arc::new(jiff::Timestamp::now), Dialect::default());
        store.add_account(ACCOUNT, ACCESS_KEY, SECRET_KEY);
        let log = RequestLog::default();
        let api = serve::api(ANYWHERE, &cluster).await.unwrap();
        let stored = serve::store(ANYWHERE, &store, &log).await.unwrap();
        let proxy = Proxy::new(plan(faults)).unwrap();
        let upstream = Upstream::kube(&kube::Config::new(api.url().parse().unwrap())).unwrap();
        let kube = proxy.serve_kube(ANYWHERE, upstream).await.unwrap();
        let upstream = Upstream::s3(&stored.url().parse().unwrap()).unwrap();
        let s3 = proxy.serve_s3(ANYWHERE, upstream).await.unwrap();
        Self { cluster, store, log, proxy, kube, s3, _api: api, stored }
    }

    /// Creates a Kubernetes client for the proxy.
    pub fn kube(&self) -> Client {
        let mut config = kube::Config::new(self.kube.url().parse().unwrap());
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    /// Creates an S3 client for the proxy.
    pub fn s3(&self) -> aws_sdk_s3::Client {
        s3_client(&self.s3.url())
    }

    /// Waits until the calls so far are these.
    pub async fn until_calls(&self, expected: &[&str]) {
        soon(async {
            while self.calls() != expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Returns the calls so far, one line each, without their times.
    pub fn calls(&self) -> Vec<String> {
        let trace = self.proxy.effects().trace();
        trace.lines().iter().map(|line| format!("{} {} {}", line.number, line.call, line.answer)).collect()
    }
}

pub fn s3_client(endpoint: &str) -> aws_sdk_s3::Client {
    client_with(endpoint, ACCESS_KEY, SECRET_KEY)
}

pub fn client_with(endpoint: &str, access_key: &str, secret_key: &str) -> aws_sdk_s3::Client {
    let config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .credentials_provider(Credentials::new(access_key, secret_key, None, None, "test"))
        .endpoint_url(endpoint)
        .force_path_style(true)
        .http_client(RustlsConnect.connect(&Trust::Anything).unwrap())
        .region(Region::new("us-east-1"))
        .retry_config(RetryConfig::disabled())
        .build();
    aws_sdk_s3::Client::from_conf(config)
}

/// Waits for a result, within the time limit.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it comes in time")
}
