//! One client per backend: how its calls are made, whatever they ask for. Each waits for its turn,
//! is refused while its operation is given a rest, has a deadline, and is measured.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region, RequestChecksumCalculation, SharedHttpClient};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use crate::api::{AddressingStyle, Backend, BucketName, SecretKey};
use crate::mandate::Mandate;
use crate::metrics::{CallResult, Metrics};
use crate::turns::{Share, Turns};

use super::access::Access;
use super::bounded::{Bounds, is_too_much_of};
use super::caller::Caller;
use super::circuit::{Admission, Asker, Circuits, Failure};
use super::error::{Asked, Refusal, UpstreamError};
use super::whole::Whole;

/// Of the calls to a store one in so many may go to emptying buckets.
const BULK: usize = 4;

/// The store behind one backend, in the hands of one caller.
#[derive(Clone, Debug)]
pub struct Upstream {
    pub(super) client: Client,
    pub(super) region: String,
    pub(super) store: Arc<Store>,
    caller: Arc<Caller>,
    share: Share,
}

/// What its callers share.
#[derive(Debug)]
pub(super) struct Store {
    turns: Turns,
    circuits: Mutex<Circuits>,
    /// A digest of what each bucket that is being emptied held at its last slice.
    pub(super) emptied: Mutex<BTreeMap<BucketName, u64>>,
    backend: String,
    recoveries: UnboundedSender<String>,
    metrics: Metrics,
    /// Whether calls may be made that change something.
    mandate: Mandate,
    /// The backend is gone, and its series with it.
    retired: AtomicBool,
}

type Outcome<T, E> = Result<T, SdkError<E, HttpResponse>>;

impl Upstream {
    /// A client with these admin credentials, and the limits and listeners that all have, in
    /// nobody's hands. Makes no call.
    ///
    /// The SDK's own retries are off: their budget would be shared by all backends, and a lost
    /// answer must be seen.
    pub fn new(
        backend: &Backend,
        access_key_id: &str,
        secret_key: &SecretKey,
        http: SharedHttpClient,
        access: &Access,
    ) -> Self {
        let limits = access.limits;
        let timeouts = TimeoutConfig::builder().operation_timeout(limits.timeout).build();
        let config = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .credentials_provider(Credentials::new(access_key_id, secret_key.expose(), None, None, "s3backend"))
            .endpoint_url(backend.endpoint.as_str())
            .force_path_style(backend.addressing_style == AddressingStyle::Path)
            .http_client(http)
            .interceptor(Bounds)
            .interceptor(Whole)
            .region(Region::new(backend.region.clone()))
            // Checksums that S3 does not ask for are what some compatible stores trip over.
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .retry_config(RetryConfig::disabled())
            .sleep_impl(TokioSleep::new())
            .timeout_config(timeouts)
            .build();
        let store = Store {
            turns: Turns::new(limits.calls, (limits.calls / BULK).max(1)),
            circuits: Mutex::new(Circuits::new(limits.timeout)),
            emptied: Mutex::default(),
            backend: backend.name.clone(),
            recoveries: access.recoveries.clone(),
            metrics: access.metrics.clone(),
            mandate: access.mandate.clone(),
            retired: AtomicBool::new(false),
        };
        Self {
            client: Client::from_conf(config),
            region: backend.region.clone(),
            store: Arc::new(store),
            caller: Arc::default(),
            share: Share::Single,
        }
    }

    /// The same store, called on behalf of this one.
    #[must_use]
    pub fn on_behalf_of(&self, caller: &Arc<Caller>) -> Self {
        Self { caller: caller.clone(), ..self.clone() }
    }

    /// The same store for the same caller, who empties a bucket.
    pub(super) fn in_bulk(&self) -> Self {
        Self { share: Share::Bulk, ..self.clone() }
    }

    /// From now on calls are not measured: that would make the series of a backend that is gone
    /// anew.
    pub(super) fn retire(&self) {
        self.store.retired.store(true, Ordering::Relaxed);
    }

    /// Calls once it is the caller's turn, unless the operation fails so often that it is given a
    /// rest. The circuits are asked after the wait: who stood in line while one opened does not
    /// call.
    ///
    /// The SDK's futures are large, and nested ones larger: in a box they don't fill the stack of a
    /// worker thread.
    pub(super) fn call<'a, T: 'a, E: ProvideErrorMetadata + Error + 'static>(
        &'a self,
        operation: &'static str,
        call: impl Future<Output = Outcome<T, E>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, Refusal>> {
        let call: BoxFuture<'a, Outcome<T, E>> = Box::pin(call);
        Box::pin(self.admitted(operation, call))
    }

