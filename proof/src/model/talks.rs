//! Conversations with the planner. Views and steps are interned as numbers, so the planner is
//! called once for each pair of view and time that occurs, no matter in how many states of the
//! world.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use stowage_operator::api::Claim;
use stowage_operator::plan::orphans::OfClaim;
use stowage_operator::plan::{
    self, Act, Answer, Asking, BackendSeen, BucketSeen, Cached, ConsentQuestion, ConsentSeen, CreateAnswer,
    DeleteAnswer, Failure, Holder, Look, Posted, PurgeEnd, Purged, Remembered, Step, Stored, Unasked, View,
};

use super::access::{access_ref, asker};
use super::access_talks::{self, AccessPlanner, AccessTalks};
use super::facts::{OPERATOR_NAMESPACE, Uid};
use super::names::{backend_number, claim_ref, number_of};
use super::objects::{Objects, stored_first, timestamp};
use super::phrases::{Asks, Beginning, Call, ConsentRead, NO_ANSWER, Place, Planned, Reply, ending, failure, posted};
use super::shelf::{Known, Memo};
use super::sweeps::Sweeps;

/// The planner of claims, or a replacement in a test.
pub(super) type Planner = fn(&View, Timestamp) -> Step;

/// The planners of claims and of accesses, or replacements in a test.
#[derive(Clone, Copy)]
pub(super) struct Planners {
    pub(super) claims: Planner,
    pub(super) accesses: AccessPlanner,
}

impl Planners {
    /// The production planners.
    pub(super) const PRODUCTION: Self = Self { claims: plan::next, accesses: access_talks::next };
}

struct Pass {
    view: View,
    uid: Uid,
    begun: u32,
}

/// The planner, with every view and answer so far.
pub(super) struct Talks {
    pub(super) objects: Objects,
    pub(super) sweeps: Sweeps<OfClaim>,
    /// Conversations with the planner of accesses.
    pub(super) access: AccessTalks,
    planner: Planner,
    views: Known<String, Pass>,
    plans: Known<(u32, u32), Planned>,
    begun: Memo<Beginning, u32>,
    learnt: Memo<(u32, Reply), u32>,
    created: Memo<(u32, u16, u32), u32>,
    patches: Memo<(u32, u32), Option<u32>>,
}

impl Talks {
    pub(super) fn new(purge_slice: u32, planners: Planners) -> Self {
        Self {
            objects: Objects::new(purge_slice),
            access: AccessTalks::new(planners.accesses),
            planner: planners.claims,
            views: Known::new(),
            plans: Known::new(),
            begun: Memo::new(),
            learnt: Memo::new(),
            created: Memo::new(),
            patches: Memo::new(),
            sweeps: Sweeps::new(),
        }
    }

    /// Returns the number of views that the planners were called with.
    pub(super) fn views(&self) -> usize {
        self.views.len() + self.access.views()
    }

    /// Returns the view at the start of a pass, built like the operator's `Observer::begin` and
    /// `Looks::recall` do it.
    pub(super) fn begin(&self, beginning: Beginning) -> u32 {
        self.begun.get(beginning, |beginning| {
            let claim = self.objects.claim_of(beginning.claim).clone();
            let stored = |numbers: &[u32]| numbers.iter().map(|number| self.stored(*number)).collect();
            let (internal, consumers) = (stored(&beginning.own), stored(&beginning.consumers));
            let asking = beginning.asks.map(|asks| self.asking(&beginning.own, asks));
            let cached = Cached { internal, consumers, asking, ..Cached::default() };
            let unanswered = Duration::from_secs(u64::from(beginning.unanswered));
            let remembered = Remembered {
                missing_at: beginning.missing.map(Place::target),
                unanswered: (!unanswered.is_zero()).then_some(unanswered),
                look_due: beginning.look,
                ..Remembered::default()
            };
            let view = View::new(self.objects.setting.clone(), claim, cached).begin(remembered);
            self.converse(view, beginning.claim)
        })
    }

    /// Returns the accesses that request the bucket, computed like the operator's
    /// `Observer::asking` does it.
    fn asking(&self, own: &[u32], asks: Asks) -> Asking {
        let mut records = own.iter().filter_map(|number| self.objects.secret_of(*number).record.as_ref());
        let asker = asker();
        let is_open = records.any(|record| record.accesses.contains_key(&asker.uid));
        let is_known = asks == Asks::Shown || is_open;
        Asking {
            accesses: (asks == Asks::Shown).then(access_ref).into_iter().collect(),
            recorded: (asks == Asks::Recorded && is_open).then(access_ref).into_iter().collect(),
            namespaces: is_known.then(|| (asker.uid.clone(), asker)).into_iter().collect(),
            unasked: Unasked::new(),
        }
    }

