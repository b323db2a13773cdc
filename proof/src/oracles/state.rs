//! What is known at each moment of a history: claims in all their lives, and the Secrets that there
//! are.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube_sim::{Asked, Stored};
use stowage_operator::api::{AccessKeyId, ClaimUid};
use stowage_world::effects::{Actor, Call, Fault, KubeFault, KubeVerb, Line, ProcessFault, Rival, Trace};
use stowage_world::history::{Called, Event, Exchange, Tried, Used, What};

use super::case::{Case, Setting};
use super::clocks::Clocks;
use super::views::{Claim, Key, Policy, Secret};

/// Namespace and name.
pub(super) type Place<'a> = (&'a str, &'a str);

/// One event, read.
#[derive(Debug)]
pub(super) struct HistoryStep<'a> {
    /// Its index in the history.
    pub(super) index: usize,
    pub(super) at: Timestamp,
    pub(super) hand: Hand,
    pub(super) seen: Seen<'a>,
}

/// Who did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hand {
    /// The operator, by this call.
    Operator(u64),
    /// Anybody else.
    Other,
}

/// What happened.
#[derive(Debug)]
pub(super) enum Seen<'a> {
    /// A claim changed; before it was as the state has it. `None` if it is gone.
    Claim(&'a Stored, Option<Claim<'a>>),
    /// A Secret changed; before it was as the state has it. `None` if it is gone.
    Secret(Place<'a>, Option<Secret<'a>>),
    /// Another object changed.
    Object(&'a Stored),
    Asked(&'a Asked),
    Called(&'a Called),
    /// A use of a key at a gateway, counted from 0.
    Used(usize, &'a Used),
    Exchanged(&'a Exchange),
    Tried(&'a Tried),
    /// Somebody's clock is so many seconds ahead from now on.
    ClockOff(Actor, i64),
    AtRest,
    /// What no oracle asks for.
    Else,
}

impl HistoryStep<'_> {
    pub(super) fn by_operator(&self) -> bool {
        matches!(self.hand, Hand::Operator(_))
    }
}

/// A Secret that there is.
#[derive(Debug)]
pub(super) struct Held<'a> {
    pub(super) secret: Secret<'a>,
    /// Who changed it last.
    pub(super) hand: Hand,
}

/// A claim in one of its lives: what happened to it so far.
#[derive(Debug)]
pub(super) struct Life<'a> {
    /// As it is, or was last.
    pub(super) claim: Claim<'a>,
    /// Who removed it, if it is gone.
    pub(super) gone: Option<Hand>,
    /// The shortest overlap that its spec ever asked for.
    pub(super) least_overlap: i64,
    /// How often its user gave a reason for another key: a rotate request, a rotation by time,
    /// another backend.
    pub(super) requests: Requests,
    /// What the revoke annotation said, each time that it said something else.
    pub(super) revokes: Vec<&'a str>,
    /// Keys up to this generation are revoked, as a record has noted.
    pub(super) revoked_through: u64,
    /// What others did to it and its Secrets.
    pub(super) meddling: Meddling,
    /// When the policy ceased to be `Delete`, if it is not.
    pub(super) retained: Option<Edit>,
    /// When the policy ceased to be `Retain`, if it was.
    unretained: Option<Edit>,
    /// Buckets whose record the operator removed while they were to be kept, or had been when it
    /// read the claim last.
    pub(super) kept: Vec<String>,
    /// When emptying ceased to be wanted, if it is not.
    pub(super) unforced: Option<Edit>,
    /// When its deletion began.
    pub(super) deleting: Option<Edit>,
    /// When its consumer Secret was given another name last.
    pub(super) renamed: Option<Edit>,
    /// The last key that its status spoke of, unless others took that out again. The operator never
    /// forgets its generation.
    told_key: Option<&'a str>,
}

impl Life<'_> {
    /// Whether the operator itself let it go. One that others tore away may still be worked on, and
    /// is swept.
    pub(super) fn was_let_go(&self) -> bool {
        matches!(self.gone, Some(Hand::Operator(_)))
    }

    /// Whether a key is revoked. Of one whose labels somebody took off the id tells the generation.
    pub(super) fn has_revoked(&self, key: &Key<'_>) -> bool {
        let uid = ClaimUid::new(self.claim.uid);
        let mut revoked = 1..=self.revoked_through;
        match key.generation {
            Some(generation) => revoked.contains(&generation),
            None => revoked.any(|generation| AccessKeyId::of(&uid, generation).as_str() == key.id),
        }
    }

    /// Whether it goes or is gone. Then its consumer Secrets are for the cluster's own controllers
    /// to delete, and nobody misses them.
    fn goes(&self) -> bool {
        self.gone.is_some() || self.claim.is_deleting()
    }
}

/// What others did to a claim and its Secrets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meddling {
    /// Its finalizer was taken off, or it was removed.
    pub(super) finalizer: bool,
    /// A record of it was changed or deleted.
    pub(super) record: bool,
    /// A record of it was deleted.
    pub(super) record_deleted: bool,
    /// A record of it lost its labels before the claim's status spoke of its bucket.
    pub(super) record_untold: bool,
    /// A key or a consumer Secret of it was changed or deleted.
    pub(super) keys: bool,
}

