//! The conversations with the planner of accesses: as those with the planner of claims, it is asked
//! once for each (view, time) that comes up.

use std::ops::ControlFlow;

use k8s_openapi::jiff::Timestamp;
use stowage_operator::api::{AccessRecord, SecretKey};
use stowage_operator::plan::grant::{
    ClaimWord, EntrySeen, Grant, GrantAct, GrantAnswer, GrantCached, GrantLook, GrantStep, Lead,
};
use stowage_operator::plan::{Arrival, BackendSeen, Conversation, Rest, Stored};

use super::access::{Accesses, access_ref, asker};
use super::facts::OPERATOR_NAMESPACE;
use super::names::{backend_number, number_of};
use super::objects::{Objects, patched, stored_first, timestamp};
use super::phrases::{Call, GrantBeginning, Heard, Reply, ending, failure, posted};
use super::shelf::{Known, Memo};
use super::sweeps::AccessSweeps;

/// The planner of accesses, or something in its place.
pub(super) type GrantPlanner = fn(&Grant, Timestamp) -> ControlFlow<Rest, GrantStep>;

/// The planner that ships.
pub(super) fn next(grant: &Grant, now: Timestamp) -> ControlFlow<Rest, GrantStep> {
    grant.next(now)
}

struct Pass {
    grant: Grant,
    begun: u32,
}

/// A step that the planner of accesses named.
pub(super) struct GrantPlanned {
    pub(super) view: u32,
    pub(super) step: ControlFlow<Rest, GrantStep>,
    pub(super) call: Call,
}

/// The planner of accesses and all that was ever said to it.
pub(super) struct Grants {
    pub(super) accesses: Accesses,
    pub(super) sweeps: AccessSweeps,
    planner: GrantPlanner,
    views: Known<String, Pass>,
    plans: Known<(u32, u32), GrantPlanned>,
    begun: Memo<GrantBeginning, u32>,
    learnt: Memo<(u32, Reply), u32>,
    created: Memo<(u32, u16, u32), u32>,
    patches: Memo<(u32, u32), Option<u32>>,
}

impl Grants {
    pub(super) fn new(planner: GrantPlanner) -> Self {
        Self {
            accesses: Accesses::new(),
            sweeps: AccessSweeps::new(),
            planner,
            views: Known::new(),
            plans: Known::new(),
            begun: Memo::new(),
            learnt: Memo::new(),
            created: Memo::new(),
            patches: Memo::new(),
        }
    }

    /// How many views the planner was shown.
    pub(super) fn views(&self) -> usize {
        self.views.len()
    }

    /// The view of a pass that begins, as the operator's `Observer::begin_grant` makes it.
    pub(super) fn begin(&self, objects: &Objects, beginning: GrantBeginning) -> u32 {
        self.begun.get(beginning, |beginning| {
            let access = self.accesses.shown(beginning.access).clone();
            let cached = GrantCached {
                internal: all(objects, &beginning.own),
                consumers: all(objects, &beginning.consumers),
                namespace: Some(asker()),
                entries: vec![EntrySeen::Claim(word(objects, &beginning.heard))],
                lead: Lead::Here,
            };
            self.converse(Grant::new(objects.setting.clone(), access, cached), beginning.access)
        })
    }

    fn converse(&self, grant: Grant, begun: u32) -> u32 {
        self.views.number(format!("{begun} {}", grant.fingerprint()), |_| Pass { grant, begun })
    }

    /// The number of the next step.
    pub(super) fn plan(&self, objects: &Objects, view: u32, now: u32) -> u32 {
        self.plans.number((view, now), |_| {
            let step = (self.planner)(&self.views.get(view).grant, timestamp(now));
            let call = match &step {
                ControlFlow::Break(rest) => Call::Rest(ending(rest)),
                ControlFlow::Continue(GrantStep::Look(look)) => look_call(objects, look),
                ControlFlow::Continue(GrantStep::Act(act)) => self.act_call(objects, act),
            };
            GrantPlanned { view, step, call }
        })
    }

    /// The step of a number.
    pub(super) fn planned(&self, plan: u32) -> &GrantPlanned {
        self.plans.get(plan)
    }

    /// What the pass knows after an answer.
    pub(super) fn learn(&self, objects: &Objects, plan: u32, reply: Reply) -> u32 {
        self.learnt.get((plan, reply), |(plan, reply)| {
            let planned = self.planned(*plan);
            let Pass { grant, begun } = self.views.get(planned.view);
            let mut grant = grant.clone();
            if let ControlFlow::Continue(step) = &planned.step {
                grant.learn(self.answer(objects, step, reply), Arrival::Prompt);
            }
            self.converse(grant, *begun)
        })
    }

    /// The Secret that a POST stores, in this version of its name.
    pub(super) fn create(&self, objects: &Objects, plan: u32, version: u16, now: u32) -> u32 {
        self.created.get((plan, version, now), |_| {
            let content = match &self.planned(plan).step {
                ControlFlow::Continue(GrantStep::Act(GrantAct::CreateRecord(record))) => {
                    record.content(OPERATOR_NAMESPACE)
                }
                ControlFlow::Continue(GrantStep::Act(GrantAct::CreateConsumer(content))) => (**content).clone(),
                ControlFlow::Continue(GrantStep::Act(GrantAct::Mint(facts))) => {
                    // Another secret each time that the name is given.
                    facts.content(OPERATOR_NAMESPACE, Some(&SecretKey::new(format!("key-{version:036}"))))
                }
                step => unreachable!("{step:?} creates no Secret"),
            };
            objects.secret(&stored_first(content.to_secret(), version, now), version)
        })
    }

