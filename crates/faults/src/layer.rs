//! The tower layer between a client and the service behind it: numbers calls, applies the plan,
//! records the trace.

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

/// The effects of one run: its plan, its numbering and its trace. Cheap to clone; clones are the
/// same run.
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
    /// A run that begins now, by tokio's clock, in no world: calls whose faults need one break.
    pub fn new(plan: Plan<V>) -> Self {
        Self { run: Run::new(plan, None) }
    }

    /// A run that begins now, by tokio's clock, in this world.
    pub fn within(plan: Plan<V>, surroundings: Arc<dyn Surroundings<V>>) -> Self {
        Self { run: Run::new(plan, Some(surroundings)) }
    }

    /// From now on, this is the plan: numbers go on from where they are, patterns count from one.
    pub fn set_plan(&self, plan: Plan<V>) {
        self.run.plan(plan);
    }

    /// From now on nothing goes wrong: the plan for calls to come is dropped, what lasts is over.
    pub fn calm(&self) {
        let mut state = self.run.state();
        state.plan.clear();
        state.lasting.clear();
    }

    /// Adds to the plan: patterns that are added count calls from here on.
    pub fn arm(&self, more: Plan<V>) {
        self.run.arm(more);
    }

    /// The next life of the operator.
    pub fn instance(&self) -> Instance {
        Instance::new(self.next_life(), false)
    }

    /// The life of a second operator, which takes its turn while the first stands still.
    pub fn twin(&self) -> Instance {
        Instance::new(self.next_life(), true)
    }

    fn next_life(&self) -> u32 {
        let mut state = self.run.state();
        state.instances += 1;
        state.instances
    }

    /// The layer between a life's Kubernetes client and the Kubernetes API.
    pub fn kube_layer(&self, instance: &Instance) -> EffectLayer<V> {
        self.layer(instance, Api::Kube)
    }

    /// The layer between a life's S3 clients and an S3 store, addressed in path style.
    pub fn s3_layer(&self, instance: &Instance) -> EffectLayer<V> {
        self.layer(instance, Api::S3)
    }

    fn layer(&self, instance: &Instance, api: Api) -> EffectLayer<V> {
        EffectLayer { effects: self.clone(), instance: instance.clone(), api }
    }

    /// Milliseconds of the run's clock since the start of the run.
    pub fn elapsed_ms(&self) -> u64 {
        self.run.elapsed_ms()
    }

    /// From now on, a call beyond this number never begins: nobody answers it, and no trace tells
    /// of it. A run that goes round and round without time passing comes to an end by that.
    pub fn bound(&self, most: u64) {
        self.run.state().most = most;
    }

    /// From now on the trace keeps the last calls alone: so many at least, twice as many at most.
    /// For a run without end.
    pub fn keep(&self, calls: usize) {
        self.run.state().kept = Some(calls);
    }

    /// Calls with numbers above this one, oldest first, as far as they are kept; so many at most.
    pub fn calls_after(&self, number: u64, most: usize) -> Vec<Line<V>> {
        let state = self.run.state();
        state.trace.lines_after(number).iter().take(most).cloned().collect()
    }

    /// Whether calls were kept from beginning by [`Effects::bound`].
    pub fn exhausted(&self) -> bool {
        self.run.state().exhausted
    }

    /// How many calls have begun.
    pub fn count(&self) -> u64 {
        self.run.state().trace.effects()
    }

    /// How many calls of this life have begun.
    pub fn count_of(&self, instance: &Instance) -> usize {
        let state = self.run.state();
        state.trace.lines().iter().filter(|line| line.instance == instance.id()).count()
    }

    /// The trace up to now.
    pub fn trace(&self) -> Trace<V> {
        self.run.state().trace.clone()
    }

    /// The trace up to now; it is not kept, so calls are counted from one again.
    pub fn take_trace(&self) -> Trace<V> {
        std::mem::take(&mut self.run.state().trace)
    }

    /// The entries of the plan that have met no call to which their fault could apply.
    pub fn unfired(&self) -> Plan<V> {
        let state = self.run.state();
        let unfired = state.plan.iter().filter(|armed| !armed.fired);
        Plan { entries: unfired.map(|armed| armed.entry.clone()).collect() }
    }

    /// The faults that have met a call, each entry of a plan once.
    pub fn fired(&self) -> Vec<Fault<V>> {
        self.run.state().fired.clone()
    }

    /// Whether a fault has met a request in a namespace.
    pub fn has_met(&self, fault: Fault<V>, namespace: &str) -> bool {
        let is_there = |call: &Call| matches!(call, Call::Kube(call) if call.namespace.as_deref() == Some(namespace));
        self.run.state().trace.lines().iter().any(|line| line.fault == Some(fault) && is_there(&line.call))
    }

    /// From now on, calls without a planned fault meet this outage. Of several, the first counts.
    pub fn begin_outage(&self, outage: Outage<V>) {
        self.run.state().outages.push(outage);
    }

    /// Ends all outages of a host. Calls that hang go on hanging.
    pub fn end_outages(&self, host: &str) {
        self.run.state().outages.retain(|outage| outage.host != host);
    }
}

#[derive(Clone, Copy, Debug)]
enum Api {
    Kube,
    S3,
}

/// Puts a service behind the faults of a run, for one life of the operator. Made by
/// [`Effects::kube_layer`] and [`Effects::s3_layer`].
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
    /// The call from beginning to end.
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

    /// Numbers the call; `None` if its instance is dead, as the dead make no calls, or if it is one
    /// too many.
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
/// Those of the service itself; and, where a fault breaks the connection, an [`std::io::Error`]:
/// `ConnectionReset` for a lost request or answer, which the caller can't tell apart, and
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

    /// Always ready: the service behind is asked when a call gets as far as that.
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
