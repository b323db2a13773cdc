//! Conversations with the planner of accesses. Like the planner of claims, it is called once for
//! each pair of view and time that occurs.

use std::ops::ControlFlow;

use k8s_openapi::jiff::Timestamp;
use stowage_operator::api::{AccessRecord, SecretKey};
use stowage_operator::plan::access::{
    AccessAct, AccessAnswer, AccessCached, AccessLook, AccessStep, AccessView, ClaimWord, EntrySeen, Lead,
};
use stowage_operator::plan::orphans::OfAccess;
use stowage_operator::plan::{Arrival, BackendSeen, Reconciliation, Rest, Stored};

use super::access::{Accesses, access_ref, asker};
use super::facts::OPERATOR_NAMESPACE;
use super::names::{backend_number, number_of};
use super::objects::{Objects, stored_first, timestamp};
use super::phrases::{AccessBeginning, Call, Heard, Reply, ending, failure, posted};
use super::shelf::{Known, Memo};
use super::sweeps::Sweeps;

/// The planner of accesses, or a replacement in a test.
pub(super) type AccessPlanner = fn(&AccessView, Timestamp) -> ControlFlow<Rest, AccessStep>;

/// Calls the production planner.
pub(super) fn next(view: &AccessView, now: Timestamp) -> ControlFlow<Rest, AccessStep> {
    view.next(now)
}

struct Pass {
    view: AccessView,
    begun: u32,
}

/// A step that the planner of accesses returned.
pub(super) struct AccessPlanned {
    pub(super) view: u32,
    pub(super) step: ControlFlow<Rest, AccessStep>,
    pub(super) call: Call,
}

/// The planner of accesses, with every view and answer so far.
pub(super) struct AccessTalks {
    pub(super) accesses: Accesses,
    pub(super) sweeps: Sweeps<OfAccess>,
    planner: AccessPlanner,
    views: Known<String, Pass>,
    plans: Known<(u32, u32), AccessPlanned>,
    begun: Memo<AccessBeginning, u32>,
    learnt: Memo<(u32, Reply), u32>,
    created: Memo<(u32, u16, u32), u32>,
    patches: Memo<(u32, u32), Option<u32>>,
}

impl AccessTalks {
    pub(super) fn new(planner: AccessPlanner) -> Self {
        Self {
            accesses: Accesses::new(),
            sweeps: Sweeps::new(),
            planner,
            views: Known::new(),
            plans: Known::new(),
            begun: Memo::new(),
            learnt: Memo::new(),
            created: Memo::new(),
            patches: Memo::new(),
        }
    }

    /// Number of views that the planner was called with.
    pub(super) fn views(&self) -> usize {
        self.views.len()
    }

    /// Returns the view at the start of a pass, built like `Observer::begin_access` of the operator
    /// does it.
    pub(super) fn begin(&self, objects: &Objects, beginning: AccessBeginning) -> u32 {
        self.begun.get(beginning, |beginning| {
            let access = self.accesses.shown(beginning.access).clone();
            let cached = AccessCached {
                internal: all(objects, &beginning.own),
                consumers: all(objects, &beginning.consumers),
                namespace: Some(asker()),
                entries: vec![EntrySeen::Claim(word(objects, &beginning.heard))],
                lead: Lead::Here,
            };
            self.converse(AccessView::new(objects.setting.clone(), access, cached), beginning.access)
        })
    }

    fn converse(&self, view: AccessView, begun: u32) -> u32 {
        self.views.number(format!("{begun} {}", view.fingerprint()), |_| Pass { view, begun })
    }

    /// Returns the number of the next step.
    pub(super) fn plan(&self, objects: &Objects, view: u32, now: u32) -> u32 {
        self.plans.number((view, now), |_| {
            let step = (self.planner)(&self.views.get(view).view, timestamp(now));
            let call = match &step {
                ControlFlow::Break(rest) => Call::Rest(ending(rest)),
                ControlFlow::Continue(AccessStep::Look(look)) => look_call(objects, look),
                ControlFlow::Continue(AccessStep::Act(act)) => self.act_call(objects, act),
            };
            AccessPlanned { view, step, call }
        })
    }

    /// Returns the step with this number.
    pub(super) fn planned(&self, plan: u32) -> &AccessPlanned {
        self.plans.get(plan)
    }

    /// Returns the view after an answer.
    pub(super) fn learn(&self, objects: &Objects, plan: u32, reply: Reply) -> u32 {
        self.learnt.get((plan, reply), |(plan, reply)| {
            let planned = self.planned(*plan);
            let Pass { view, begun } = self.views.get(planned.view);
            let mut view = view.clone();
            if let ControlFlow::Continue(step) = &planned.step {
                view.learn(self.answer(objects, step, reply), Arrival::Prompt);
            }
            self.converse(view, *begun)
        })
    }

    /// Returns the Secret that a POST stores as this version of its name.
    pub(super) fn create(&self, objects: &Objects, plan: u32, version: u16, now: u32) -> u32 {
        self.created.get((plan, version, now), |_| {
            let content = match &self.planned(plan).step {
                ControlFlow::Continue(AccessStep::Act(AccessAct::CreateRecord(record))) => {
                    record.content(OPERATOR_NAMESPACE)
                }
                ControlFlow::Continue(AccessStep::Act(AccessAct::CreateConsumer(content))) => (**content).clone(),
                ControlFlow::Continue(AccessStep::Act(AccessAct::Mint(facts))) => {
                    // A name that is created again gets a new secret key.
                    facts.content(OPERATOR_NAMESPACE, Some(&SecretKey::new(format!("key-{version:036}"))))
                }
                step => unreachable!("{step:?} creates no Secret"),
            };
            objects.secret(&stored_first(content.to_secret(), version, now), version)
        })
    }

