//! A front as a tower service.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::client::Body;
use kube_sim::Cluster;
use kube_sim::output::{self, ApiBody};
use kube_sim::status::{self, Failure};

use super::admission::RequestAdmission;
use super::options::{Authorization, FrontOptions};
use super::pipeline::Pipeline;
use super::rbac;
use super::tokens::Issued;

/// Maximum size in bytes of a request body that a [`Front`] accepts: 3 MiB, as an API server.
pub const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// An API server for clients other than `kube`, in front of a [`Cluster`]: a [`tower::Service`]
/// over the same state.
///
/// The service never fails. Each answer has the [`Identity`](crate::Identity) of its caller in its
/// extensions, for logging. Clones share their tokens.
#[derive(Clone)]
pub struct Front {
    inner: Arc<Pipeline>,
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Front").finish_non_exhaustive()
    }
}

impl Front {
    /// Creates a front for kubectl, Helm and Go clients. From now on the cluster also serves kinds
    /// that are stored but have no controllers: RBAC, workloads, admission, storage and networking.
    ///
    /// Time and order don't change; only tokens use [`FrontOptions::random`].
    pub fn new(cluster: &Cluster, options: FrontOptions) -> Self {
        cluster.admit_with(Arc::new(RequestAdmission::of_nobody()));
        cluster.serve_inert_kinds();
        if options.authorization == Authorization::Rbac {
            cluster.bootstrap(rbac::first_roles());
        }
        Self { inner: Arc::new(Pipeline::new(cluster.clone(), options)) }
    }

    /// Returns the ServiceAccount tokens that the front knows.
    pub fn issued(&self) -> Vec<Issued> {
        self.inner.issued()
    }

    /// Replaces the ServiceAccount tokens that the front knows.
    pub fn reissue(&self, issued: Vec<Issued>) {
        self.inner.reissue(issued);
    }
}

impl tower::Service<Request<Body>> for Front {
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ApiBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let pipeline = self.inner.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            Ok(match collect(body).await {
                Ok(body) => pipeline.answer(&head, &body).await,
                Err(failure) => output::refusal(&failure),
            })
        })
    }
}

async fn collect(body: Body) -> Result<Bytes, Failure> {
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(status::body_too_large(BODY_LIMIT)),
        Err(error) => Err(status::bad_request(format!("the body of the request broke off: {error}"))),
    }
}
