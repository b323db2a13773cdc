//! The conversations with the planner. Each thing that a pass can know is a number, and so is each step that the planner
//! names: it is asked once for each (view, time) that comes up, however many states of the world that is true in.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use stowage_operator::plan::orphans::{self, Sweep};
use stowage_operator::plan::{
    self, Act, Answer, BackendSeen, BucketSeen, CreateAnswer, DeleteAnswer, Failure, Holder, Look, PurgeEnd, Purged,
    Step, Stored, Then, View, missing_at,
};

use super::keys::{key, version};
use super::objects::{
    CLAIMS, OPERATOR_NAMESPACE, Objects, Uid, backend_number, claim_ref, patched, stored_first, timestamp,
};
use super::phrases::{Beginning, Call, Ending, Place, Planned, Reply, Report, Stride};
use super::shelf::{Answers, Known};

/// The planner, or something in its place.
pub(super) type Planner = fn(&View, Timestamp) -> Step;

struct Conversation {
    view: View,
    uid: Uid,
    begun: u32,
}

/// The planner and all that was ever said to it.
pub(super) struct Talks {
    pub(super) objects: Objects,
    planner: Planner,
    views: Known<String, Conversation>,
    plans: Known<(u32, u32), Planned>,
    begun: Answers<Beginning, u32>,
    learnt: Answers<(u32, Reply), u32>,
    created: Answers<(u32, u16, u32), u32>,
    patches: Answers<(u32, u32), Option<u32>>,
    sweeps: Known<String, (Sweep, orphans::Step, Stride)>,
    swept: Answers<(u32, Report), u32>,
}

impl Talks {
    pub(super) fn new(purge_slice: u32, planner: Planner) -> Self {
        Self {
            objects: Objects::new(purge_slice),
            planner,
            views: Known::new(),
            plans: Known::new(),
            begun: Answers::new(),
            learnt: Answers::new(),
            created: Answers::new(),
            patches: Answers::new(),
            sweeps: Known::new(),
            swept: Answers::new(),
        }
    }

    /// How many views the planner was shown.
    pub(super) fn views(&self) -> usize {
        self.views.len()
    }

    /// The view of a pass that begins, as the operator's `Observer::begin` and `Looks::recall` make it.
    pub(super) fn begin(&self, beginning: Beginning) -> u32 {
        self.begun.get(beginning, |beginning| {
            let claim = self.objects.claim_of(beginning.claim).clone();
            let stored = |numbers: &[u32]| numbers.iter().map(|number| self.stored(*number)).collect();
            let (own, consumers) = (stored(&beginning.own), stored(&beginning.consumers));
            let mut view = View::new(self.objects.setting.clone(), claim, own, consumers);
            if view.claim.deleting {
                view.own.clear();
                view.consumers.clear();
            }
            view.missing_at = beginning.missing.map(Place::target);
            view.unanswered = (beginning.unanswered > 0).then(|| Duration::from_secs(u64::from(beginning.unanswered)));
            view.look_due = beginning.look;
            self.converse(view, beginning.claim)
        })
    }

    fn converse(&self, view: View, begun: u32) -> u32 {
        self.views.number(key(&view, begun), |_| {
            let uid = self.objects.claim_facts(begun).uid;
            Conversation { view, uid, begun }
        })
    }

    /// Whose pass a view is of.
    pub(super) fn uid(&self, number: u32) -> Uid {
        self.views.get(number).uid
    }

    /// What a pass knows.
    pub(super) fn view(&self, number: u32) -> &View {
        &self.views.get(number).view
    }

    /// Where the bucket is missing, as far as a pass saw.
    pub(super) fn missing(&self, view: u32) -> Option<Place> {
        missing_at(self.view(view)).as_ref().map(Place::of)
    }

    /// The bucket that the claim's record is about, as far as a pass knows.
    pub(super) fn bucket(&self, view: u32) -> Option<Place> {
        plan::bucket_of(self.view(view)).as_ref().map(Place::of)
    }

    /// The number of the next step.
    pub(super) fn plan(&self, view: u32, now: u32) -> u32 {
        self.plans.number((view, now), |_| {
            let step = (self.planner)(self.view(view), timestamp(now));
            let call = self.call(self.view(view), &step);
            Planned { view, step, call }
        })
    }

    /// The step of a number.
    pub(super) fn planned(&self, plan: u32) -> &Planned {
        self.plans.get(plan)
    }

    /// What the pass knows after an answer.
    pub(super) fn learn(&self, plan: u32, reply: Reply) -> u32 {
        self.learnt.get((plan, reply), |(plan, reply)| {
            let planned = self.planned(*plan);
            let conversation = self.views.get(planned.view);
            let mut view = conversation.view.clone();
            view.learn(&planned.step, self.answer(reply));
            self.converse(view, conversation.begun)
        })
    }

