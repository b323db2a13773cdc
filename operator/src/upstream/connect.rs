//! The HTTP client under the SDK.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use aws_sdk_s3::config::http::HttpResponse;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::{RuntimeComponents, RuntimeComponentsBuilder};
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::ConfigBag;
use aws_smithy_types::timeout::TimeoutConfig;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::client::legacy::connect::dns::GaiResolver;
use hyper_util::rt::TokioExecutor;
use rustls::ClientConfig;
use store_tls::{ConnectError, Trust, tls_config};
use tower::util::MapErr;

/// Bounds of the time that a store's addresses of one family have in total to accept a connection.
const LEAST_TO_CONNECT: Duration = Duration::from_secs(1);
const MOST_TO_CONNECT: Duration = Duration::from_secs(10);

/// Maximum length of an answer's head, in bytes.
const LONGEST_HEAD: usize = 64 << 10;

/// The host name was not resolved.
#[derive(Debug, thiserror::Error)]
#[error("the host name can't be resolved")]
pub(super) struct Unresolved(#[from] io::Error);

/// A DNS resolver that marks its errors as [`Unresolved`].
type Resolver = MapErr<GaiResolver, fn(io::Error) -> Unresolved>;

/// A factory of the HTTP clients under the SDK.
///
/// It is a parameter of the operator, like the Kubernetes client, so an embedder may use another
/// transport.
pub trait Connect: Send + Sync + 'static {
    /// Creates an HTTP client that verifies certificates as `trust` says.
    ///
    /// # Errors
    /// Returns an error if `trust` is unusable, for example a bundle that isn't PEM.
    fn connect(&self, trust: &Trust) -> Result<SharedHttpClient, ConnectError>;
}

/// HTTP/1.1 over TCP and rustls.
///
/// A dead address of a store leaves time for its other addresses. The time depends on the operation
/// timeout of the SDK client that uses the HTTP client; if several do, on that of the first.
#[derive(Clone, Copy, Debug, Default)]
pub struct RustlsConnect;

impl Connect for RustlsConnect {
    fn connect(&self, trust: &Trust) -> Result<SharedHttpClient, ConnectError> {
        Ok(SharedHttpClient::new(Hyper { tls: tls_config(trust)?, pool: OnceLock::new() }))
    }
}

/// Returns the time that a store's addresses of one family have in total to accept a connection,
/// for a call with this deadline.
fn connect_timeout(deadline: Option<Duration>) -> Duration {
    deadline.map_or(MOST_TO_CONNECT, |deadline| (deadline / 3).clamp(LEAST_TO_CONNECT, MOST_TO_CONNECT))
}

/// Configures a connector to try the next address while the call still has time.
///
/// It tries the addresses of a family one after another, and gives each an equal part of the time.
/// Without a limit it would wait minutes for a dead first address.
fn patient<R>(mut tcp: TcpConnector<R>, deadline: Option<Duration>) -> TcpConnector<R> {
    // It is wrapped in a TLS connector, which refuses any scheme but http and https.
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(connect_timeout(deadline)));
    tcp
}

/// The connections to one store.
type Pool = Client<HttpsConnector<TcpConnector<Resolver>>, SdkBody>;

/// The SDK's source of connections.
#[derive(Debug)]
struct Hyper {
    tls: ClientConfig,
    /// Created with the SDK's client, because it depends on that client's deadline.
    pool: OnceLock<Pool>,
}

impl Hyper {
    /// Returns the connections. `deadline` counts if they are created by this call.
    fn pool(&self, deadline: Option<Duration>) -> &Pool {
        self.pool.get_or_init(|| {
            let resolver: Resolver = MapErr::new(GaiResolver::new(), Unresolved::from);
            let https = hyper_rustls::HttpsConnectorBuilder::new()
                .with_tls_config(self.tls.clone())
                .https_or_http()
                .enable_http1()
                .wrap_connector(patient(TcpConnector::new_with_resolver(resolver), deadline));
            Client::builder(TokioExecutor::new()).http1_max_buf_size(LONGEST_HEAD).build(https)
        })
    }
}

