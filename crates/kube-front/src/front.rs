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

/// Most bytes of a request's body that a [`Front`] takes, as a server does: 3 MiB.
pub const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// An API server as clients other than `kube` know it, in front of a [`Cluster`]: a
/// [`tower::Service`] over the same state.
///
/// Never fails as a service. Each answer has the [`Identity`](crate::Identity) of its caller among
/// its extensions, for a log. Clones share their tokens.
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
    /// A cluster as kubectl, Helm and Go clients know one. From now on it also serves kinds that it
    /// keeps and that nobody acts on: those of RBAC, workloads, admission, storage, networks.
    ///
    /// Time and order are as ever; only tokens come from [`FrontOptions::random`].
    pub fn new(cluster: &Cluster, options: FrontOptions) -> Self {
        cluster.admit_with(Arc::new(RequestAdmission::of_nobody()));
        cluster.serve_inert_kinds();
        if options.authorization == Authorization::Rbac {
            cluster.bootstrap(rbac::first_roles());
        }
        Self { inner: Arc::new(Pipeline::new(cluster.clone(), options)) }
    }

    /// The tokens of ServiceAccounts that it knows.
    pub fn issued(&self) -> Vec<Issued> {
        self.inner.issued()
    }

    /// From now on it knows these, and no others.
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
