//! Reconciliation of an S3Backend: probes, their results, and the status that follows (spec §1).
//!
//! A pass annotates the backend with the operator that serves it, probes the backend if a probe is
//! due, counts its claims if a count is due, and then writes the status if it changed.

mod count;
mod health;
mod status;
mod step;
#[cfg(test)]
mod tests;
mod uptime;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use kube::ResourceExt;

use crate::api::{Backend, InvalidSpec, S3Backend, S3BackendStatus, ServedBy};

use super::reconciliation::{Arrival, Bound, Reconciliation};

use count::BucketCount;
use health::{Health, Verdict};

pub use count::is_bound_on;
pub use step::{BackendAnswer, BackendAnswered, BackendEnd, BackendStep, Connected, Probed};
pub use uptime::Uptime;

/// Maximum number of steps of a pass.
const MOST_STEPS: usize = 10;

/// State that this process keeps of a backend between passes. The operator works correctly without
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendMemory {
    /// Result of the last probes.
    health: Health,
    /// True if the status has shown that result.
    is_told: bool,
    /// Time of the next probe.
    next_probe: Uptime,
    /// Number of claims on the backend. `None` if they were not counted yet.
    count: Option<BucketCount>,
}

/// Everything that a pass over a backend knows so far.
#[derive(Clone, Debug)]
pub struct BackendPass {
    /// Identity of this operator.
    operator: ServedBy,
    /// Operator that serves the backend, if one is annotated.
    served_by: Option<ServedBy>,
    generation: i64,
    spec: Result<Arc<Backend>, InvalidSpec>,
    status: S3BackendStatus,
    /// Interval between probes, without jitter.
    interval: Duration,
    memory: Option<BackendMemory>,
    /// True if a Secret of the backend has changed since the last look.
    secrets_changed: bool,
    /// Time of the last answer about the backend, which decides what is due.
    now: Uptime,
    /// True if the probe is due because of the time.
    periodic: bool,
    connected: Option<Connected>,
    probed: Option<Probed>,
    claims_woken: bool,
    next_probe: Option<Uptime>,
    counted: Option<i64>,
    /// Time at which the status was written.
    written: Option<Uptime>,
    /// Time after which the status may be written again, if it was written too often.
    too_often: Option<Duration>,
    failed: Option<(BackendStep, String)>,
}

impl BackendPass {
    /// Starts a pass over a backend. `memory` is the state left by the previous pass.
    pub fn new(
        operator: ServedBy,
        backend: &S3Backend,
        memory: Option<BackendMemory>,
        secrets_changed: bool,
        interval: Duration,
        now: Uptime,
    ) -> Self {
        Self {
            operator,
            served_by: ServedBy::noted(backend.annotations()),
            generation: backend.metadata.generation.unwrap_or_default(),
            spec: Backend::parse(backend).map(Arc::new),
            status: backend.status.clone().unwrap_or_default(),
            interval,
            // At the first look nothing counts as changed.
            secrets_changed: secrets_changed && memory.is_some(),
            // After a start the probe of a Ready backend counts as a periodic one, because it shows
            // no more than any other.
            periodic: memory.as_ref().is_none_or(|memory| memory.next_probe <= now),
            memory,
            now,
            connected: None,
            probed: None,
            claims_woken: false,
            next_probe: None,
            counted: None,
            written: None,
            too_often: None,
            failed: None,
        }
    }

    /// Returns the state for the next pass. A pass that could not finish its look keeps the
    /// previous state.
    pub fn remembered(&self) -> Option<BackendMemory> {
        match self.examine() {
            Ok((health, next_probe)) => {
                let is_told = self.written.is_some() || self.shows(&health.verdict) || self.is_told_by_another();
                Some(BackendMemory { health, is_told, next_probe, count: self.count_now() })
            }
            Err(_) => self.memory.clone(),
        }
    }

    /// Returns true if the change of a Secret was not handled by this pass.
    pub fn leaves_change(&self) -> bool {
        self.secrets_changed && matches!(self.failed, Some((BackendStep::Connect(_), _)))
    }

