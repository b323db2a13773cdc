//! One call on its way from a client to the service behind, with the fault that befalls it.

use std::io;
use std::time::Duration;

use futures::future::pending;
use http::{Request, Response};
use tower::{BoxError, Service, ServiceExt};

use super::answers::refusal;
use super::call::Call;
use super::fault::{Applied, CrashPoint, Fault};
use super::instance::Instance;
use super::layer::Effects;
use super::standstill::Stop;
use super::trace::Answer;

/// How long the API server waits for an admission webhook.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// A call on its way. Dropped before its answer, it says so in the trace.
pub(super) struct Effect {
    pub(super) effects: Effects,
    pub(super) instance: Instance,
    pub(super) number: u64,
    pub(super) call: Call,
    pub(super) fault: Option<Fault>,
}

/// The caller never hears of this call again, because the operator is dead or nobody answers.
struct Silence;

type Answered<B> = Result<Result<Response<B>, BoxError>, Silence>;

impl Effect {
    /// The call from beginning to end, unless its instance dies before.
    pub(super) async fn run<S, Q, B>(self, inner: S, request: Request<Q>) -> Result<Response<B>, BoxError>
    where
        S: Service<Request<Q>, Response = Response<B>>,
        S::Error: Into<BoxError>,
        B: From<Vec<u8>>,
    {
        let answered = tokio::select! {
            biased;
            () = self.instance.is_over() => Err(Silence),
            answered = self.answered(inner, request) => answered,
        };
        let Ok(answer) = answered else {
            return pending().await;
        };
        self.effects.amend(self.number, |line| {
            line.answer = match &answer {
                Ok(response) => Answer::Status(response.status().as_u16()),
                Err(_) => Answer::Broken,
            };
        });
        answer
    }

    /// The call with its fault. An answer is read when the operator moves.
    async fn answered<S, Q, B>(&self, inner: S, request: Request<Q>) -> Answered<B>
    where
        S: Service<Request<Q>, Response = Response<B>>,
        S::Error: Into<BoxError>,
        B: From<Vec<u8>>,
    {
        let answered = self.with_fault(inner, request).await;
        self.instance.moves().await;
        answered
    }

    async fn with_fault<S, Q, B>(&self, inner: S, request: Request<Q>) -> Answered<B>
    where
        S: Service<Request<Q>, Response = Response<B>>,
        S::Error: Into<BoxError>,
        B: From<Vec<u8>>,
    {
        let Some(fault) = self.fault.filter(|fault| fault.concerns(&self.call)) else {
            return self.reach_world(inner, request).await;
        };
        let request = match self.befall(fault, request) {
            Ok(request) => request,
            Err(nowhere) => return Ok(Err(nowhere)),
        };
        match fault {
            Fault::LostRequest => Ok(Err(connection_lost())),
            Fault::LostAnswer => {
                // Dropped whatever it is, also an error.
                let _lost = self.reach_world(inner, request).await?;
                Ok(Err(connection_lost()))
            }
            Fault::Hang => Err(Silence),
            Fault::Slow { millis } => {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                self.reach_world(inner, request).await
            }
            Fault::Pause { seconds } => {
                self.stand_still(Stop::For(Duration::from_secs(seconds.into()))).await;
                self.reach_world(inner, request).await
            }
            Fault::Twin => {
                self.stand_still(Stop::Twin).await;
                self.reach_world(inner, request).await
            }
            Fault::Crash(point) => self.with_crash(point, inner, request).await,
            Fault::ServerError(Applied::Applied) => {
                let _hidden = self.reach_world(inner, request).await?;
                self.refused(fault)
            }
            Fault::WebhookTimeout => {
                tokio::time::sleep(WEBHOOK_TIMEOUT).await;
                self.refused(fault)
            }
            Fault::Unreachable => Ok(Err(io::Error::from(io::ErrorKind::ConnectionRefused).into())),
            Fault::Conflict
            | Fault::ServerError(Applied::Not)
            | Fault::Throttle { .. }
            | Fault::Forbidden
            | Fault::Denied
            | Fault::QuotaExceeded
            | Fault::NamespaceTerminating
            | Fault::ExpiredContinue
            | Fault::InternalError
            | Fault::SlowDown
            | Fault::AccessDenied
            | Fault::Head(_)
            | Fault::VerbDown(_)
            | Fault::AlreadyOwned
            | Fault::BucketExists
            | Fault::OkOnExisting
            | Fault::CredentialsRevoked
            | Fault::ClockSkew
            | Fault::ErrorIn200
            | Fault::NotImplemented(_) => self.refused(fault),
            Fault::Step { .. }
            | Fault::Skew { .. }
            | Fault::Lag { .. }
            | Fault::AlreadyExists(_)
            | Fault::Stale { .. }
            | Fault::Rewind
            | Fault::Collapse
            | Fault::WatchCut
            | Fault::WatchGone
            | Fault::WatchSilent
            | Fault::WatchDuplicate
            | Fault::Shuffle
            | Fault::GcLate
            | Fault::Recreate
            | Fault::Tamper(_)
            | Fault::Edit(_)
            | Fault::PartialDelete
            | Fault::Locked
            | Fault::LateWrite
            | Fault::Vanish
            | Fault::Usurp { .. }
            | Fault::StaleRead
            | Fault::Truncated => self.reach_world(inner, request).await,
        }
    }