    async fn admitted<T, E: ProvideErrorMetadata + Error + 'static>(
        &self,
        operation: &'static str,
        call: BoxFuture<'_, Outcome<T, E>>,
    ) -> Result<T, Refusal> {
        let Store { turns, circuits, backend, mandate, .. } = self.store.as_ref();
        let _turn = turns.take(self.share, self.caller.rank(backend, self.share)).await;
        self.caller.calls(backend, self.share);
        // After the wait too: whoever led before it may not lead any more.
        let permit = if is_read(operation) {
            None
        } else {
            Some(mandate.permit().map_err(|no| Refusal::forbidden(operation, no))?)
        };
        let admission = circuits.lock().admit(self.asker(operation), Instant::now());
        if admission == Admission::Refused {
            return Err(Refusal::not_asked(operation));
        }
        let outcome = self.timed(operation, call).await;
        if let Some(permit) = permit {
            permit.over();
        }
        match outcome {
            Err(refusal) => Err(self.failed(refusal, admission)),
            Ok(output) => {
                self.answered(operation);
                Ok(output)
            }
        }
    }

    fn asker(&self, operation: &'static str) -> Asker<'_> {
        Asker { operation, namespace: self.caller.namespace(), claim: self.caller.claim() }
    }

    async fn timed<T, E: ProvideErrorMetadata + Error + 'static>(
        &self,
        operation: &'static str,
        call: BoxFuture<'_, Outcome<T, E>>,
    ) -> Result<T, Refusal> {
        let began = Instant::now();
        let answer = call.await.map_err(|error| Refusal::of(operation, &error));
        let result = answer.as_ref().map_or_else(Refusal::result, |_| CallResult::Success);
        let Store { retired, metrics, backend, .. } = self.store.as_ref();
        if !retired.load(Ordering::Relaxed) {
            metrics.called(backend, operation, result, began.elapsed());
        }
        answer
    }

    /// Tells the circuit of a call that failed.
    fn failed(&self, mut refusal: Refusal, admission: Admission) -> Refusal {
        if refusal.unsent {
            // Neither an outage nor an answer.
        } else if refusal.is_outage() {
            let failure =
                Failure { admission, asked: refusal.retry_after, at: Instant::now(), chance: fastrand::f64() };
            if self.store.circuits.lock().failed(self.asker(refusal.operation), failure) {
                tracing::info!(operation = refusal.operation, why = %refusal.class(), "the store is given a rest");
                refusal.failing = Some(Asked(true));
            }
        } else {
            self.answered(refusal.operation);
        }
        refusal
    }

    fn answered(&self, operation: &'static str) {
        if self.store.circuits.lock().answered(self.asker(operation)) {
            tracing::info!(operation, "the store answers again");
            self.recovered();
        }
    }

    /// Tells whoever waits for this store. Fails only when nobody listens any more.
    fn recovered(&self) {
        let _ = self.store.recoveries.send(self.store.backend.clone());
    }

    /// ListBuckets: whether endpoint and credentials work. One bucket is asked for: Amazon S3
    /// refuses to list all of an account that may have more than 10,000. The call is made whatever
    /// the circuits say, and if it succeeds after a failure, what is given a rest is tried at once.
    /// It waits behind nobody: a pass over a backend makes it, and there is one of those at a time.
    ///
    /// A store that does not know the bound tells all buckets. Nothing is read in the list, so it
    /// may be longer than is taken in.
    ///
    /// # Errors
    /// When they don't.
    pub async fn probe(&self) -> Result<(), UpstreamError> {
        let call = async {
            match self.client.list_buckets().max_buckets(1).send().await {
                Err(error) if is_too_much_of(&error, "ListAllMyBucketsResult") => Ok(()),
                answer => answer.map(drop),
            }
        };
        let answer = self.timed("ListBuckets", Box::pin(call)).await;
        let tried = self.store.circuits.lock().probed(answer.is_ok(), Instant::now());
        if tried {
            self.recovered();
        }
        answer.map_err(Refusal::error)
    }
}

/// Whether an operation of S3 changes nothing, by its name.
fn is_read(operation: &str) -> bool {
    ["Get", "Head", "List"].iter().any(|verb| operation.starts_with(verb))
}
