//! One call on its way from a client to a service, with its fault.

use std::io;

use futures::future::pending;
use http::{Request, Response};
use tower::{BoxError, Service, ServiceExt};

use super::answer::Answered;
use super::call::{Call, CrashPoint};
use super::fault::Fault;
use super::instance::Instance;
use super::row::{Application, Refusal, Vocabulary};
use super::run::Run;
use super::standstill::Stop;
use super::trace::CallOutcome;

/// A call in progress. If it is dropped before its answer, the trace records that.
pub(super) struct Effect<V: Vocabulary> {
    pub(super) run: Run<V>,
    pub(super) instance: Instance,
    pub(super) number: u64,
    pub(super) call: Call,
    pub(super) fault: Option<Fault<V>>,
}

/// The caller never gets a result, because the process is dead or no answer comes.
struct Silence;

/// Result for the caller, if there is one.
type Heard<B> = Result<Result<Response<B>, BoxError>, Silence>;

impl<V: Vocabulary> Effect<V> {
    /// Runs the call to its end, unless its instance dies first.
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
        self.run.amend(self.number, |line| {
            line.answer = match &answer {
                Ok(response) => CallOutcome::Status(response.status().as_u16()),
                Err(_) => CallOutcome::Broken,
            };
        });
        answer
    }

    /// Runs the call with its fault. The answer is delivered only while the process is not
    /// suspended.
    async fn answered<S, Q, B>(&self, inner: S, request: Request<Q>) -> Heard<B>
    where
        S: Service<Request<Q>, Response = Response<B>>,
        S::Error: Into<BoxError>,
        B: From<Vec<u8>>,
    {
        let answered = self.with_fault(inner, request).await;
        self.instance.moves().await;
        answered
    }

    async fn with_fault<S, Q, B>(&self, inner: S, request: Request<Q>) -> Heard<B>
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
        match fault.applied() {
            Application::RequestLost => Ok(Err(connection_lost())),
            Application::AnswerLost => {
                // The result is dropped, even if it is an error.
                let _lost = self.reach_world(inner, request).await?;
                Ok(Err(connection_lost()))
            }
            Application::NoListener => Ok(Err(io::Error::from(io::ErrorKind::ConnectionRefused).into())),
            Application::Silence => Err(Silence),
            Application::Delay(time) => {
                tokio::time::sleep(time).await;
                self.reach_world(inner, request).await
            }
            Application::Standstill(stop) => {
                self.stand_still(stop).await;
                self.reach_world(inner, request).await
            }
            Application::Crash(point) => self.with_crash(point, inner, request).await,
            Application::Answer(Refusal::AtOnce) | Application::WorldThenAnswer => self.refused(fault),
            Application::Answer(Refusal::After(time)) => {
                tokio::time::sleep(time).await;
                self.refused(fault)
            }
            Application::Answer(Refusal::CarriedOut) => {
                let _hidden = self.reach_world(inner, request).await?;
                self.refused(fault)
            }
            Application::World => self.reach_world(inner, request).await,
        }
    }

    /// Applies a fault that only the world can perform.
    fn befall<Q>(&self, fault: Fault<V>, request: Request<Q>) -> Result<Request<Q>, BoxError> {
        if !fault.applied().needs_world() {
            return Ok(request);
        }
        let surroundings = self.run.surroundings.as_ref();
        let surroundings = surroundings.ok_or_else(|| format!("{fault} has no world to happen in"))?;
        let (mut head, body) = request.into_parts();
        surroundings.befall(fault, &self.call, &mut head);
        Ok(Request::from_parts(head, body))
    }

    /// Suspends the process before the request is sent. The request is sent when the process
    /// continues, and by then the world may have changed.
    async fn stand_still(&self, stop: Stop) {
        self.instance.stop(stop);
        self.instance.moves().await;
    }

    async fn with_crash<S, Q, B>(&self, point: CrashPoint, inner: S, request: Request<Q>) -> Heard<B>
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

    /// Forwards the request to the service, unless the instance has died in the meantime.
    async fn reach_world<S, Q, B>(&self, inner: S, request: Request<Q>) -> Heard<B>
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
            self.run.amend(self.number, |line| line.world = Some(status));
            if let Some(surroundings) = &self.run.surroundings {
                surroundings.carried_out(self.number, &self.call, &host, status);
            }
        }
        Ok(answer)
    }

    /// Reports the request to the world.
    fn arrives<Q>(&self, request: Request<Q>) -> Request<Q> {
        let Some(surroundings) = &self.run.surroundings else { return request };
        let (mut head, body) = request.into_parts();
        surroundings.arrives(self.number, &self.call, &mut head);
        Request::from_parts(head, body)
    }

    /// Returns the fault's answer. There is one, because faults are only given to calls they apply
    /// to.
    fn refused<B: From<Vec<u8>>>(&self, fault: Fault<V>) -> Heard<B> {
        let answer = fault.answer(&self.call).map(Answered::response);
        Ok(answer.ok_or_else(|| format!("{fault} has no answer to {}", self.call).into()))
    }
}

impl<V: Vocabulary> Drop for Effect<V> {
    fn drop(&mut self) {
        let end = if self.instance.is_dead() { CallOutcome::Died } else { CallOutcome::Dropped };
        self.run.amend(self.number, |line| {
            if line.answer == CallOutcome::Pending {
                line.answer = end;
            }
        });
    }
}

/// Returns the error for a lost request or a lost answer: the caller cannot distinguish them.
fn connection_lost() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}
