//! Tower layer between a client and a service. It numbers calls, applies the plan, and records the
//! trace.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::{BoxFuture, pending};
use http::uri::Authority;
use http::{Request, Response};
use tower::{BoxError, Layer, Service};

use super::call::{Call, KubeCall, S3Call};
use super::effect::Effect;
use super::fault::Fault;
use super::instance::Instance;
use super::outage::Outage;
use super::plan::Plan;
use super::row::{Nobody, Vocabulary};
use super::run::Run;
use super::surroundings::Surroundings;
use super::trace::{Line, Trace};

/// The calls of one run: its plan, its numbering and its trace. It is cheap to clone, and clones
/// are the same run.
#[derive(Debug)]
pub struct Effects<V = Nobody> {
    run: Run<V>,
}

impl<V> Clone for Effects<V> {
    fn clone(&self) -> Self {
        Self { run: self.run.clone() }
    }
}

impl<V: Vocabulary> Effects<V> {
    /// Starts a run now, by tokio's clock, without a world. Calls fail if their fault needs one.
    pub fn new(plan: Plan<V>) -> Self {
        Self { run: Run::new(plan, None) }
    }

    /// Starts a run now, by tokio's clock, in this world.
    pub fn within(plan: Plan<V>, surroundings: Arc<dyn Surroundings<V>>) -> Self {
        Self { run: Run::new(plan, Some(surroundings)) }
    }

    /// Replaces the plan. Numbers continue, and patterns count from one.
    pub fn set_plan(&self, plan: Plan<V>) {
        self.run.plan(plan);
    }

    /// Removes the plan for future calls, and ends lasting faults.
    pub fn calm(&self) {
        let mut state = self.run.state();
        state.plan.clear();
        state.lasting.clear();
    }

    /// Adds to the plan. New patterns count calls from here on.
    pub fn arm(&self, more: Plan<V>) {
        self.run.arm(more);
    }

    /// Creates the next instance of the operator.
    pub fn instance(&self) -> Instance {
        Instance::new(self.next_life(), false)
    }

    /// Creates the instance of a second operator, which runs while the first is suspended.
    pub fn twin(&self) -> Instance {
        Instance::new(self.next_life(), true)
    }

    fn next_life(&self) -> u32 {
        let mut state = self.run.state();
        state.instances += 1;
        state.instances
    }

    /// Returns the layer between an instance's Kubernetes client and the Kubernetes API.
    pub fn kube_layer(&self, instance: &Instance) -> EffectLayer<V> {
        self.layer(instance, Api::Kube)
    }

    /// Returns the layer between an instance's S3 clients and an S3 store with path-style
    /// addressing.
    pub fn s3_layer(&self, instance: &Instance) -> EffectLayer<V> {
        self.layer(instance, Api::S3)
    }

    fn layer(&self, instance: &Instance, api: Api) -> EffectLayer<V> {
        EffectLayer { effects: self.clone(), instance: instance.clone(), api }
    }

    /// Returns the milliseconds of the run's clock since the start of the run.
    pub fn elapsed_ms(&self) -> u64 {
        self.run.elapsed_ms()
    }

    /// Limits the number of calls. A call beyond the limit never begins: it gets no answer and is
    /// not in the trace. This ends a run that loops without time passing.
    pub fn bound(&self, most: u64) {
        self.run.state().most = most;
    }

    /// Keeps only the last calls in the trace: at least this many, and at most twice as many. For a
    /// run without end.
    pub fn keep(&self, calls: usize) {
        self.run.state().kept = Some(calls);
    }

    /// Returns calls with numbers above this one, oldest first, as far as they are kept; at most
    /// `most`.
    pub fn calls_after(&self, number: u64, most: usize) -> Vec<Line<V>> {
        let state = self.run.state();
        state.trace.lines_after(number).iter().take(most).cloned().collect()
    }

    /// Returns true if [`Effects::bound`] has kept calls from beginning.
    pub fn exhausted(&self) -> bool {
        self.run.state().exhausted
    }

    /// Returns how many calls have begun.
    pub fn count(&self) -> u64 {
        self.run.state().trace.effects()
    }

    /// Returns how many calls of this instance have begun.
    pub fn count_of(&self, instance: &Instance) -> usize {
        let state = self.run.state();
        state.trace.lines().iter().filter(|line| line.instance == instance.id()).count()
    }

    /// Returns the trace so far.
    pub fn trace(&self) -> Trace<V> {
        self.run.state().trace.clone()
    }

