//! One client per backend: how its calls are made, whatever they ask for. Each waits for room, is
//! refused while its operation is given a rest, has a deadline, and is measured.

use std::collections::BTreeMap;
use std::error::Error;
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
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use crate::api::{AddressingStyle, Backend, BucketName, SecretKey};
use crate::metrics::{CallResult, Metrics};

use super::access::Access;
use super::bounded::{Bounds, is_too_much_of};
use super::circuit::{Admission, Circuits};
use super::error::{Asked, Refusal, UpstreamError};
use super::whole::Whole;

/// The store behind one backend.
#[derive(Debug)]
pub struct Upstream {
    pub(super) client: Client,
    permits: Semaphore,
    circuits: Mutex<Circuits>,
    /// A digest of what each bucket that is being emptied held at its last slice.
    pub(super) emptied: Mutex<BTreeMap<BucketName, u64>>,
    pub(super) region: String,
    backend: String,
    recoveries: UnboundedSender<String>,
    metrics: Metrics,
    /// Calls that change something are not made.
    read_only: bool,
    /// The backend is gone, and its series with it.
    retired: AtomicBool,
}

type Outcome<T, E> = Result<T, SdkError<E, HttpResponse>>;

impl Upstream {
    /// A client with these admin credentials, and the limits and listeners that all have. Makes no
    /// call.
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
        Self {
            client: Client::from_conf(config),
            permits: Semaphore::new(limits.calls),
            circuits: Mutex::new(Circuits::new(limits.timeout)),
            emptied: Mutex::default(),
            region: backend.region.clone(),
            backend: backend.name.clone(),
            recoveries: access.recoveries.clone(),
            metrics: access.metrics.clone(),
            read_only: access.read_only,
            retired: AtomicBool::new(false),
        }
    }

    /// From now on calls are not measured: that would make the series of a backend that is gone
    /// anew.
    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    /// Calls once there is room, unless the operation fails so often that it is given a rest.
    ///
    /// The semaphore is never closed, so a permit is always had. The circuit is asked after that:
    /// who stood in line while it opened does not call.
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
        if self.read_only && !is_read(operation) {
            return Err(Refusal::read_only(operation));
        }
        let _permit = self.permits.acquire().await;
        let admission = self.circuits.lock().admit(operation, Instant::now());
        if admission == Admission::Refused {
            return Err(Refusal::not_asked(operation));
        }
        match self.timed(operation, call).await {
            Err(refusal) => Err(self.failed(refusal, admission)),
            Ok(output) => {
                self.answered(operation);
                Ok(output)
            }
        }
    }

    async fn timed<T, E: ProvideErrorMetadata + Error + 'static>(
        &self,
        operation: &'static str,
        call: BoxFuture<'_, Outcome<T, E>>,
    ) -> Result<T, Refusal> {
        let began = Instant::now();
        let answer = call.await.map_err(|error| Refusal::of(operation, &error));
        let result = answer.as_ref().map_or_else(Refusal::result, |_| CallResult::Success);
        if !self.retired.load(Ordering::Relaxed) {
            self.metrics.called(&self.backend, operation, result, began.elapsed());
        }
        answer
    }

    /// Tells the circuit of a call that failed.
    fn failed(&self, mut refusal: Refusal, admission: Admission) -> Refusal {
        if refusal.unsent {
            // Neither an outage nor an answer.
        } else if refusal.is_outage() {
            let (asked, chance) = (refusal.retry_after, fastrand::f64());
            let open = self.circuits.lock().failed(refusal.operation, admission, asked, Instant::now(), chance);
            if open {
                tracing::info!(operation = refusal.operation, why = %refusal.class(), "the store is given a rest");
                refusal.failing = Some(Asked(true));
            }
        } else {
            self.answered(refusal.operation);
        }
        refusal
    }

    fn answered(&self, operation: &'static str) {
        if self.circuits.lock().answered(operation) {
            tracing::info!(operation, "the store answers again");
            self.recovered();
        }
    }

    /// Tells whoever waits for this store. Fails only when nobody listens any more.
    fn recovered(&self) {
        let _ = self.recoveries.send(self.backend.clone());
    }

    /// ListBuckets: whether endpoint and credentials work. One bucket is asked for: Amazon S3
    /// refuses to list all of an account that may have more than 10,000. The call is made whatever
    /// the circuits say, and if it succeeds after a failure, what is given a rest is tried at once.
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
        let answer = {
            let _permit = self.permits.acquire().await;
            self.timed("ListBuckets", Box::pin(call)).await
        };
        let tried = self.circuits.lock().probed(answer.is_ok(), Instant::now());
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
