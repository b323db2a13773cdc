//! The front: what kubectl, Helm and Go clients need of an API server besides its resources.
//!
//! A request goes through a pipeline of pure steps before and after the [`Cluster`]'s own service:
//! `identity` says who calls, `accept` which form of an answer is wanted, `body` makes JSON of
//! protobuf and YAML; `face` puts requests at another version, or for the events of the core group,
//! in the form of what is stored, and its answer back; `table` makes tables of it. Discovery,
//! OpenAPI and tables are made of one `catalog`, which is read from what the store serves.

mod accept;
mod authorize;
mod body;
mod catalog;
mod discovery;
mod events;
mod face;
mod health;
mod identity;
mod known;
mod openapi;
mod pipeline;
mod protobuf;
mod rbac;
mod reviews;
mod scale;
mod stored;
mod table;
mod tokens;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::client::Body;

pub use identity::Identity;
pub use tokens::{Issued, IssuedTo};

use super::Cluster;
use super::builtin;
use super::output::{self, ApiBody};
use super::own_writes;
use super::status::{self, Failure};
use super::webhooks::Webhooks;
use super::write::{self, Ownership};

/// Most bytes of a request's body that a [`Front`] takes, as a server does: 3 MiB.
pub const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// Where random bytes come from, for tokens. Must be unpredictable where the server can be reached
/// by others.
pub type Random = Arc<dyn Fn() -> [u8; 32] + Send + Sync>;

/// Who may do what at a [`Front`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorization {
    /// Whoever is known may do everything.
    #[default]
    AllowAll,
    /// What roles and bindings say, and members of `system:masters` everything. The cluster gets
    /// the ClusterRoles `cluster-admin`, `admin`, `edit` and `view`.
    Rbac,
}

/// Is told of each token that is handed out.
pub type KeepIssued = Arc<dyn Fn(&Issued) + Send + Sync>;

/// How a [`Front`] is set up.
#[derive(Clone)]
pub struct FrontOptions {
    /// Whose each bearer token is. Tokens of ServiceAccounts, which clients ask for, come on top.
    pub tokens: BTreeMap<String, Identity>,
    /// Who calls without a token; `None` refuses those with 401.
    pub anonymous: Option<Identity>,
    /// Who may do what.
    pub authorization: Authorization,
    /// For the tokens of ServiceAccounts.
    pub random: Random,
    /// Tokens of ServiceAccounts that were handed out before.
    pub issued: Vec<Issued>,
    /// Told of each further one before it is handed out; it has to be quick.
    pub keep_issued: Option<KeepIssued>,
    /// What calls admission webhooks; without it they are kept and not asked.
    pub webhooks: Option<Arc<dyn Webhooks>>,
    /// The Kubernetes version that clients are told, without its `v`, such as `1.34.4`.
    pub server_version: String,
}

impl FrontOptions {
    /// A server of the version whose behaviour this crate has, to anybody without a token: an
    /// admin.
    pub fn open(random: Random) -> Self {
        let admin = Identity::new("admin", &["system:masters"]);
        Self {
            tokens: BTreeMap::new(),
            anonymous: Some(admin),
            authorization: Authorization::AllowAll,
            random,
            issued: Vec::new(),
            keep_issued: None,
            webhooks: None,
            server_version: "1.34.4".to_owned(),
        }
    }
}

impl std::fmt::Debug for FrontOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let users: Vec<&str> = self.tokens.values().map(|identity| identity.user.as_str()).collect();
        let mut out = f.debug_struct("FrontOptions");
        out.field("users", &users).field("anonymous", &self.anonymous).field("authorization", &self.authorization);
        out.field("server_version", &self.server_version).finish_non_exhaustive()
    }
}

/// An API server as clients other than `kube` know it, in front of a [`Cluster`]: a
/// [`tower::Service`] over the same state.
///
/// Never fails as a service. Each answer has the [`Identity`] of its caller among its extensions,
/// for a log. Clones share their tokens.
#[derive(Clone)]
pub struct Front {
    inner: Arc<pipeline::Pipeline>,
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Front").finish_non_exhaustive()
    }
}

impl Front {
    /// The tokens of ServiceAccounts that it knows.
    pub fn issued(&self) -> Vec<Issued> {
        self.inner.issued()
    }

    /// From now on it knows these, and no others.
    pub fn reissue(&self, issued: Vec<Issued>) {
        self.inner.reissue(issued);
    }
}

impl Cluster {
    /// This cluster as kubectl, Helm and Go clients know one. From now on it also serves kinds that
    /// it keeps and that nobody acts on: those of RBAC, workloads, admission, storage, networks.
    ///
    /// Time and order are as ever; only tokens come from [`FrontOptions::random`].
    pub fn front(&self, options: FrontOptions) -> Front {
        let mut state = self.lock();
        for kind in builtin::extra_kinds() {
            if state.kind(&kind.group, &kind.version, &kind.plural).is_none() {
                state.serve(kind.clone());
            }
        }
        if options.authorization == Authorization::Rbac
            && let Some(kind) = state.kind("rbac.authorization.k8s.io", "v1", "clusterroles")
        {
            for role in rbac::first_roles() {
                // One that is there already is somebody's.
                let _ = write::create(&mut state, &kind, role, Ownership::Creator, &own_writes());
            }
        }
        drop(state);
        Front { inner: Arc::new(pipeline::Pipeline::new(self.clone(), options)) }
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
                Err(failure) => refusal(&failure),
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

/// The answer that tells of a failure.
fn refusal(failure: &Failure) -> Response<ApiBody> {
    let code = StatusCode::from_u16(failure.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    output::answer(code, &output::status_object(failure), &[])
}
