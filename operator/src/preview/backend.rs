//! Preview of a backend: the store is probed, as the operator does from time to time.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use crate::api::{self, S3Backend, S3BackendStatus, wire};
use crate::controller::backend::{probed, unconnected};
use crate::controller::drive::{CarryOut, drive};
use crate::controller::objects::Backend;
use crate::plan::backend::{
    BackendAnswer, BackendAnswered, BackendEnd, BackendPass, BackendStep, Connected, Probed, Uptime, is_bound_on,
};
use crate::plan::{Arrival, Bound, Reconciliation};
use crate::upstream::{AccessError, Upstream};

use super::line::{Deed, Line, Next, Object};
use super::seen::Seen;

/// Probe interval. Its value doesn't affect the result.
const INTERVAL: Duration = Duration::from_secs(600);

/// A pass over a backend, up to its first effect.
struct Ahead(BackendPass);

/// The end of such a pass.
enum End {
    Act(BackendStep),
    Rest(BackendEnd),
}

impl Reconciliation for Ahead {
    type Step = BackendStep;
    type Answer = BackendAnswered;
    type End = End;

    fn most(bound: Bound) -> usize {
        BackendPass::most(bound)
    }

    fn bound(step: &BackendStep) -> Bound {
        BackendPass::bound(step)
    }

    fn next(&self, now: Timestamp) -> ControlFlow<End, BackendStep> {
        match self.0.next(now) {
            ControlFlow::Break(end) => ControlFlow::Break(End::Rest(end)),
            ControlFlow::Continue(act @ (BackendStep::Serve(_) | BackendStep::WriteStatus(_))) => {
                ControlFlow::Break(End::Act(act))
            }
            ControlFlow::Continue(step) => ControlFlow::Continue(step),
        }
    }

    fn learn(&mut self, answer: BackendAnswered, arrival: Arrival) {
        self.0.learn(answer, arrival);
    }

    fn cut_short(&self, bound: Bound) -> End {
        End::Rest(self.0.cut_short(bound))
    }
}

/// Answers looks, and can do nothing else.
struct Eyes<'a> {
    seen: &'a Seen,
    name: String,
    began: Instant,
    client: Option<Arc<Upstream>>,
    doubt: Option<String>,
}

impl CarryOut<Ahead> for Eyes<'_> {
    async fn carry_out(&mut self, _: &Ahead, step: &BackendStep) -> BackendAnswered {
        let answer = match step {
            BackendStep::Connect(backend) => self.connect(backend).await.map(BackendAnswer::Connected),
            BackendStep::Probe => self.probe().await.map(BackendAnswer::Probed),
            BackendStep::WakeClaims => Ok(BackendAnswer::ClaimsWoken),
            BackendStep::Schedule(about) => Ok(BackendAnswer::Scheduled(*about, *about)),
            BackendStep::Count => Ok(BackendAnswer::Counted(self.count())),
            BackendStep::Serve(_) | BackendStep::WriteStatus(_) => Err("that is no question".to_owned()),
        };
        let answer = answer.unwrap_or_else(|why| BackendAnswer::Failed(step.clone(), why));
        BackendAnswered { answer, at: Uptime(self.began.elapsed()) }
    }
}

impl Eyes<'_> {
    async fn connect(&mut self, backend: &api::Backend) -> Result<Connected, String> {
        match self.seen.observer.upstreams.get(backend).await {
            Ok(client) => {
                self.client = Some(client);
                Ok(Connected::Anew)
            }
            // The operator may have this right.
            Err(error @ AccessError::Forbidden(..)) => Err(error.to_string()),
            Err(error) => unconnected(&error),
        }
    }

    async fn probe(&mut self) -> Result<Probed, String> {
        let client = self.client.as_ref().ok_or("there is no client")?;
        let probed = probed(client.probe().await);
        if let Probed::NoAnswer(why) = &probed {
            self.doubt = Some(format!("the store gives no answer from here: {why}"));
        }
        Ok(probed)
    }

    fn count(&self) -> i64 {
        let statuses = self.seen.claims.values().filter_map(|claim| claim.0.as_ref().ok()?.status.as_ref());
        let count = statuses.filter(|status| is_bound_on(status, &self.name)).count();
        i64::try_from(count).unwrap_or(i64::MAX)
    }
}

/// Previews a backend.
pub(super) async fn look_ahead(seen: &Seen, object: Object, backend: &Backend) -> Line {
    let raw = match &backend.0 {
        Ok(raw) => raw,
        Err(error) => {
            let next = Next::LeftAlone(format!("it can't be decoded: {error}"));
            return Line { object, next, doubt: None };
        }
    };
    let operator = seen.observer.setting.operator();
    let mut ahead = Ahead(BackendPass::new(operator.clone(), raw, None, false, INTERVAL, Uptime(Duration::ZERO)));
    let mut eyes = Eyes { seen, name: raw.name_any(), began: Instant::now(), client: None, doubt: None };
    let end = drive(&mut ahead, &seen.clock, &mut eyes).await;
    let next = match end {
        End::Act(step) => Next::Act(Box::new(deed(&step))),
        End::Rest(BackendEnd::LeftAlone(by)) => {
            Next::LeftAlone(format!("{by} serves it, and this operator is {operator}"))
        }
        End::Rest(BackendEnd::Rest { .. } | BackendEnd::Wait(_)) => rests(raw),
        End::Rest(BackendEnd::Retry(why)) => Next::Unknown(why),
    };
    Line { object, next, doubt: eyes.doubt }
}

fn deed(step: &BackendStep) -> Deed {
    let words = match step {
        BackendStep::Serve(operator) => {
            format!("begin to serve it, and note so in annotation {}: {operator}", wire::SERVED_BY)
        }
        BackendStep::WriteStatus(status) => told(status),
        other => other.to_string(),
    };
    Deed { words, step: step.to_string(), act: None }
}

fn ready(status: &S3BackendStatus) -> Option<(bool, String)> {
    let ready = status.conditions.iter().find(|it| it.type_ == api::ConditionType::Ready.as_str())?;
    Some((ready.status == "True", format!("{}: {}", ready.reason, ready.message)))
}

fn told(status: &S3BackendStatus) -> String {
    let buckets = status.bucket_count.unwrap_or_default();
    match ready(status) {
        Some((true, _)) => format!("tell in the status that it is Ready, with {buckets} claims bound"),
        Some((false, why)) => format!("tell in the status that it is not Ready, {why}"),
        None => "bring the status up to date".to_owned(),
    }
}

fn rests(raw: &S3Backend) -> Next {
    match raw.status.as_ref().and_then(ready) {
        Some((false, why)) => Next::Wait(format!("it is not Ready, {why}"), None),
        Some((true, _)) | None => Next::Nothing(None),
    }
}