    fn converse(&self, view: View, begun: u32) -> u32 {
        self.views.number(format!("{begun} {}", view.fingerprint()), |_| {
            let uid = self.objects.claim_facts(begun).uid;
            Pass { view, uid, begun }
        })
    }

    /// Returns the UID of the claim that a view is about.
    pub(super) fn uid(&self, number: u32) -> Uid {
        self.views.get(number).uid
    }

    /// Returns the view with this number.
    pub(super) fn view(&self, number: u32) -> &View {
        &self.views.get(number).view
    }

    /// Returns the place where the bucket is missing, as far as a pass saw.
    pub(super) fn missing(&self, view: u32) -> Option<Place> {
        self.view(view).remembered().missing_at.as_ref().map(Place::of)
    }

    /// Returns the bucket of the claim's record, as far as a pass knows.
    pub(super) fn bucket(&self, view: u32) -> Option<Place> {
        self.view(view).bucket_of_record().as_ref().map(Place::of)
    }

    /// Returns the number of the next step.
    pub(super) fn plan(&self, view: u32, now: u32) -> u32 {
        self.plans.number((view, now), |_| {
            let step = (self.planner)(self.view(view), timestamp(now));
            let call = self.call(self.view(view), &step);
            Planned { view, step, call }
        })
    }

    /// Returns the step with this number.
    pub(super) fn planned(&self, plan: u32) -> &Planned {
        self.plans.get(plan)
    }

    /// Returns the view after an answer.
    pub(super) fn learn(&self, plan: u32, reply: Reply) -> u32 {
        self.learnt.get((plan, reply), |(plan, reply)| {
            let planned = self.planned(*plan);
            let conversation = self.views.get(planned.view);
            let mut view = conversation.view.clone();
            view.learn(self.answer(&planned.step, reply));
            self.converse(view, conversation.begun)
        })
    }

    /// Returns the Secret that a POST stores as this version of its name.
    pub(super) fn create(&self, plan: u32, version: u16, now: u32) -> u32 {
        self.created.get((plan, version, now), |_| {
            let operator = OPERATOR_NAMESPACE;
            let content = match &self.planned(plan).step {
                Step::Act(Act::CreateRecord(record)) => record.content(operator),
                Step::Act(Act::CreateBinding(binding)) => binding.content(operator),
                Step::Act(Act::CreateConsumer(content)) => (**content).clone(),
                Step::Act(Act::Mint(facts)) => {
                    // A name that is created again gets a new secret key.
                    let key = stowage_operator::api::SecretKey::new(format!("key-{version:036}"));
                    facts.content(operator, Some(&key))
                }
                step => unreachable!("{step} creates no Secret"),
            };
            self.objects.secret(&stored_first(content.to_secret(), version, now), version)
        })
    }

    /// Returns the Secret after a PATCH; `None` if the patch cannot be applied.
    pub(super) fn patch(&self, plan: u32, secret: u32) -> Option<u32> {
        self.patches.get((plan, secret), |_| {
            let Step::Act(Act::Patch(patch)) = &self.planned(plan).step else { return None };
            self.objects.patched(secret, patch)
        })
    }

    fn stored(&self, number: u32) -> Stored {
        self.objects.stored(number)
    }

    fn call(&self, view: &View, step: &Step) -> Call {
        match step {
            Step::Look(look) => self.look(view, look),
            Step::Act(act) => self.act(act),
            Step::Rest(rest) => Call::Rest(ending(rest)),
        }
    }

    fn look(&self, view: &View, look: &Look) -> Call {
        match look {
            Look::Backend(name) => Call::Backend(known_backend(name)),
            Look::Holder(target) => Call::Holder(Place::of(target)),
            Look::PublicRival(_) => Call::PublicRival,
            Look::Claim => Call::Claim,
            Look::Own => Call::Own,
            Look::Internal(name) => Call::Internal(self.objects.name(OPERATOR_NAMESPACE, name)),
            Look::Consumer(name) => Call::Consumer(self.objects.name(&view.claim().at.namespace, name)),
            Look::CredentialsFor(target) => Call::CredentialsFor(Place::of(target)),
            Look::Bucket(target) => Call::Bucket(Place::of(target)),
            Look::Owner(target) => Call::Owner(Place::of(target)),
            Look::Contents(target) => Call::Contents(Place::of(target)),
            Look::Versioning(_) => Call::Versioning,
            Look::Consent(question) => Call::Consent(
                self.objects.name(OPERATOR_NAMESPACE, question.record.as_str()),
                known_backend(&question.backend),
            ),
        }
    }

