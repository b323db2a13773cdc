//! The client of one backend. Each call waits for its turn, is refused while its circuit is open,
//! has a deadline, and is measured.

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

/// One of this many concurrent calls may go to emptying buckets.
const BULK: usize = 4;

/// The store behind one backend, on behalf of one caller.
#[derive(Clone, Debug)]
pub struct Upstream {
    pub(super) client: Client,
    pub(super) region: String,
    pub(super) store: Arc<Store>,
    caller: Arc<Caller>,
    share: Share,
}

/// State shared by all callers.
#[derive(Debug)]
pub(super) struct Store {
    turns: Turns,
    circuits: Mutex<Circuits>,
    /// A digest of the content of each bucket being emptied, as of its last slice.
    pub(super) emptied: Mutex<BTreeMap<BucketName, u64>>,
    backend: String,
    recoveries: UnboundedSender<String>,
    metrics: Metrics,
    /// Permission for calls that change something.
    mandate: Mandate,
    /// Set once the backend is deleted; its metrics are removed.
    retired: AtomicBool,
}

type Outcome<T, E> = Result<T, SdkError<E, HttpResponse>>;

impl Upstream {
    /// Creates a client with these admin credentials and the shared configuration, without a
    /// caller. Makes no call.
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
            // Some compatible stores reject checksums that S3 does not require.
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

    /// Returns a client of the same store on behalf of this caller.
    #[must_use]
    pub fn on_behalf_of(&self, caller: &Arc<Caller>) -> Self {
        Self { caller: caller.clone(), ..self.clone() }
    }

    /// Returns a client of the same store and caller, for emptying a bucket.
    pub(super) fn in_bulk(&self) -> Self {
        Self { share: Share::Bulk, ..self.clone() }
    }

    /// Stops measuring calls, which would create the metrics of a deleted backend again.
    pub(super) fn retire(&self) {
        self.store.retired.store(true, Ordering::Relaxed);
    }

    /// Makes a call once it is the caller's turn, unless its circuit is open.
    ///
    /// The circuits are checked after the wait, so that calls which waited while one opened are not
    /// made.
    ///
    /// The SDK's futures are large, and nested ones larger. Boxed, they don't fill the stack of a
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
        // Checked after the wait as well: the lease may have been lost during it.
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

    /// Records a failed call in its circuits.
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

    /// Wakes the claims that wait for this store. Fails only after shutdown.
    fn recovered(&self) {
        let _ = self.store.recoveries.send(self.store.backend.clone());
    }

    /// ListBuckets: tests endpoint and credentials.
    ///
    /// One bucket is requested: Amazon S3 refuses to list all buckets of an account that may have
    /// more than 10,000. A store that doesn't support the limit returns all of them. The list isn't
    /// used, so it may be longer than what is read.
    ///
    /// The call is made whatever the state of the circuits. If it succeeds after a failure, open
    /// circuits get their trial at once. It waits for no turn, as only passes over the backend make
    /// it, one at a time.
    ///
    /// # Errors
    /// If the call fails.
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

/// Returns true if an S3 operation changes nothing, by its name.
fn is_read(operation: &str) -> bool {
    ["Get", "Head", "List"].iter().any(|verb| operation.starts_with(verb))
}