    /// Takes the trace so far. Calls are then counted from one again.
    pub fn take_trace(&self) -> Trace<V> {
        std::mem::take(&mut self.run.state().trace)
    }

    /// Returns the entries of the plan that have met no call to which their fault could apply.
    pub fn unfired(&self) -> Plan<V> {
        let state = self.run.state();
        let unfired = state.plan.iter().filter(|armed| !armed.fired);
        Plan { entries: unfired.map(|armed| armed.entry.clone()).collect() }
    }

    /// Returns the faults that have met a call, once per entry of a plan.
    pub fn fired(&self) -> Vec<Fault<V>> {
        self.run.state().fired.clone()
    }

    /// Returns true if a fault has met a request in a namespace.
    pub fn has_met(&self, fault: Fault<V>, namespace: &str) -> bool {
        let is_there = |call: &Call| matches!(call, Call::Kube(call) if call.namespace.as_deref() == Some(namespace));
        self.run.state().trace.lines().iter().any(|line| line.fault == Some(fault) && is_there(&line.call))
    }

    /// Starts an outage, which meets calls without a planned fault. If there are several, the first
    /// one counts.
    pub fn begin_outage(&self, outage: Outage<V>) {
        self.run.state().outages.push(outage);
    }

    /// Ends all outages of a host. Calls that hang stay that way.
    pub fn end_outages(&self, host: &str) {
        self.run.state().outages.retain(|outage| outage.host != host);
    }
}

#[derive(Clone, Copy, Debug)]
enum Api {
    Kube,
    S3,
}

/// Layer that puts a service behind the faults of a run, for one instance of the operator. Created
/// by [`Effects::kube_layer`] and [`Effects::s3_layer`].
#[derive(Debug)]
pub struct EffectLayer<V = Nobody> {
    effects: Effects<V>,
    instance: Instance,
    api: Api,
}

impl<V> Clone for EffectLayer<V> {
    fn clone(&self) -> Self {
        Self { effects: self.effects.clone(), instance: self.instance.clone(), api: self.api }
    }
}

impl<V: Vocabulary> EffectLayer<V> {
    /// Sends a call and returns its result.
    fn send<S, Q, B>(&self, inner: S, request: Request<Q>) -> BoxFuture<'static, Result<Response<B>, BoxError>>
    where
        S: Service<Request<Q>, Response = Response<B>> + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        Q: Send + 'static,
        B: From<Vec<u8>> + Send + 'static,
    {
        match self.begin(&request) {
            Some(effect) => Box::pin(effect.run(inner, request)),
            None => Box::pin(pending()),
        }
    }

    /// Numbers the call. Returns `None` if its instance is dead and so makes no calls, or if the
    /// limit is exceeded.
    fn begin<Q>(&self, request: &Request<Q>) -> Option<Effect<V>> {
        if !self.instance.may_act() {
            return None;
        }
        let call = match self.api {
            Api::Kube => Call::Kube(KubeCall::read(request.method(), request.uri())),
            Api::S3 => Call::S3(S3Call::read(request.method(), request.uri(), request.headers())),
        };
        let host = request.uri().authority().map_or("", Authority::as_str);
        let (number, fault) = self.effects.run.begin(self.instance.id(), host, &call)?;
        Some(Effect { run: self.effects.run.clone(), instance: self.instance.clone(), number, call, fault })
    }
}

impl<S, V: Vocabulary> Layer<S> for EffectLayer<V> {
    type Service = EffectService<S, V>;

    fn layer(&self, inner: S) -> Self::Service {
        EffectService { inner, layer: self.clone() }
    }
}

/// A service behind the faults of a run.
///
/// # Errors
///
/// Returns errors of the service, and an [`std::io::Error`] if a fault breaks the connection:
/// `ConnectionReset` for a lost request or answer, which the caller cannot distinguish, and
/// `ConnectionRefused` for `unreachable`.
#[derive(Clone, Debug)]
pub struct EffectService<S, V = Nobody> {
    inner: S,
    layer: EffectLayer<V>,
}

impl<S, V, Q, B> Service<Request<Q>> for EffectService<S, V>
where
    V: Vocabulary,
    S: Service<Request<Q>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    Q: Send + 'static,
    B: From<Vec<u8>> + Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    /// Always ready: the inner service is polled only when a call reaches it.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        if self.layer.instance.standstill().is_on() {
            let (layer, inner) = (self.layer.clone(), self.inner.clone());
            return Box::pin(async move {
                layer.instance.moves().await;
                layer.send(inner, request).await
            });
        }
        self.layer.send(self.inner.clone(), request)
    }
}