    fn act(&self, act: &Act) -> Call {
        let internal = |name: &str| Call::Create(self.objects.name(OPERATOR_NAMESPACE, name));
        match act {
            Act::AddFinalizer(id) => Call::Finalizer(number_of(&id.resource_version), true),
            Act::RemoveFinalizer(id) => Call::Finalizer(number_of(&id.resource_version), false),
            Act::WriteStatus(id, status) => Call::Status(number_of(&id.resource_version), self.objects.status(status)),
            Act::CreateRecord(record) => internal(record.name().as_str()),
            Act::CreateBinding(binding) => internal(&stowage_operator::api::AnonymousBinding::name(&binding.uid)),
            Act::Mint(facts) => internal(&facts.access_key_id().secret_name()),
            Act::CreateConsumer(content) => Call::Create(self.objects.name(&content.namespace, &content.name)),
            Act::Patch(patch) => Call::Patch(number_of(&patch.target.id.resource_version)),
            Act::Delete(secret) => Call::Delete(number_of(&secret.id.resource_version)),
            Act::CreateBucket(target) => Call::CreateBucket(Place::of(target)),
            Act::Purge(target, most) => Call::Purge(Place::of(target), *most),
            Act::DeleteBucket(target) => Call::DeleteBucket(Place::of(target)),
            Act::TagBucket(target, tags) => Call::Tag(Place::of(target), self.objects.tags(tags)),
            Act::SetVersioning(..) => Call::Versioning,
        }
    }

    /// Returns the answer to a step that a reply means.
    fn answer(&self, step: &Step, reply: &Reply) -> Answer {
        if let Some(failure) = failure(reply) {
            return Answer::Failed(step.clone(), failure);
        }
        match step {
            Step::Look(look) => self.finding(look, reply),
            Step::Act(act) => self.effect(act, reply),
            Step::Rest(_) => unreachable!("nobody answers one who rests"),
        }
    }

    fn finding(&self, look: &Look, reply: &Reply) -> Answer {
        let all = |numbers: &[u32]| numbers.iter().map(|number| self.stored(*number)).collect();
        let one = |number: &Option<u32>| number.map(|number| self.stored(number));
        match (look, reply) {
            (Look::Backend(name), Reply::Backend(facts)) => {
                let seen = facts.map_or(BackendSeen::Missing, |facts| self.objects.backend(facts).clone());
                Answer::Backend(name.clone(), seen)
            }
            (Look::Holder(at), Reply::Held(slot)) => {
                Answer::Holder(at.clone(), slot.map_or(Holder::Unknown, |slot| Holder::Other(claim_ref(slot))))
            }
            (Look::Holder(at), Reply::Suspect) => Answer::Holder(at.clone(), Holder::Suspect),
            (Look::Holder(at), Reply::Damaged) => Answer::Holder(at.clone(), Holder::Damaged("damaged".to_owned())),
            (Look::PublicRival(at), Reply::Held(None)) => Answer::PublicRival(at.clone(), None),
            (Look::Claim, Reply::Claim(number)) => Answer::Claim(number.map(|number| self.claim(number))),
            (Look::Own, Reply::Secrets(numbers)) => Answer::Own(all(numbers)),
            (Look::CredentialsFor(at), Reply::Secrets(numbers)) => Answer::CredentialsFor(at.clone(), all(numbers)),
            (Look::Internal(name), Reply::Secret(number)) => Answer::Internal(name.clone(), one(number)),
            (Look::Consumer(name), Reply::Secret(number)) => Answer::Consumer(name.clone(), one(number)),
            (Look::Bucket(at), Reply::Absent) => Answer::Bucket(at.clone(), BucketSeen::Absent),
            (Look::Bucket(at), Reply::Present(tags)) => {
                let tags = self.objects.tags_of(*tags).tags.clone();
                Answer::Bucket(at.clone(), BucketSeen::Present(Some(tags)))
            }
            (Look::Owner(at), Reply::Owner(owner)) => Answer::Owner(at.clone(), *owner),
            (Look::Consent(question), Reply::Consent(seen)) => {
                Answer::Consent(question.clone(), Box::new(self.consent_seen(question, seen)))
            }
            (Look::Contents(at), Reply::Empty(empty)) => Answer::Contents(at.clone(), *empty),
            (look, reply) => unreachable!("{reply:?} is no answer to {look}"),
        }
    }