    /// Returns the end of the pass, or the step that must be carried out first.
    fn conclude(&self, now: Timestamp) -> Result<BackendEnd, BackendStep> {
        if let Some((step, why)) = &self.failed {
            return Ok(BackendEnd::Retry(format!("can't {step}: {why}")));
        }
        if let Some(wait) = self.too_often {
            return Ok(BackendEnd::Wait(wait));
        }
        match &self.served_by {
            // The annotation comes before any read, so that only one of two operators starts to
            // serve the backend.
            None => return Err(BackendStep::Serve(self.operator.clone())),
            Some(by) if *by != self.operator => return Ok(BackendEnd::LeftAlone(by.clone())),
            Some(_) => {}
        }
        let (health, next_probe) = self.examine()?;
        let (claims, recount) = self.count()?;
        let wanted = if self.is_told_by_another() {
            S3BackendStatus { bucket_count: Some(claims), ..self.status.clone() }
        } else {
            status::status(&self.status, self.generation, &health.verdict, claims, now)
        };
        if wanted != self.status && self.written.is_none() {
            return Err(BackendStep::WriteStatus(wanted));
        }
        let until_probe = self.written.unwrap_or(self.now).until(next_probe);
        Ok(BackendEnd::Rest {
            after: recount.map_or(until_probe, |recount| recount.min(until_probe)),
            // A pass that does not count may have nothing to write, so its success does not prove
            // that a retry would succeed.
            resets_backoff: recount.is_none(),
        })
    }

    /// Returns the health of the backend and the time of the next probe, after a look if one is
    /// due.
    fn examine(&self) -> Result<(Health, Uptime), BackendStep> {
        if let Some(memory) = self.memory.as_ref().filter(|_| !self.is_due()) {
            return Ok((memory.health.clone(), memory.next_probe));
        }
        let verdict = self.verdict()?;
        if self.secrets_changed && !self.claims_woken {
            // With other credentials the store may allow what it denied before.
            return Err(BackendStep::WakeClaims);
        }
        let health = Health::after(self.known().as_ref(), self.generation, self.is_forgiving(), verdict);
        match self.next_probe {
            Some(next_probe) => Ok((health, next_probe)),
            None => Err(BackendStep::Schedule(health.next_probe(self.interval))),
        }
    }

    /// Returns true if a look at the backend is due. A change of a Secret that leaves the client
    /// unchanged does not count.
    fn is_due(&self) -> bool {
        self.periodic || self.is_edited() || (self.secrets_changed && self.connected != Some(Connected::Same))
    }

    fn is_edited(&self) -> bool {
        self.known().is_none_or(|health| health.generation != self.generation)
    }

    /// Returns true if a single failed probe is tolerated. A missing Secret is tolerated as well:
    /// it may be about to be recreated, and reporting it would make every claim report it, too.
    fn is_forgiving(&self) -> bool {
        let missing = matches!(self.connected, Some(Connected::Missing(_)));
        (missing || (self.periodic && !self.secrets_changed)) && !self.is_edited()
    }

    /// Returns the health of the backend before this pass.
    fn known(&self) -> Option<Health> {
        let remembered = self.memory.as_ref().map(|memory| memory.health.clone());
        remembered.or_else(|| Health::from_status(&self.status, self.generation))
    }

    fn verdict(&self) -> Result<Verdict, BackendStep> {
        let backend = match &self.spec {
            Ok(backend) => backend,
            Err(invalid) => return Ok(Verdict::on_invalid(invalid)),
        };
        match (&self.connected, &self.probed) {
            (None, _) => Err(BackendStep::Connect(backend.clone())),
            (Some(Connected::Missing(why) | Connected::Unusable(why)), _) => Ok(Verdict::on_secrets(why)),
            (Some(Connected::Same | Connected::Anew), None) => Err(BackendStep::Probe),
            (Some(Connected::Same | Connected::Anew), Some(probed)) => Ok(Verdict::on_probe(probed)),
        }
    }