    /// The Secret that a POST stores, in this version of its name.
    pub(super) fn create(&self, plan: u32, version: u16, now: u32) -> u32 {
        self.created.get((plan, version, now), |_| {
            let operator = OPERATOR_NAMESPACE;
            let content = match &self.planned(plan).step {
                Step::Act(Act::CreateRecord(record)) => record.content(operator),
                Step::Act(Act::CreateBinding(binding)) => binding.content(operator),
                Step::Act(Act::CreateConsumer(content)) => content.clone(),
                Step::Act(Act::Mint(facts)) => {
                    // Another secret each time that the name is given.
                    let key = stowage_operator::api::SecretKey::new(format!("key-{version}"));
                    facts.content(operator, Some(&key))
                }
                step => unreachable!("{step} creates no Secret"),
            };
            self.objects.secret(&stored_first(content.to_secret(), version, now), version)
        })
    }

    /// The Secret that a PATCH leaves; `None` = it can't be applied.
    pub(super) fn patch(&self, plan: u32, secret: u32) -> Option<u32> {
        self.patches.get((plan, secret), |_| {
            let Step::Act(Act::Patch(patch)) = &self.planned(plan).step else { return None };
            let facts = self.objects.secret_of(secret);
            let after = patched(&facts.stored.0, &patch.json())?;
            Some(self.objects.secret(&after, facts.version + 1))
        })
    }

    /// A sweep that begins.
    pub(super) fn sweep(&self, uid: Uid, seen: &[u32], create_pending: bool) -> u32 {
        let seen: Vec<Stored> = seen.iter().map(|number| self.stored(*number)).collect();
        self.go_on(Sweep::new(uid.claim_uid(), &seen, BTreeSet::new(), create_pending))
    }

    fn go_on(&self, sweep: Sweep) -> u32 {
        self.sweeps.number(format!("{sweep:?}"), |_| {
            let step = sweep.next();
            let stride = self.stride(&step);
            (sweep, step, stride)
        })
    }

    /// What a sweep is to do next.
    pub(super) fn stride_of(&self, sweep: u32) -> Stride {
        self.sweeps.get(sweep).2
    }

    /// The claim that a sweep is about, and its next step in words.
    pub(super) fn sweep_text(&self, sweep: u32) -> String {
        let (sweep, step, _) = self.sweeps.get(sweep);
        format!("sweep of {}: {step}", sweep.uid())
    }

    /// What a sweep knows after an answer.
    pub(super) fn sweep_learn(&self, sweep: u32, report: Report) -> u32 {
        self.swept.get((sweep, report), |(sweep, report)| {
            let (sweep, step, _) = self.sweeps.get(*sweep);
            let mut sweep = sweep.clone();
            let stored = |numbers: &[u32]| numbers.iter().map(|number| self.stored(*number)).collect();
            let answer = match report {
                Report::Claim(uid) => orphans::Answer::Claim(uid.map(Uid::claim_uid)),
                Report::Claims(alive) => orphans::Answer::Claims(*alive),
                Report::Secrets(numbers) => orphans::Answer::Secrets(stored(numbers)),
                Report::Secret(number) => orphans::Answer::Secret(number.map(|number| self.stored(number))),
                Report::Deleted => orphans::Answer::Deleted,
                Report::Failed => orphans::Answer::Failed("no answer".to_owned()),
            };
            sweep.learn(step, answer);
            self.go_on(sweep)
        })
    }

    fn stored(&self, number: u32) -> Stored {
        self.objects.secret_of(number).stored.clone()
    }

    fn stride(&self, step: &orphans::Step) -> Stride {
        match step {
            orphans::Step::Claim(claim) => {
                let slot = (0..CLAIMS).find(|slot| claim_ref(*slot) == *claim);
                slot.map_or(Stride::Retry, Stride::Claim)
            }
            orphans::Step::Claims => Stride::Claims,
            orphans::Step::Own => Stride::Own,
            orphans::Step::Internal(name) => Stride::Internal(self.objects.name(OPERATOR_NAMESPACE, name)),
            orphans::Step::Delete(secret) => Stride::Delete(version(&secret.id.resource_version)),
            orphans::Step::Rest(orphans::Rest::Held) => Stride::Held,
            orphans::Step::Rest(orphans::Rest::Retry(_)) => Stride::Retry,
            orphans::Step::Rest(_) => Stride::Over,
        }
    }

    fn call(&self, view: &View, step: &Step) -> Call {
        match step {
            Step::Look(look) => self.look(view, look),
            Step::Act(act) => self.act(act),
            Step::Rest(rest) => Call::Rest(match &rest.then {
                Then::AwaitChange => Ending::Change,
                Then::After(time) | Then::Wait(time) => {
                    Ending::After(u32::try_from(time.as_secs()).unwrap_or(u32::MAX))
                }
                Then::Retry(_) => Ending::Retry,
            }),
        }
    }