    /// Returns the answer to a question about consent. It includes only accesses that the question
    /// names.
    fn consent_seen(&self, question: &ConsentQuestion, seen: &ConsentRead) -> ConsentSeen {
        let asks = seen.asks && question.accesses.contains(&access_ref());
        let backend = seen.backend.and_then(|facts| match self.objects.backend(facts) {
            BackendSeen::Present { backend, .. } => Some(backend.clone()),
            BackendSeen::Missing | BackendSeen::Invalid(_) => None,
        });
        ConsentSeen {
            record: seen.record.map(|number| self.stored(number)),
            own: seen.own.iter().map(|number| self.stored(*number)).collect(),
            askers: asks.then(asker).into_iter().collect(),
            unasked: Unasked::new(),
            backend,
            claim: seen.claim.map(|number| self.claim(number)),
        }
    }

    fn effect(&self, act: &Act, reply: &Reply) -> Answer {
        match (act, reply) {
            (Act::AddFinalizer(_), Reply::Claim(Some(number))) => Answer::FinalizerAdded(self.claim(*number)),
            (Act::RemoveFinalizer(_), Reply::Claim(_)) => Answer::FinalizerRemoved,
            (Act::WriteStatus(..), Reply::Claim(Some(number))) => Answer::StatusWritten(self.claim(*number)),
            (Act::CreateRecord(record), reply) => Answer::RecordPosted((**record).clone(), self.posted(reply)),
            (Act::Mint(facts), reply) => Answer::CredentialPosted(facts.clone(), self.posted(reply)),
            (Act::CreateConsumer(content), reply) => Answer::ConsumerPosted(content.name.clone(), self.posted(reply)),
            (Act::CreateBinding(_), reply) => Answer::BindingPosted(self.posted(reply)),
            (Act::Patch(patch), Reply::Secret(Some(number))) => Answer::Patched(patch.change, self.stored(*number)),
            (Act::Delete(secret), Reply::Done) => Answer::Deleted(secret.clone(), None),
            (Act::CreateBucket(at), Reply::Created(true)) => Answer::BucketCreated(at.clone(), CreateAnswer::Created),
            (Act::CreateBucket(at), Reply::Created(false)) => {
                Answer::BucketCreated(at.clone(), CreateAnswer::AlreadyOwned)
            }
            (Act::TagBucket(at, tags), Reply::Done) => Answer::BucketTagged(at.clone(), tags.clone()),
            (Act::Purge(at, most), reply) => Answer::BucketPurged(at.clone(), *most, purged(reply)),
            (Act::DeleteBucket(at), Reply::Deleted) => Answer::BucketDeleted(at.clone(), DeleteAnswer::Deleted),
            (Act::DeleteBucket(at), Reply::Gone) => Answer::BucketDeleted(at.clone(), DeleteAnswer::Absent),
            (Act::DeleteBucket(at), Reply::NotEmpty) => Answer::BucketDeleted(at.clone(), DeleteAnswer::NotEmpty),
            (act, reply) => unreachable!("{reply:?} is no answer to {act}"),
        }
    }

    fn claim(&self, number: u32) -> Box<Claim> {
        Box::new(self.objects.claim_of(number).clone())
    }

    fn posted(&self, reply: &Reply) -> Posted {
        posted(&self.objects, reply)
    }
}

fn known_backend(name: &str) -> u8 {
    backend_number(name).unwrap_or_else(|| unreachable!("no backend of the model: {name}"))
}

fn purged(reply: &Reply) -> Purged {
    match reply {
        Reply::Purged(deleted, all) => {
            Purged { deleted: u64::from(*deleted), end: if *all { PurgeEnd::Empty } else { PurgeEnd::More } }
        }
        Reply::PurgeFailed => Purged { deleted: 0, end: PurgeEnd::Failed(Failure::Upstream(NO_ANSWER.to_owned())) },
        reply => unreachable!("{reply:?} is no answer to a purge"),
    }
}
