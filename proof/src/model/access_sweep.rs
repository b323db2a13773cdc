//! Sweeps of Secrets that an access without a finalizer left behind, and how their steps are
//! carried out.

use super::access::access_uid;
use super::objects::{Kind, SecretFacts};
use super::phrases::{Call, Reply, Stride, SweepReply};
use super::promise::Promise;
use super::state::State;
use super::turn::Fate;
use super::world::ModelWorld;

/// Returns true for an internal Secret of the access.
pub(super) fn is_of_access(secret: &SecretFacts) -> bool {
    matches!(secret.kind, Kind::AccessRecord | Kind::AccessKey) && secret.access.is_some()
}

impl ModelWorld {
    /// Returns the sweep that can begin because the caches show Secrets of the access but not the
    /// access.
    pub(super) fn access_suspect(&self, state: &State, operator: usize) -> Option<u32> {
        if !self.recipe.access || self.cached_access(state, operator).is_some() {
            return None;
        }
        let left = self.all_cached(state, operator).filter(|secret| is_of_access(secret));
        let left: Vec<u32> = left.map(|secret| secret.number).collect();
        (!left.is_empty()).then(|| self.talks.access.sweeps.begin(&self.talks.objects, access_uid(), &left, false))
    }

    /// Carries out the next step of the sweep.
    pub(super) fn access_stride(&self, state: &mut State, operator: usize, fate: Fate) {
        let Some(sweep) = state.operators[operator].access_sweep else { return };
        let reply = match (self.talks.access.sweeps.stride_of(sweep), fate) {
            (Stride::Over | Stride::Held | Stride::Retry, _) => {
                state.operators[operator].access_sweep = None;
                return;
            }
            (Stride::Delete(secret), Fate::Unheard) => {
                self.object_to_access_sweep(state, secret);
                self.delete_secret(state, None, secret);
                SweepReply::Failed
            }
            (_, Fate::Lost | Fate::Unheard | Fate::Late) => SweepReply::Failed,
            (Stride::All, Fate::Answered) => SweepReply::All(state.access.is_some()),
            (Stride::Own, Fate::Answered) => match self.visit_finds_out(state, operator, &Call::Own) {
                Reply::Secrets(secrets) => SweepReply::Secrets(secrets),
                _ => SweepReply::Failed,
            },
            (Stride::Claim(_) | Stride::End(_), Fate::Answered) => unreachable!("an access has no claim and no bucket"),
            (Stride::Internal(name), Fate::Answered) => SweepReply::Secret(state.secrets.live(name)),
            (Stride::Delete(secret), Fate::Answered) => {
                self.object_to_access_sweep(state, secret);
                match self.delete_secret(state, Some(operator), secret) {
                    Reply::Done => SweepReply::Deleted,
                    _ => SweepReply::Failed,
                }
            }
        };
        let next = self.talks.access.sweeps.learn(&self.talks.objects, sweep, reply);
        state.operators[operator].access_sweep = Some(next);
    }

    /// Checks that a sweep deletes only Secrets of an access that is gone.
    fn object_to_access_sweep(&self, state: &mut State, secret: u32) {
        let facts = self.talks.objects.secret_of(secret);
        if state.secrets.live(facts.name) != Some(secret) {
            return;
        }
        if !is_of_access(facts) {
            self.break_promise(state, Promise::I13);
        } else if state.access.is_some() {
            self.break_promise(state, Promise::I6);
        }
    }
}
