//! A pass over the access: its start, the answers to its steps, and the execution of its effects.

use std::ops::ControlFlow;

use super::access::{AccessFacts, NAMED, access_consumer, access_ref};
use super::access_sweep::is_of_access;
use super::facts::Uid;
use super::objects::{Kind, SecretFacts};
use super::phrases::{AccessBeginning, Asks, Call, Ending, Heard, Reply};
use super::state::{State, Visit};
use super::turn::Fate;
use super::world::{Lag, ModelWorld};

impl ModelWorld {
    /// Returns the access in the operator's cache: the later of what the watch showed and what the
    /// operator wrote itself.
    pub(super) fn cached_access(&self, state: &State, operator: usize) -> Option<u32> {
        if !self.lags(Lag::Accesses) {
            return state.access;
        }
        let operator = &state.operators[operator];
        let seen = operator.seen.access?;
        let version = |number: u32| self.talks.access.accesses.facts(number).version;
        Some(operator.wrote_access.filter(|wrote| version(*wrote) > version(seen)).unwrap_or(seen))
    }

    /// Returns the access as the operator's caches show it to a pass over a claim; `None` in a
    /// world without an access.
    pub(super) fn cached_asks(&self, state: &State, operator: usize, slot: usize) -> Option<Asks> {
        if !self.recipe.access {
            return None;
        }
        let cached = self.cached_access(state, operator);
        let is_record = |secret: &SecretFacts| secret.kind == Kind::AccessRecord;
        Some(match cached {
            Some(_) if slot == NAMED && self.asks(cached) => Asks::Shown,
            None if self.all_cached(state, operator).any(is_record) => Asks::Recorded,
            Some(_) | None => Asks::Not,
        })
    }

    /// Returns true if this version of the access still requests its bucket.
    pub(super) fn asks(&self, access: Option<u32>) -> bool {
        access.is_some_and(|number| !self.talks.access.accesses.facts(number).deleting)
    }

    /// Returns what the operator knows when a pass over the access begins; `None` if it does not
    /// know the access.
    pub(super) fn begin_visit(&self, state: &State, operator: usize) -> Option<Visit> {
        let access = self.cached_access(state, operator)?;
        let number = |secret: &SecretFacts| secret.number;
        let cached = || self.all_cached(state, operator);
        let wanted = self.talks.objects.name(&access_ref().namespace, &access_consumer());
        let published =
            |secret: &&SecretFacts| secret.name == wanted || (secret.kind == Kind::Consumer && secret.access.is_some());
        let claim = self.cached_claim(state, operator, NAMED);
        let uid = claim.map(|claim| self.talks.objects.claim_facts(claim).uid);
        let of_claim = |secret: &&SecretFacts| self.is_internal(secret.name) && secret.claim == uid;
        let heard = Heard {
            claim,
            own: cached().filter(|secret| uid.is_some() && of_claim(secret)).map(number).collect(),
            backends: self.cached_backends(state, operator),
        };
        let beginning = AccessBeginning {
            access,
            own: cached().filter(|secret| is_of_access(secret)).map(number).collect(),
            consumers: cached().filter(published).map(number).collect(),
            heard,
        };
        let view = self.talks.access.begin(&self.talks.objects, beginning);
        Some(Visit { view, is_live: false })
    }

    /// Begins a pass.
    pub(super) fn start_visit(&self, state: &mut State, operator: usize) {
        state.operators[operator].visit = self.begin_visit(state, operator);
    }

    /// Returns true if a pass that begins now does more than read its caches.
    pub(super) fn visit_would_act(&self, state: &State, operator: usize) -> bool {
        let plan = self.begin_visit(state, operator).map(|visit| self.visit_plan(state, visit));
        plan.is_some_and(|plan| !matches!(self.talks.access.planned(plan).call, Call::Rest(_)))
    }

    /// Returns the next step of a pass.
    pub(super) fn visit_plan(&self, state: &State, visit: Visit) -> u32 {
        self.talks.access.plan(&self.talks.objects, visit.view, state.now)
    }

    /// Describes the next step of a pass.
    pub(super) fn visit_text(&self, state: &State, visit: Visit) -> String {
        match &self.talks.access.planned(self.visit_plan(state, visit)).step {
            ControlFlow::Continue(step) => step.to_string(),
            ControlFlow::Break(rest) => format!("rest: {}", rest.then),
        }
    }

    /// Returns when the access is looked at again, if the next step ends the pass.
    pub(super) fn visit_ending(&self, state: &State, operator: usize) -> Option<Ending> {
        let plan = self.visit_plan(state, state.operators[operator].visit?);
        match self.talks.access.planned(plan).call {
            Call::Rest(ending) => Some(ending),
            _ => None,
        }
    }