    /// Returns true if the status shows this verdict for the backend's current generation.
    fn shows(&self, verdict: &Verdict) -> bool {
        let claims = self.status.bucket_count.unwrap_or_default();
        status::status(&self.status, self.generation, verdict, claims, Timestamp::UNIX_EPOCH) == self.status
    }

    /// Returns true if the status has conditions that this operator can't replace by those of a
    /// newer probe. This operator has reported its last probe, so the conditions are a later result
    /// of another operator.
    ///
    /// Without this rule, two operators of which only one reaches the store would overwrite each
    /// other's status.
    fn is_told_by_another(&self) -> bool {
        let is_old = self.next_probe.is_none() && self.memory.as_ref().is_some_and(|memory| memory.is_told);
        is_old && status::is_of(&self.status, self.generation)
    }

    /// Returns the number of claims for the status, and the time until the next count, unless they
    /// were just counted.
    fn count(&self) -> Result<(i64, Option<Duration>), BackendStep> {
        if let Some(claims) = self.counted {
            let shown = self.status.bucket_count.filter(|_| self.is_no_news(claims));
            return Ok((shown.unwrap_or(claims), None));
        }
        match self.count_before().and_then(|count| Some((count.claims, count.wait(self.now)?))) {
            // Until the next count, a number that another operator has written is accepted.
            // Otherwise the two would overwrite each other's.
            Some((claims, wait)) => Ok((self.status.bucket_count.unwrap_or(claims), Some(wait))),
            None => Err(BackendStep::Count),
        }
    }

    fn count_before(&self) -> Option<&BucketCount> {
        self.memory.as_ref()?.count.as_ref()
    }

    /// Returns true if a count equals what this operator has reported before.
    ///
    /// If the status shows another number nevertheless, another operator counts differently. This
    /// operator then writes again only when its own number changes. Because the two numbers can't
    /// both be right, each probe makes the next count be reported once more.
    fn is_no_news(&self, claims: i64) -> bool {
        !self.periodic && self.count_before().is_some_and(|before| before.is_told(claims))
    }

    fn count_now(&self) -> Option<BucketCount> {
        let Some(claims) = self.counted else {
            let before = self.count_before()?.scheduled(self.now);
            return Some(if self.periodic { before.told_again() } else { before });
        };
        let is_shown = self.written.is_some() || self.status.bucket_count == Some(claims);
        Some(BucketCount::taken(claims, is_shown || self.is_no_news(claims)))
    }
}

impl Reconciliation for BackendPass {
    type Step = BackendStep;
    type Answer = BackendAnswered;
    type End = BackendEnd;

    fn most(_: Bound) -> usize {
        MOST_STEPS
    }

    fn bound(_: &BackendStep) -> Bound {
        Bound::Steps
    }

    fn next(&self, now: Timestamp) -> ControlFlow<BackendEnd, BackendStep> {
        match self.conclude(now) {
            Ok(end) => ControlFlow::Break(end),
            Err(step) => ControlFlow::Continue(step),
        }
    }

    /// Ignores how long an answer took: a probe has its own deadline, and the status is not written
    /// if the backend has changed meanwhile.
    fn learn(&mut self, BackendAnswered { answer, at }: BackendAnswered, _: Arrival) {
        match answer {
            BackendAnswer::Served(by) => self.served_by = Some(by),
            BackendAnswer::Connected(connected) => {
                self.connected = Some(connected);
                self.now = at;
            }
            BackendAnswer::Probed(probed) => {
                self.probed = Some(probed);
                self.now = at;
            }
            BackendAnswer::ClaimsWoken => self.claims_woken = true,
            BackendAnswer::Scheduled(_, wait) => self.next_probe = Some(at + wait),
            BackendAnswer::Counted(claims) => self.counted = Some(claims),
            BackendAnswer::Written(_) => self.written = Some(at),
            BackendAnswer::TooOften(_, wait) => self.too_often = Some(wait),
            BackendAnswer::Failed(step, why) => self.failed = Some((step, why)),
        }
    }

    fn cut_short(&self, _: Bound) -> BackendEnd {
        BackendEnd::Retry("the pass does not come to an end".to_owned())
    }
}