    /// Returns the Secret after a PATCH; `None` if the patch cannot be applied.
    pub(super) fn patch(&self, objects: &Objects, plan: u32, secret: u32) -> Option<u32> {
        self.patches.get((plan, secret), |_| {
            let ControlFlow::Continue(AccessStep::Act(AccessAct::Patch(patch))) = &self.planned(plan).step else {
                return None;
            };
            objects.patched(secret, patch)
        })
    }

    fn act_call(&self, objects: &Objects, act: &AccessAct) -> Call {
        let internal = |name: &str| Call::Create(objects.name(OPERATOR_NAMESPACE, name));
        match act {
            AccessAct::AddFinalizer(id) => Call::Finalizer(number_of(&id.resource_version), true),
            AccessAct::RemoveFinalizer(id) => Call::Finalizer(number_of(&id.resource_version), false),
            AccessAct::WriteStatus(id, status) => {
                Call::Status(number_of(&id.resource_version), self.accesses.status(status))
            }
            AccessAct::CreateRecord(record) => internal(&AccessRecord::name(&record.uid)),
            AccessAct::Mint(facts) => internal(&facts.access_key_id().access_secret_name()),
            AccessAct::CreateConsumer(content) => Call::Create(objects.name(&content.namespace, &content.name)),
            AccessAct::Patch(patch) => Call::Patch(number_of(&patch.target.id.resource_version)),
            AccessAct::Delete(secret) => Call::Delete(number_of(&secret.id.resource_version)),
        }
    }

    fn answer(&self, objects: &Objects, step: &AccessStep, reply: &Reply) -> AccessAnswer {
        if let Some(failure) = failure(reply) {
            return AccessAnswer::Failed(step.clone(), failure);
        }
        let access = |number: &u32| Box::new(self.accesses.shown(*number).clone());
        let one = |number: &Option<u32>| number.map(|number| objects.stored(number));
        match (step, reply) {
            (AccessStep::Look(AccessLook::Access), Reply::Access(number)) => {
                AccessAnswer::Access(number.as_ref().map(access))
            }
            (AccessStep::Look(AccessLook::Namespace), Reply::Namespace) => AccessAnswer::Namespace(Some(asker())),
            (AccessStep::Look(AccessLook::Own), Reply::Secrets(numbers)) => AccessAnswer::Own(all(objects, numbers)),
            (AccessStep::Look(AccessLook::Internal(name)), Reply::Secret(number)) => {
                AccessAnswer::Internal(name.clone(), one(number))
            }
            (AccessStep::Look(AccessLook::Consumer(name)), Reply::Secret(number)) => {
                AccessAnswer::Consumer(name.clone(), one(number))
            }
            (AccessStep::Look(AccessLook::Claim(claim)), Reply::Word(heard)) => {
                AccessAnswer::Claim(claim.clone(), word(objects, heard))
            }
            (AccessStep::Act(act), reply) => self.effect(objects, act, reply),
            (step, reply) => unreachable!("{reply:?} is no answer to {step}"),
        }
    }

    fn effect(&self, objects: &Objects, act: &AccessAct, reply: &Reply) -> AccessAnswer {
        let access = |number: &u32| Box::new(self.accesses.shown(*number).clone());
        match (act, reply) {
            (AccessAct::AddFinalizer(_), Reply::Access(Some(number))) => AccessAnswer::FinalizerAdded(access(number)),
            (AccessAct::RemoveFinalizer(_), Reply::Access(_)) => AccessAnswer::FinalizerRemoved,
            (AccessAct::WriteStatus(..), Reply::Access(Some(number))) => AccessAnswer::StatusWritten(access(number)),
            (AccessAct::CreateRecord(record), reply) => {
                AccessAnswer::RecordPosted(record.clone(), posted(objects, reply))
            }
            (AccessAct::Mint(facts), reply) => AccessAnswer::CredentialPosted(facts.clone(), posted(objects, reply)),
            (AccessAct::CreateConsumer(content), reply) => {
                AccessAnswer::ConsumerPosted(content.name.clone(), posted(objects, reply))
            }
            (AccessAct::Patch(patch), Reply::Secret(Some(number))) => {
                AccessAnswer::Patched(patch.change, objects.stored(*number))
            }
            (AccessAct::Delete(secret), Reply::Done) => AccessAnswer::Deleted(secret.clone(), None),
            (act, reply) => unreachable!("{reply:?} is no answer to {act:?}"),
        }
    }
}

fn look_call(objects: &Objects, look: &AccessLook) -> Call {
    match look {
        AccessLook::Access => Call::Access,
        AccessLook::Namespace => Call::Namespace,
        AccessLook::Own => Call::Own,
        AccessLook::Internal(name) => Call::Internal(objects.name(OPERATOR_NAMESPACE, name)),
        AccessLook::Consumer(name) => Call::Consumer(objects.name(&access_ref().namespace, name)),
        AccessLook::Claim(_) => Call::Word,
    }
}

fn all(objects: &Objects, numbers: &[u32]) -> Vec<Stored> {
    numbers.iter().map(|number| objects.stored(*number)).collect()
}

/// Summary of the claim that the access names, built like the operator's `Observer` does it.
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
