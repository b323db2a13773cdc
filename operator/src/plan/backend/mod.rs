//! Backends: when they are probed, what that says about them, and the status that follows (spec
//! §1).
//!
//! A pass over a backend is a reconciliation, as one over a claim is: it is noted who serves it, it
//! is looked at where that is due, then the claims on it are counted where that is due, then the
//! status is written where it says something else.

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

/// No pass takes more steps.
const MOST_STEPS: usize = 10;

/// What this process remembers of a backend between passes. It can do without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendMemory {
    /// How it was found.
    health: Health,
    /// The status has shown that.
    is_told: bool,
    /// When the next probe is due.
    next_probe: Uptime,
    /// The claims on it; `None` = not counted yet.
    count: Option<BucketCount>,
}

/// What a pass over a backend knows so far.
#[derive(Clone, Debug)]
pub struct BackendPass {
    /// This operator.
    operator: ServedBy,
    /// Who serves the backend, if that is noted.
    served_by: Option<ServedBy>,
    generation: i64,
    spec: Result<Arc<Backend>, InvalidSpec>,
    status: S3BackendStatus,
    /// Distance of probes, jitter aside.
    interval: Duration,
    memory: Option<BackendMemory>,
    /// A Secret of the backend has changed since it was looked at.
    secrets_changed: bool,
    /// When the last answer about the backend came: what is due is judged by this.
    now: Uptime,
    /// The probe is due at this time.
    periodic: bool,
    connected: Option<Connected>,
    probed: Option<Probed>,
    claims_woken: bool,
    next_probe: Option<Uptime>,
    counted: Option<i64>,
    /// When the status was written.
    written: Option<Uptime>,
    /// The status was written too often, and may be written again after so long.
    too_often: Option<Duration>,
    failed: Option<(BackendStep, String)>,
}

impl BackendPass {
    /// Begins a pass over a backend at this time. `memory` is what the pass before left of it.
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
            // Nothing has changed in what is looked at for the first time.
            secrets_changed: secrets_changed && memory.is_some(),
            // After a start the probe of a backend that is Ready is a periodic one: it shows no
            // more than any other.
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

    /// What is to be remembered for the next pass. A pass that could not look leaves what was.
    pub fn remembered(&self) -> Option<BackendMemory> {
        match self.examine() {
            Ok((health, next_probe)) => {
                let is_told = self.written.is_some() || self.shows(&health.verdict) || self.is_told_by_another();
                Some(BackendMemory { health, is_told, next_probe, count: self.count_now() })
            }
            Err(_) => self.memory.clone(),
        }
    }

    /// Whether a change of a Secret is still to be looked at.
    pub fn leaves_change(&self) -> bool {
        self.secrets_changed && matches!(self.failed, Some((BackendStep::Connect(_), _)))
    }

    /// The end, or the step that comes before it.
    fn conclude(&self, now: Timestamp) -> Result<BackendEnd, BackendStep> {
        if let Some((step, why)) = &self.failed {
            return Ok(BackendEnd::Retry(format!("can't {step}: {why}")));
        }
        if let Some(wait) = self.too_often {
            return Ok(BackendEnd::Wait(wait));
        }
        match &self.served_by {
            // Before anything of it is read or asked: of two that would serve it, one comes first.
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
            // A pass that doesn't count may have nothing to write, which is no sign that it would
            // go well.
            resets_backoff: recount.is_none(),
        })
    }

    /// How the backend is and when it is to be probed again, after a look if one is due.
    fn examine(&self) -> Result<(Health, Uptime), BackendStep> {
        if let Some(memory) = self.memory.as_ref().filter(|_| !self.is_due()) {
            return Ok((memory.health.clone(), memory.next_probe));
        }
        let verdict = self.verdict()?;
        if self.secrets_changed && !self.claims_woken {
            // Other credentials: what the store refused before, it may do now.
            return Err(BackendStep::WakeClaims);
        }
        let health = Health::after(self.known().as_ref(), self.generation, self.is_forgiving(), verdict);
        match self.next_probe {
            Some(next_probe) => Ok((health, next_probe)),
            None => Err(BackendStep::Schedule(health.next_probe(self.interval))),
        }
    }

    /// Whether the backend is to be looked at. A change of a Secret that leaves the client as it is
    /// was none.
    fn is_due(&self) -> bool {
        self.periodic || self.is_edited() || (self.secrets_changed && self.connected != Some(Connected::Same))
    }

    fn is_edited(&self) -> bool {
        self.known().is_none_or(|health| health.generation != self.generation)
    }

    /// Whether a failed probe says no more than any other. That a Secret is missing says so too: it
    /// may be about to be replaced, and all claims would be told twice for nothing.
    fn is_forgiving(&self) -> bool {
        let missing = matches!(self.connected, Some(Connected::Missing(_)));
        (missing || (self.periodic && !self.secrets_changed)) && !self.is_edited()
    }

    /// How the backend was before this pass.
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

    /// Whether the status says this of the backend's present generation.
    fn shows(&self, verdict: &Verdict) -> bool {
        let claims = self.status.bucket_count.unwrap_or_default();
        status::status(&self.status, self.generation, verdict, claims, Timestamp::UNIX_EPOCH) == self.status
    }

    /// Whether the status has conditions that this operator has no newer probe to set against: it
    /// told of its last one, and what the status says now somebody else found later. Two operators
    /// of which the store answers one alone would otherwise write over each other's.
    fn is_told_by_another(&self) -> bool {
        let is_old = self.next_probe.is_none() && self.memory.as_ref().is_some_and(|memory| memory.is_told);
        is_old && status::is_of(&self.status, self.generation)
    }

    /// The claims that the status is to show; and how long until they are counted again, unless
    /// they just were.
    fn count(&self) -> Result<(i64, Option<Duration>), BackendStep> {
        if let Some(claims) = self.counted {
            let shown = self.status.bucket_count.filter(|_| self.is_no_news(claims));
            return Ok((shown.unwrap_or(claims), None));
        }
        match self.count_before().and_then(|count| Some((count.claims, count.wait(self.now)?))) {
            // Until the next count, what another operator has counted is as good: or the two write
            // over each other's.
            Some((claims, wait)) => Ok((self.status.bucket_count.unwrap_or(claims), Some(wait))),
            None => Err(BackendStep::Count),
        }
    }

    fn count_before(&self) -> Option<&BucketCount> {
        self.memory.as_ref()?.count.as_ref()
    }

    /// Whether a count changes nothing of what this operator has told. Where the status shows
    /// another one then, another operator counts what it sees: it writes again when that changes,
    /// and as the two can't both be right, each probe has the count told once more.
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

    /// How long an answer took is no matter: a probe has a deadline of its own, and where the
    /// backend has changed meanwhile the status is not written.
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