impl Meddling {
    pub(super) fn any(self) -> bool {
        self.finalizer || self.record || self.keys
    }
}

/// Reasons for another key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Requests {
    /// New values of the annotations that rotate or revoke, and moves to another backend.
    pub(super) asked: usize,
    /// Whether it was ever to be rotated by time.
    pub(super) timed: bool,
}

/// A change of a claim, by its place among the operator's calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edit {
    /// Calls up to this number may have come before; those above it came after. Known once a later
    /// call is.
    pub(super) after: Option<u64>,
}

impl Edit {
    /// Whether a call surely came after the edit.
    pub(super) fn precedes(self, number: u64) -> bool {
        self.after.is_some_and(|after| number > after)
    }

    fn settle(edit: &mut Option<Self>, number: u64) {
        if let Some(edit) = edit {
            edit.after.get_or_insert(number);
        }
    }
}

/// What is known at a moment.
#[derive(Debug)]
pub(super) struct State<'a> {
    pub(super) setting: &'a Setting,
    pub(super) trace: &'a Trace,
    /// Whether no two operators ever ran at once, to get into each other's way.
    pub(super) alone: bool,
    /// Every claim that ever was, by UID.
    pub(super) lives: BTreeMap<&'a str, Life<'a>>,
    /// The Secrets that there are.
    pub(super) secrets: BTreeMap<Place<'a>, Held<'a>>,
    pub(super) clocks: Clocks,
    /// The highest number of a call so far.
    latest: u64,
    /// Whether an edit waits for the next call.
    unsettled: bool,
}

impl<'a> State<'a> {
    pub(super) fn new(case: &Case<'a>) -> Self {
        Self {
            setting: case.setting,
            trace: &case.history.trace,
            alone: are_alone(case),
            lives: BTreeMap::new(),
            secrets: BTreeMap::new(),
            clocks: Clocks::default(),
            latest: 0,
            unsettled: false,
        }
    }