    /// Carries out the next step of a pass.
    pub(super) fn visit_step(&self, state: &mut State, operator: usize, fate: Fate) {
        let Some(mut visit) = state.operators[operator].visit else { return };
        let plan = self.visit_plan(state, visit);
        let call = &self.talks.access.planned(plan).call;
        if let Call::Rest(_) = call {
            state.operators[operator].visit = None;
            return;
        }
        if call.is_act() {
            self.object_to_visit(state, plan, visit);
        }
        let reply = match fate {
            Fate::Answered if call.is_act() => self.visit_carries_out(state, Some(operator), plan),
            Fate::Answered => self.visit_finds_out(state, operator, call),
            Fate::Lost | Fate::Late => Reply::Kubernetes,
            Fate::Unheard => {
                self.visit_carries_out(state, None, plan);
                Reply::Kubernetes
            }
        };
        match (call, &reply) {
            (Call::Access | Call::Finalizer(_, true), Reply::Access(access)) => visit.is_live = self.asks(*access),
            (Call::Create(_), Reply::Secret(Some(secret)))
                if self.talks.objects.secret_of(*secret).kind == Kind::AccessRecord =>
            {
                visit.is_live = false;
            }
            _ => {}
        }
        visit.view = self.talks.access.learn(&self.talks.objects, plan, reply);
        state.operators[operator].visit = Some(visit);
    }

    /// Answers a question of a pass over the access, or of a sweep of its Secrets.
    pub(super) fn visit_finds_out(&self, state: &mut State, operator: usize, call: &Call) -> Reply {
        match call {
            Call::Access => Reply::Access(state.access),
            Call::Namespace => Reply::Namespace,
            Call::Own => {
                let all = state.secrets.all().map(|number| self.talks.objects.secret_of(number));
                Reply::Secrets(all.filter(|secret| is_of_access(secret)).map(|secret| secret.number).collect())
            }
            Call::Word => {
                let claim = state.claims[NAMED];
                let uid = claim.map(|claim| self.talks.objects.claim_facts(claim).uid);
                let own = uid.map(|uid| self.own(state, uid)).unwrap_or_default();
                Reply::Word(Heard { claim, own, backends: self.cached_backends(state, operator) })
            }
            call => self.read_secret(state, operator, call),
        }
    }

    fn visit_carries_out(&self, state: &mut State, operator: Option<usize>, plan: u32) -> Reply {
        let (access, objects) = (&self.talks.access, &self.talks.objects);
        match &access.planned(plan).call {
            Call::Finalizer(access, present) => self.write_access(state, operator, *access, |facts| {
                facts.finalizer = *present;
            }),
            Call::Status(access, status) => self.write_access(state, operator, *access, |facts| {
                facts.status = *status;
            }),
            Call::Create(name) => {
                let now = state.now;
                self.create_secret(state, operator, *name, |version| access.create(objects, plan, version, now))
            }
            Call::Patch(secret) => {
                self.patch_secret(state, operator, *secret, |secret| access.patch(objects, plan, secret))
            }
            Call::Delete(secret) => self.delete_secret(state, operator, *secret),
            _ => Reply::Unsupported,
        }
    }

    /// Writes to the access if it still has this version.
    fn write_access(
        &self,
        state: &mut State,
        operator: Option<usize>,
        version: u32,
        edit: impl FnOnce(&mut AccessFacts),
    ) -> Reply {
        if state.access != Some(version) {
            return Reply::Conflict;
        }
        let number = self.edit_access(state, edit);
        if let Some(operator) = operator.filter(|_| self.lags(Lag::Accesses)) {
            state.operators[operator].wrote_access = number;
        }
        Reply::Access(number)
    }

    /// Edits the access. An access that is being deleted disappears when it loses its finalizer.
    pub(super) fn edit_access(&self, state: &mut State, edit: impl FnOnce(&mut AccessFacts)) -> Option<u32> {
        let accesses = &self.talks.access.accesses;
        let mut facts = accesses.facts(state.access?).clone();
        edit(&mut facts);
        facts.version += 1;
        let number = accesses.number(&facts);
        state.access = (!facts.deleting || facts.finalizer).then_some(number);
        Some(number)
    }

    /// Creates the access.
    pub(super) fn make_access(&self, state: &mut State) {
        let accesses = &self.talks.access.accesses;
        let status = accesses
            .status(&stowage_operator::api::BucketAccessStatus { observed_generation: Some(-1), ..Default::default() });
        let facts = AccessFacts { deleting: false, finalizer: false, rotate: 0, status, version: 1 };
        state.access = Some(accesses.number(&facts));
    }

    /// Lists a claim's internal Secrets by label, like a live list.
    pub(super) fn own(&self, state: &State, uid: Uid) -> Vec<u32> {
        let all = state.secrets.all().map(|number| self.talks.objects.secret_of(number));
        let own = all.filter(|secret| secret.kind != Kind::Consumer && secret.labelled == Some(uid));
        own.map(|secret| secret.number).collect()
    }
}