impl HttpClient for Hyper {
    /// Ignores the SDK's own connect timeout: three seconds are too short for a store with many
    /// addresses.
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(Pooled(self.pool(None).clone()))
    }

    /// Creates the connections when an SDK client is created: only here the deadline of its calls
    /// is known. `http_connector` doesn't get it later.
    fn validate_base_client_config(&self, _: &RuntimeComponentsBuilder, config: &ConfigBag) -> Result<(), BoxError> {
        self.pool(config.load::<TimeoutConfig>().and_then(TimeoutConfig::operation_timeout));
        Ok(())
    }
}

/// The SDK's connector over a pool.
#[derive(Debug)]
struct Pooled(Pool);

impl HttpConnector for Pooled {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let client = self.0.clone();
        HttpConnectorFuture::new(async move {
            let request = request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
            let response = client.request(request).await.map_err(|error| ConnectorError::io(error.into()))?;
            HttpResponse::try_from(response.map(SdkBody::from_body_1_x))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    use aws_sdk_s3::config::retry::RetryConfig;
    use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
    use aws_sdk_s3::error::SdkError;
    use aws_smithy_async::rt::sleep::TokioSleep;
    use hyper_util::client::legacy::connect::dns::Name;
    use rstest::rstest;
    use tokio::net::{TcpListener, TcpSocket, TcpStream};
    use tokio::time::timeout;
    use tower::{ServiceExt, service_fn};

    use super::*;

    const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    #[rstest]
    #[case(None, 10)]
    #[case(Some(3600), 10)]
    #[case(Some(30), 10)]
    #[case(Some(15), 5)]
    #[case(Some(3), 1)]
    #[case(Some(1), 1)]
    fn connecting_may_take_a_third_of_a_call_within_bounds(#[case] deadline: Option<u64>, #[case] expected: u64) {
        assert_eq!(connect_timeout(deadline.map(Duration::from_secs)), Duration::from_secs(expected));
    }

    /// Returns an address that silently drops connections, like one without a machine, and the
    /// sockets that keep it so. Linux drops connection requests to a listener whose backlog is
    /// full.
    async fn dead_address() -> (SocketAddr, (TcpListener, Vec<TcpStream>)) {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(ANY_PORT).expect("a port");
        let listener = socket.listen(1).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let mut waiting = Vec::new();
        while let Ok(stream) = timeout(Duration::from_millis(300), TcpStream::connect(address)).await {
            waiting.push(stream.expect("a connection"));
            assert!(waiting.len() < 10, "it takes them all");
        }
        (address, (listener, waiting))
    }

    #[tokio::test]
    async fn a_dead_address_leaves_time_for_the_next() {
        let (dead, _full) = dead_address().await;
        let listener = TcpListener::bind(ANY_PORT).await.expect("a port");
        let alive = listener.local_addr().expect("an address");
        let addresses = service_fn(move |_: Name| async move { Ok::<_, BoxError>([dead, alive].into_iter()) });
        let connector = patient(TcpConnector::new_with_resolver(addresses), Some(Duration::from_secs(3)));
        let connection = connector.oneshot(http::Uri::from_static("https://s3.example"));
        let connection = timeout(Duration::from_secs(20), connection).await.expect("it ends").expect("a connection");
        assert_eq!(connection.inner().peer_addr().expect("a peer"), alive);
    }

    #[tokio::test]
    async fn connecting_ends_before_the_deadline_of_the_call_does() {
        let (dead, _full) = dead_address().await;
        let timeouts = TimeoutConfig::builder().operation_timeout(Duration::from_secs(6)).build();
        let config = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .credentials_provider(Credentials::new("id", "key", None, None, "test"))
            .endpoint_url(format!("http://{dead}"))
            .force_path_style(true)
            .http_client(RustlsConnect.connect(&Trust::Anything).expect("a client"))
            .region(Region::new("us-east-1"))
            .retry_config(RetryConfig::disabled())
            .sleep_impl(TokioSleep::new())
            .timeout_config(timeouts)
            .build();
        let answer = aws_sdk_s3::Client::from_conf(config).list_buckets().send().await;
        assert!(matches!(answer, Err(SdkError::DispatchFailure(_))), "{answer:?}");
    }
}