    /// Reads an event. What it changed is not yet part of the state.
    pub(super) fn read(&mut self, index: usize, event: &'a Event) -> HistoryStep<'a> {
        if let Some(number) = event.effect.filter(|number| *number > self.latest) {
            self.latest = number;
            self.settle_edits(number - 1);
        }
        let seen = match &event.what {
            What::Stored(stored) => read_change(stored),
            What::Asked(asked) => Seen::Asked(asked),
            What::Called(called) => Seen::Called(called),
            What::Used(used) => Seen::Used(0, used),
            What::UsedAt { gateway, used } => Seen::Used(*gateway, used),
            What::Exchanged(exchange) => Seen::Exchanged(exchange),
            What::Tried(tried) => Seen::Tried(tried),
            What::ClockOff { actor, ahead } => Seen::ClockOff(*actor, *ahead),
            What::AtRest => Seen::AtRest,
            What::AccessUsed(_) => Seen::Else,
            What::Acted(_) | What::Began { .. } | What::Ended { .. } | What::Quiet => Seen::Else,
        };
        HistoryStep { index, at: event.at, hand: self.hand(event), seen }
    }

    fn settle_edits(&mut self, number: u64) {
        if !std::mem::take(&mut self.unsettled) {
            return;
        }
        for life in self.lives.values_mut() {
            let edits =
                [&mut life.retained, &mut life.unretained, &mut life.unforced, &mut life.deleting, &mut life.renamed];
            for edit in edits {
                Edit::settle(edit, number);
            }
        }
    }

    /// A change under a call that the server refused is that of the rival because of whom it did;
    /// unless the rival is an earlier attempt of the operator's own, which has landed after all.
    fn hand(&self, event: &Event) -> Hand {
        let Some(number) = event.effect else { return Hand::Other };
        let refused = self.line(number).is_some_and(|line| {
            let own = line.fault == Some(Fault::Kube(KubeFault::AlreadyExists(Rival::Own)));
            !own && line.world.is_some_and(|status| status >= 400)
        });
        match event.what {
            What::Stored(_) if refused => Hand::Other,
            _ => Hand::Operator(number),
        }
    }

    /// The line of a call in the trace.
    pub(super) fn line(&self, number: u64) -> Option<&'a Line> {
        self.trace.lines().get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// Whether what an operator did was decided before it stood still: the request was ready, and
    /// was sent when it went on.
    pub(super) fn stood_still(&self, hand: Hand) -> bool {
        matches!(hand, Hand::Operator(number) if self.line(number).is_some_and(is_standstill))
    }

    /// Whether it stood still at that call or at one before, back to the first of which this holds.
    pub(super) fn stood_still_since(&self, hand: Hand, first: impl Fn(&Line) -> bool) -> bool {
        let Hand::Operator(number) = hand else { return false };
        self.stood_still(hand) || self.before(number).take_while(|line| !first(line)).any(is_standstill)
    }

    /// The life of the operator that did something, if one did.
    pub(super) fn life(&self, hand: Hand) -> Option<u32> {
        match hand {
            Hand::Operator(number) => self.line(number).map(|line| line.instance),
            Hand::Other => None,
        }
    }

    /// Whether two operators did these things, or one in two of its lives.
    pub(super) fn are_apart(&self, one: Hand, other: Hand) -> bool {
        matches!((self.life(one), self.life(other)), (Some(one), Some(other)) if one != other)
    }

    /// The earlier calls of the same life of the operator, latest first.
    pub(super) fn before(&self, number: u64) -> impl Iterator<Item = &'a Line> + use<'a> {
        let instance = self.line(number).map(|line| line.instance);
        let index = usize::try_from(number).unwrap_or_default().saturating_sub(1);
        let earlier = self.trace.lines().iter().take(index).rev();
        earlier.filter(move |earlier| Some(earlier.instance) == instance)
    }

    /// The call by which what does this read the claim last.
    pub(super) fn last_read(&self, hand: Hand, claim: &Claim<'_>) -> Option<u64> {
        let Hand::Operator(number) = hand else { return None };
        self.before(number).find(|line| is_read_of(line, claim)).map(|line| line.number)
    }

    /// The Secrets of a claim's UID.
    pub(super) fn of(&self, uid: &str) -> impl Iterator<Item = (&Place<'a>, &Held<'a>)> {
        self.secrets.iter().filter(move |(_, held)| held.secret.uid() == Some(uid))
    }

    /// Whether a key is revoked.
    pub(super) fn is_revoked(&self, key: &Key<'_>) -> bool {
        self.lives.get(key.uid.as_str()).is_some_and(|life| life.has_revoked(key))
    }

    /// Whether nothing tells of a record or key of this UID any more: others took its labels off,
    /// and deleted the record that counts keys, or took off that one's as well before the claim's
    /// status spoke of its bucket. The status may still tell of a key.
    pub(super) fn is_untold(&self, uid: &str, held: &Held<'a>) -> bool {
        let is_told =
            |life: &Life<'_>| matches!(&held.secret, Secret::Key(key) if life.told_key == Some(key.id.as_str()));
        let record_is_lost = |life: &Life<'_>| life.meddling.record_deleted || life.meddling.record_untold;
        let untold = |life: &Life<'_>| record_is_lost(life) && !is_told(life);
        held.hand == Hand::Other && held.secret.is_hidden() && self.lives.get(uid).is_some_and(untold)
    }

    /// Takes in what a step changed.
    pub(super) fn take_in(&mut self, step: HistoryStep<'a>) {
        match step.seen {
            Seen::Claim(stored, new) => self.take_in_claim(step.hand, stored, new),
            Seen::Secret(place, new) => self.take_in_secret(step.hand, place, new),
            Seen::ClockOff(actor, ahead) => self.clocks.take_in(step.at, actor, ahead),
            _ => {}
        }
    }

    fn take_in_claim(&mut self, hand: Hand, stored: &'a Stored, new: Option<Claim<'a>>) {
        self.unsettled = true;
        let Some(new) = new else {
            let old = stored.old.as_deref().and_then(Claim::read);
            if let Some(life) = old.and_then(|old| self.lives.get_mut(old.uid)) {
                life.gone = Some(hand);
                life.meddling.finalizer |= hand == Hand::Other && life.claim.has_finalizer();
            }
            return;
        };
        let life = self.lives.entry(new.uid).or_insert_with(|| Life {
            claim: new,
            gone: None,
            least_overlap: i64::MAX,
            requests: Requests { asked: usize::from(new.rotate_request().is_some()), timed: false },
            revokes: Vec::new(),
            revoked_through: 0,
            meddling: Meddling::default(),
            retained: None,
            unretained: None,
            kept: Vec::new(),
            unforced: None,
            deleting: None,
            renamed: None,
            told_key: None,
        });
        life.meddling.finalizer |= hand == Hand::Other && life.claim.has_finalizer() && !new.has_finalizer();
        let asked = new.rotate_request().is_some() && new.rotate_request() != life.claim.rotate_request();
        let moved = new.backend() != life.claim.backend();
        life.requests.asked += usize::from(asked) + usize::from(moved);
        if let Some(request) = new.revoke_request().filter(|request| life.revokes.last() != Some(request)) {
            life.revokes.push(request);
            life.requests.asked += 1;
        }
        life.requests.timed |= new.rotates_by_time();
        if new.secret_name() != life.claim.secret_name() {
            life.renamed = Some(Edit { after: None });
        }
        if life.claim.policy() == Policy::Retain && new.policy() != Policy::Retain {
            life.unretained = Some(Edit { after: None });
        }
        let forgotten = hand == Hand::Other && !new.tells_generation();
        life.told_key = new.told_key().or(life.told_key.filter(|_| !forgotten));
        life.claim = new;
        life.least_overlap = life.least_overlap.min(new.overlap());
        let note = |edit: &mut Option<Edit>, holds: bool| {
            *edit = if holds { edit.or(Some(Edit { after: None })) } else { None };
        };
        note(&mut life.retained, new.policy() == Policy::Retain);
        note(&mut life.unforced, new.policy() != Policy::Force);
        note(&mut life.deleting, new.is_deleting());
    }

    fn take_in_secret(&mut self, hand: Hand, place: Place<'a>, new: Option<Secret<'a>>) {
        if new.is_none() {
            self.note_kept(hand, place);
        }
        if hand == Hand::Other {
            let old = self.secrets.get(&place).map(|held| &held.secret);
            for secret in [old, new.as_ref()].into_iter().flatten() {
                let Some(life) = secret.uid().and_then(|uid| self.lives.get_mut(uid)) else { continue };
                match secret {
                    Secret::Record(_) => {
                        life.meddling.record = true;
                        life.meddling.record_deleted |= new.is_none();
                        life.meddling.record_untold |= secret.is_hidden() && life.claim.told_bucket().is_none();
                    }
                    Secret::Consumer(_) if new.is_none() && life.goes() => {}
                    Secret::Key(_) | Secret::Consumer(_) => life.meddling.keys = true,
                    Secret::Binding(_) | Secret::OfAccess | Secret::Other => {}
                }
            }
        }
        if let Some(Secret::Record(record)) = &new
            && let Some(life) = self.lives.get_mut(record.uid.as_str())
        {
            life.revoked_through = life.revoked_through.max(record.revoked_through);
        }
        match new {
            Some(secret) => self.secrets.insert(place, Held { secret, hand }),
            None => self.secrets.remove(&place),
        };
    }

    /// Notes of a Secret that goes whether it is the record of a bucket that is to be kept.
    fn note_kept(&mut self, hand: Hand, place: Place<'a>) {
        let Some(Secret::Record(record)) = self.secrets.get(&place).map(|held| &held.secret) else { return };
        let (uid, bucket) = (record.uid.clone(), record.bucket.clone());
        let Some(life) = self.lives.get(uid.as_str()).filter(|_| hand != Hand::Other) else { return };
        let read = self.last_read(hand, &life.claim);
        let was_read_so = life.unretained.is_some_and(|edit| read.is_none_or(|read| !edit.precedes(read)));
        let kept = life.claim.policy() == Policy::Retain || was_read_so;
        if kept && let Some(life) = self.lives.get_mut(uid.as_str()) {
            life.kept.push(bucket);
        }
    }
}

/// Whether a call reads this claim, by its name.
pub(super) fn is_read_of(line: &Line, claim: &Claim<'_>) -> bool {
    let Call::Kube(call) = &line.call else { return false };
    call.verb == KubeVerb::Get
        && call.resource == "bucketclaims"
        && call.name.as_deref() == Some(claim.name)
        && call.namespace.as_deref() == Some(claim.namespace)
}

/// Whether the operator stood still at this call.
pub(super) fn is_standstill(line: &Line) -> bool {
    matches!(line.fault, Some(Fault::Process(ProcessFault::Pause { .. } | ProcessFault::Twin)))
}

/// Whether no two operators ever ran at once, to get into each other's way.
pub(super) fn are_alone(case: &Case<'_>) -> bool {
    case.setting.elects || (case.setting.operators < 2 && is_one_after_the_other(&case.history.trace))
}

/// Whether each life of the operator made its calls after those of the life before.
fn is_one_after_the_other(trace: &Trace) -> bool {
    trace.lines().windows(2).all(|pair| pair[0].instance <= pair[1].instance)
}

fn read_change(stored: &Stored) -> Seen<'_> {
    match stored.plural.as_str() {
        "bucketclaims" => Seen::Claim(stored, stored.new.as_deref().and_then(Claim::read)),
        "secrets" => {
            let (namespace, name) = (stored.namespace.as_str(), stored.name.as_str());
            let new = stored.new.as_deref().map(|object| Secret::read(namespace, name, object));
            Seen::Secret((namespace, name), new)
        }
        _ => Seen::Object(stored),
    }
}
