//! Network between clients and S3 services: a host name resolves to a service, or the connection is
//! refused.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use aws_smithy_runtime_api::client::http::SharedHttpClient;
use futures::future::BoxFuture;
use http::{Request, Response};
use parking_lot::RwLock;
use s3_sim::{InProcess, Store, StoreService};
use s3s::Body;
use stowage_operator::upstream::{Connect, ConnectError, Trust};
use tower::{BoxError, Layer, Service, ServiceExt};

use crate::effects::EffectLayer;
use crate::gateway::GatewayService;

/// Returns host and port of a URL.
pub fn authority(url: &str) -> String {
    url.split("://").nth(1).unwrap_or(url).to_owned()
}

/// S3 services by host and port. Clones share the same network.
pub struct Hosts<S>(Arc<RwLock<BTreeMap<String, S>>>);

/// The stores that the operator can reach.
pub type Stores = Hosts<Store>;

impl<S> Hosts<S> {
    /// Creates a network of these services.
    pub fn new(services: impl IntoIterator<Item = (String, S)>) -> Self {
        Self(Arc::new(RwLock::new(services.into_iter().collect())))
    }

    /// Adds a service at a host and port, and replaces the one that was there.
    pub fn add(&self, authority: String, service: S) {
        self.0.write().insert(authority, service);
    }
}

impl<S: Clone> Hosts<S> {
    /// Returns all services with host and port.
    pub fn all(&self) -> Vec<(String, S)> {
        self.0.read().iter().map(|(host, service)| (host.clone(), service.clone())).collect()
    }

    /// Returns the service at a host and port.
    pub fn get(&self, authority: &str) -> Option<S> {
        self.0.read().get(authority).cloned()
    }
}

impl<S> fmt::Debug for Hosts<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.read().keys()).finish()
    }
}

impl<S> Clone for Hosts<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// A service that answers requests at a host.
pub trait Host {
    /// HTTP service of the host.
    type Http: Service<Request<Body>, Response = Response<Body>, Error: Into<BoxError>, Future: Send> + Send + 'static;

    /// Returns a handle to the service.
    fn http(&self) -> Self::Http;
}

impl Host for Store {
    type Http = StoreService;

    fn http(&self) -> StoreService {
        Self::http(self)
    }
}

impl Host for GatewayService {
    type Http = Self;

    fn http(&self) -> Self {
        self.clone()
    }
}

impl<S: Host> Service<Request<Body>> for Hosts<S> {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let authority = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        let service = self.0.read().get(&authority).map(Host::http);
        Box::pin(async move {
            match service {
                Some(service) => service.oneshot(request).await.map_err(Into::into),
                None => Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens there").into()),
            }
        })
    }
}

/// HTTP clients of the operator: connections to the stores behind the fault layer.
pub(super) struct SimulatedConnect {
    pub(super) stores: Stores,
    pub(super) layer: EffectLayer,
}

impl Connect for SimulatedConnect {
    fn connect(&self, _: &Trust) -> Result<SharedHttpClient, ConnectError> {
        Ok(SharedHttpClient::new(InProcess::new(self.layer.layer(self.stores.clone()))))
    }
}