    fn look(&self, view: &View, look: &Look) -> Call {
        match look {
            Look::Backend(name) => {
                Call::Backend(backend_number(name).unwrap_or_else(|| unreachable!("no backend of the model: {name}")))
            }
            Look::Holder(target) => Call::Holder(Place::of(target)),
            Look::Claim => Call::Claim,
            Look::Own => Call::Own,
            Look::Internal(name) => Call::Internal(self.objects.name(OPERATOR_NAMESPACE, name)),
            Look::Consumer(name) => Call::Consumer(self.objects.name(&view.claim.at.namespace, name)),
            Look::CredentialsFor(target) => Call::CredentialsFor(Place::of(target)),
            Look::Bucket(target) => Call::Bucket(Place::of(target)),
            Look::Contents(target) => Call::Contents(Place::of(target)),
            Look::Versioning(_) => Call::Versioning,
        }
    }

    fn act(&self, act: &Act) -> Call {
        let internal = |name: &str| Call::Create(self.objects.name(OPERATOR_NAMESPACE, name));
        match act {
            Act::AddFinalizer(id) => Call::Finalizer(version(&id.resource_version), true),
            Act::RemoveFinalizer(id) => Call::Finalizer(version(&id.resource_version), false),
            Act::WriteStatus(id, status) => Call::Status(version(&id.resource_version), self.objects.status(status)),
            Act::CreateRecord(record) => internal(record.name().as_str()),
            Act::CreateBinding(binding) => internal(&stowage_operator::api::AnonymousBinding::name(&binding.uid)),
            Act::Mint(facts) => internal(&facts.access_key_id().secret_name()),
            Act::CreateConsumer(content) => Call::Create(self.objects.name(&content.namespace, &content.name)),
            Act::Patch(patch) => Call::Patch(version(&patch.target.id.resource_version)),
            Act::Delete(secret) => Call::Delete(version(&secret.id.resource_version)),
            Act::CreateBucket(target) => Call::CreateBucket(Place::of(target)),
            Act::Purge(target, most) => Call::Purge(Place::of(target), *most),
            Act::DeleteBucket(target) => Call::DeleteBucket(Place::of(target)),
            Act::TagBucket(target, tags) => Call::Tag(Place::of(target), self.objects.tags(tags)),
            Act::SetVersioning(..) => Call::Versioning,
        }
    }

    fn answer(&self, reply: &Reply) -> Answer {
        let why = || "no answer".to_owned();
        match reply {
            Reply::Backend(None) => Answer::Backend(BackendSeen::Missing),
            Reply::Backend(Some(facts)) => Answer::Backend(self.objects.backend(*facts).clone()),
            Reply::Held(slot) => Answer::Holder(slot.map_or(Holder::Unknown, |slot| Holder::Other(claim_ref(slot)))),
            Reply::Suspect => Answer::Holder(Holder::Suspect),
            Reply::Damaged => Answer::Holder(Holder::Damaged("damaged".to_owned())),
            Reply::Claim(number) => Answer::Claim(number.map(|number| Box::new(self.objects.claim_of(number).clone()))),
            Reply::Secrets(numbers) => Answer::Secrets(numbers.iter().map(|number| self.stored(*number)).collect()),
            Reply::Secret(number) => Answer::Secret(number.map(|number| self.stored(number))),
            Reply::Absent => Answer::Bucket(BucketSeen::Absent),
            Reply::Present(tags) => Answer::Bucket(BucketSeen::Present(Some(self.objects.tags_of(*tags).tags.clone()))),
            Reply::Empty(empty) => Answer::Empty(*empty),
            Reply::Created(true) => Answer::Created(CreateAnswer::Created),
            Reply::Created(false) => Answer::Created(CreateAnswer::AlreadyOwned),
            Reply::Purged(deleted, all) => Answer::Purged(Purged {
                deleted: u64::from(*deleted),
                end: if *all { PurgeEnd::Empty } else { PurgeEnd::More },
            }),
            Reply::PurgeFailed => {
                Answer::Purged(Purged { deleted: 0, end: PurgeEnd::Failed(Failure::Upstream(why())) })
            }
            Reply::Deleted => Answer::Deleted(DeleteAnswer::Deleted),
            Reply::Gone => Answer::Deleted(DeleteAnswer::Absent),
            Reply::NotEmpty => Answer::Deleted(DeleteAnswer::NotEmpty),
            Reply::Exists => Answer::Exists,
            Reply::Done => Answer::Done,
            Reply::Conflict => Answer::Failed(Failure::Conflict),
            Reply::Kubernetes => Answer::Failed(Failure::Kubernetes(why())),
            Reply::Terminating => Answer::Failed(Failure::NamespaceTerminating),
            Reply::Upstream => Answer::Failed(Failure::Upstream(why())),
            Reply::NoUpstream => Answer::Failed(Failure::NoUpstream("the backend points elsewhere".to_owned())),
            Reply::Unsupported => Answer::Failed(Failure::Unsupported),
        }
    }
}
