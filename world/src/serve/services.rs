//! Servers for the simulated services.

use std::io;
use std::net::SocketAddr;

use faults::proxy::Server;
use http::Request;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use kube_sim::Cluster;
use s3_sim::Store;
use s3s::Body;
use tokio::net::TcpListener;
use tower::{BoxError, Layer, ServiceExt, service_fn};

use super::requests::RequestLog;

/// Serves a store, and logs its requests.
///
/// # Errors
/// Returns an error if the address cannot be bound.
pub async fn store(address: SocketAddr, store: &Store, log: &RequestLog) -> io::Result<Server> {
    store_on(TcpListener::bind(address).await?, store, log)
}

/// Like [`store`], on an existing listener.
///
/// # Errors
/// Returns an error if the listener has no address.
pub fn store_on(listener: TcpListener, store: &Store, log: &RequestLog) -> io::Result<Server> {
    let service = log.layer(store.http()).map_request(|request: Request<Incoming>| request.map(Body::from));
    Server::on(listener, service)
}

/// Serves a simulated Kubernetes API, without authentication.
///
/// # Errors
/// Returns an error if the address cannot be bound.
pub async fn api(address: SocketAddr, cluster: &Cluster) -> io::Result<Server> {
    let api = cluster.service();
    let service = service_fn(move |request: Request<Incoming>| {
        let api = api.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok::<_, BoxError>(api.oneshot(Request::from_parts(head, body.into())).await?)
        }
    });
    Server::start(address, service).await
}
