//! Serves a cluster for kubectl on a loopback port: an example of a [`kube_front::Front`] on a
//! socket.
//!
//! ```console
//! $ cargo run -p kube-front --example serve -- 127.0.0.1:8001 crds/crds.yaml
//! $ kubectl --server http://127.0.0.1:8001 get namespaces
//! ```
//!
//! The first argument is the address. The others are files with CustomResourceDefinitions, or
//! `--rbac` to authorize requests by roles, for `kubectl --as`. The server speaks plain HTTP and
//! treats every caller as an admin. A server that others can reach needs TLS and tokens.

use std::collections::hash_map::RandomState;
use std::error::Error;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_front::{Authorization, BODY_LIMIT, Front, FrontOptions};
use kube_sim::{ApiBody, Cluster};
use tokio::net::TcpListener;
use tower::Service as _;

/// Interval between the steps of the controllers.
const STEP: Duration = Duration::from_millis(100);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address: SocketAddr = arguments.next().unwrap_or_else(|| "127.0.0.1:8001".to_owned()).parse()?;
    let cluster = Cluster::new(Arc::new(Timestamp::now), rand_seed());
    let mut options = FrontOptions::open(Arc::new(random));
    for file in arguments {
        if file == "--rbac" {
            options.authorization = Authorization::Rbac;
            continue;
        }
        let definitions: Vec<CustomResourceDefinition> = serde_saphyr::from_multiple(&std::fs::read_to_string(&file)?)?;
        for definition in definitions {
            cluster.install_crd(&definition).map_err(|refusal| refusal.message.clone())?;
        }
    }
    let front = Front::new(&cluster, options);
    let listener = TcpListener::bind(address).await?;
    writeln!(std::io::stdout(), "kubectl --server http://{}", listener.local_addr()?)?;
    let mut steps = tokio::time::interval(STEP);
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                tokio::spawn(serve(TokioIo::new(stream), front.clone()));
            }
            _ = steps.tick() => step(&cluster),
        }
    }
}

/// Runs each controller of the cluster once.
fn step(cluster: &Cluster) {
    cluster.furnish_namespaces("");
    cluster.collect_garbage();
    cluster.finalize_namespaces();
    cluster.settle_definitions();
    cluster.expire_events(SignedDuration::from_hours(1));
}

async fn serve(stream: TokioIo<tokio::net::TcpStream>, front: Front) {
    let service = tower::service_fn(move |request: Request<hyper::body::Incoming>| {
        let mut front = front.clone();
        async move {
            let (head, body) = request.into_parts();
            // One byte over the limit, so that the front itself can reject a body that is too long.
            let body = Limited::new(body, BODY_LIMIT + 1).collect().await;
            let body = body.map_err(|error| std::io::Error::other(error.to_string()))?.to_bytes();
            let answer: Response<ApiBody> = match front.call(Request::from_parts(head, body.into())).await {
                Ok(answer) => answer,
                Err(never) => match never {},
            };
            Ok::<_, std::io::Error>(answer)
        }
    });
    // Errors of a connection, such as a client that disconnects, are not reported.
    let _ = http1::Builder::new().serve_connection(stream, TowerToHyperService::new(service)).await;
}

/// Returns random bytes from the seeds of std's hash maps, which are drawn from the system. Good
/// enough for an example; a real server reads random bytes from the system.
fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&rand_seed().to_be_bytes());
    }
    bytes
}

fn rand_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}