    /// The Secret that a PATCH leaves; `None` = it can't be applied.
    pub(super) fn patch(&self, objects: &Objects, plan: u32, secret: u32) -> Option<u32> {
        self.patches.get((plan, secret), |_| {
            let ControlFlow::Continue(GrantStep::Act(GrantAct::Patch(patch))) = &self.planned(plan).step else {
                return None;
            };
            let facts = objects.secret_of(secret);
            let after = patched(&facts.stored.0, &patch.json())?;
            Some(objects.secret(&after, facts.version + 1))
        })
    }

    fn act_call(&self, objects: &Objects, act: &GrantAct) -> Call {
        let internal = |name: &str| Call::Create(objects.name(OPERATOR_NAMESPACE, name));
        match act {
            GrantAct::AddFinalizer(id) => Call::Finalizer(number_of(&id.resource_version), true),
            GrantAct::RemoveFinalizer(id) => Call::Finalizer(number_of(&id.resource_version), false),
            GrantAct::WriteStatus(id, status) => {
                Call::Status(number_of(&id.resource_version), self.accesses.status(status))
            }
            GrantAct::CreateRecord(record) => internal(&AccessRecord::name(&record.uid)),
            GrantAct::Mint(facts) => internal(&facts.access_key_id().access_secret_name()),
            GrantAct::CreateConsumer(content) => Call::Create(objects.name(&content.namespace, &content.name)),
            GrantAct::Patch(patch) => Call::Patch(number_of(&patch.target.id.resource_version)),
            GrantAct::Delete(secret) => Call::Delete(number_of(&secret.id.resource_version)),
        }
    }

    fn answer(&self, objects: &Objects, step: &GrantStep, reply: &Reply) -> GrantAnswer {
        if let Some(failure) = failure(reply) {
            return GrantAnswer::Failed(step.clone(), failure);
        }
        let access = |number: &u32| Box::new(self.accesses.shown(*number).clone());
        let one = |number: &Option<u32>| number.map(|number| objects.stored(number));
        match (step, reply) {
            (GrantStep::Look(GrantLook::Access), Reply::Access(number)) => {
                GrantAnswer::Access(number.as_ref().map(access))
            }
            (GrantStep::Look(GrantLook::Namespace), Reply::Namespace) => GrantAnswer::Namespace(Some(asker())),
            (GrantStep::Look(GrantLook::Own), Reply::Secrets(numbers)) => GrantAnswer::Own(all(objects, numbers)),
            (GrantStep::Look(GrantLook::Internal(name)), Reply::Secret(number)) => {
                GrantAnswer::Internal(name.clone(), one(number))
            }
            (GrantStep::Look(GrantLook::Consumer(name)), Reply::Secret(number)) => {
                GrantAnswer::Consumer(name.clone(), one(number))
            }
            (GrantStep::Look(GrantLook::Claim(claim)), Reply::Word(heard)) => {
                GrantAnswer::Claim(claim.clone(), word(objects, heard))
            }
            (GrantStep::Act(act), reply) => self.effect(objects, act, reply),
            (step, reply) => unreachable!("{reply:?} is no answer to {step}"),
        }
    }

    fn effect(&self, objects: &Objects, act: &GrantAct, reply: &Reply) -> GrantAnswer {
        let access = |number: &u32| Box::new(self.accesses.shown(*number).clone());
        match (act, reply) {
            (GrantAct::AddFinalizer(_), Reply::Access(Some(number))) => GrantAnswer::FinalizerAdded(access(number)),
            (GrantAct::RemoveFinalizer(_), Reply::Access(_)) => GrantAnswer::FinalizerRemoved,
            (GrantAct::WriteStatus(..), Reply::Access(Some(number))) => GrantAnswer::StatusWritten(access(number)),
            (GrantAct::CreateRecord(record), reply) => {
                GrantAnswer::RecordPosted(record.clone(), posted(objects, reply))
            }
            (GrantAct::Mint(facts), reply) => GrantAnswer::CredentialPosted(facts.clone(), posted(objects, reply)),
            (GrantAct::CreateConsumer(content), reply) => {
                GrantAnswer::ConsumerPosted(content.name.clone(), posted(objects, reply))
            }
            (GrantAct::Patch(patch), Reply::Secret(Some(number))) => {
                GrantAnswer::Patched(patch.change, objects.stored(*number))
            }
            (GrantAct::Delete(secret), Reply::Done) => GrantAnswer::Deleted(secret.clone(), None),
            (act, reply) => unreachable!("{reply:?} is no answer to {act:?}"),
        }
    }
}

fn look_call(objects: &Objects, look: &GrantLook) -> Call {
    match look {
        GrantLook::Access => Call::Access,
        GrantLook::Namespace => Call::Namespace,
        GrantLook::Own => Call::Own,
        GrantLook::Internal(name) => Call::Internal(objects.name(OPERATOR_NAMESPACE, name)),
        GrantLook::Consumer(name) => Call::Consumer(objects.name(&access_ref().namespace, name)),
        GrantLook::Claim(_) => Call::Word,
    }
}

fn all(objects: &Objects, numbers: &[u32]) -> Vec<Stored> {
    numbers.iter().map(|number| objects.stored(*number)).collect()
}

/// What is to be had of the claim, as the operator's `Observer` finds it out.
fn word(objects: &Objects, heard: &Heard) -> ClaimWord {
    let claim = heard.claim.map(|number| objects.claim_of(number));
    let asker = asker();
    ClaimWord::of(&access_ref(), Some(&asker), claim, &all(objects, &heard.own), |name, at| {
        let facts = backend_number(name).and_then(|number| heard.backends[number as usize]);
        facts.is_some_and(|facts| match objects.backend(facts) {
            BackendSeen::Present { backend, .. } => backend.endpoint == *at || backend.former_endpoints.contains(at),
            BackendSeen::Missing | BackendSeen::Invalid(_) => false,
        })
    })
}