    /// Lets what happens in the world happen.
    fn befall<Q>(&self, fault: Fault, request: Request<Q>) -> Result<Request<Q>, BoxError> {
        if !fault.needs_surroundings() {
            return Ok(request);
        }
        let surroundings = self.effects.surroundings.as_ref();
        let surroundings = surroundings.ok_or_else(|| format!("{fault} has no world to happen in"))?;
        let (mut head, body) = request.into_parts();
        surroundings.befall(fault, &self.call, &mut head);
        Ok(Request::from_parts(head, body))
    }

    /// The operator stops before the request is sent, and goes on with it later, whatever has become of the world.
    async fn stand_still(&self, stop: Stop) {
        self.instance.stop(stop);
        self.instance.moves().await;
    }

    async fn with_crash<S, Q, B>(&self, point: CrashPoint, inner: S, request: Request<Q>) -> Answered<B>
    where
        S: Service<Request<Q>, Response = Response<B>>,
        S::Error: Into<BoxError>,
    {
        match point {
            CrashPoint::Before => {
                self.instance.crash(self.number);
                Err(Silence)
            }
            CrashPoint::AfterEffect => {
                let _unseen = self.reach_world(inner, request).await?;
                self.instance.crash(self.number);
                Err(Silence)
            }
            CrashPoint::AfterAnswer => {
                let answer = self.reach_world(inner, request).await?;
                self.instance.doom(self.number);
                Ok(answer)
            }
        }
    }

    /// Hands the request to the service behind, unless the instance has died on the way.
    async fn reach_world<S, Q, B>(&self, inner: S, request: Request<Q>) -> Answered<B>
    where
        S: Service<Request<Q>, Response = Response<B>>,
        S::Error: Into<BoxError>,
    {
        if !self.instance.may_act() {
            return Err(Silence);
        }
        let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        let answer = inner.oneshot(self.arrives(request)).await.map_err(Into::into);
        if let Ok(response) = &answer {
            let status = response.status().as_u16();
            self.effects.amend(self.number, |line| line.world = Some(status));
            if let Some(surroundings) = &self.effects.surroundings {
                surroundings.carried_out(self.number, &self.call, &host, status);
            }
        }
        Ok(answer)
    }

    /// Tells the world of the request.
    fn arrives<Q>(&self, request: Request<Q>) -> Request<Q> {
        let Some(surroundings) = &self.effects.surroundings else { return request };
        let (mut head, body) = request.into_parts();
        surroundings.arrives(self.number, &self.call, &mut head);
        Request::from_parts(head, body)
    }

    /// The fault's own answer. Faults are given to calls that they can apply to, so there is one.
    fn refused<B: From<Vec<u8>>>(&self, fault: Fault) -> Answered<B> {
        let refusal = refusal(fault, &self.call);
        Ok(refusal.ok_or_else(|| format!("{fault} has no answer to {}", self.call).into()))
    }
}

impl Drop for Effect {
    fn drop(&mut self) {
        let end = if self.instance.is_dead() { Answer::Died } else { Answer::Dropped };
        self.effects.amend(self.number, |line| {
            if line.answer == Answer::Pending {
                line.answer = end;
            }
        });
    }
}

/// One error for both directions: from outside, a lost request and a lost answer look alike.
fn connection_lost() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}
