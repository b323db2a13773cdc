//! The knowledge at each moment of a history: all claims that ever existed, and the existing
//! Secrets.

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

/// A parsed event.
#[derive(Debug)]
pub(super) struct HistoryStep<'a> {
    /// Index in the history.
    pub(super) index: usize,
    pub(super) at: Timestamp,
    pub(super) hand: Hand,
    pub(super) seen: Seen<'a>,
}

/// The actor of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hand {
    /// The operator, by this call.
    Operator(u64),
    /// Anyone else.
    Other,
}

/// The content of an event.
#[derive(Debug)]
pub(super) enum Seen<'a> {
    /// A claim changed; the state still has its former version. `None` if it is gone.
    Claim(&'a Stored, Option<Claim<'a>>),
    /// A Secret changed; the state still has its former version. `None` if it is gone.
    Secret(Place<'a>, Option<Secret<'a>>),
    /// Another object changed.
    Object(&'a Stored),
    Asked(&'a Asked),
    Called(&'a Called),
    /// A use of a key at the gateway of this index.
    Used(usize, &'a Used),
    Exchanged(&'a Exchange),
    Tried(&'a Tried),
    /// An actor's clock is ahead by this many seconds from now on.
    ClockOff(Actor, i64),
    AtRest,
    /// An event that no oracle needs.
    Else,
}

impl HistoryStep<'_> {
    pub(super) fn by_operator(&self) -> bool {
        matches!(self.hand, Hand::Operator(_))
    }
}

/// An existing Secret.
#[derive(Debug)]
pub(super) struct Held<'a> {
    pub(super) secret: Secret<'a>,
    /// The actor that changed it last.
    pub(super) hand: Hand,
}

/// A claim of one UID, and its history so far.
#[derive(Debug)]
pub(super) struct Life<'a> {
    /// The current version, or the last one.
    pub(super) claim: Claim<'a>,
    /// The actor that removed it, if it is gone.
    pub(super) gone: Option<Hand>,
    /// The shortest overlap that its spec ever had.
    pub(super) least_overlap: i64,
    /// Number of reasons for another key that its user gave: a rotate request, a rotation by time,
    /// another backend.
    pub(super) requests: Requests,
    /// All values of its revoke annotation.
    pub(super) revokes: Vec<&'a str>,
    /// Highest revoked generation, from the claim's records.
    pub(super) revoked_through: u64,
    /// Changes of the claim and its Secrets by other actors.
    pub(super) meddling: Meddling,
    /// The edit that changed its policy to `Retain`, if it is `Retain` now.
    pub(super) retained: Option<Edit>,
    /// The last edit that changed its policy from `Retain`.
    unretained: Option<Edit>,
    /// Buckets whose record the operator deleted while the policy was Retain, or had been at its
    /// last read of the claim.
    pub(super) kept: Vec<String>,
    /// The edit that forbade emptying, if it is forbidden now.
    pub(super) unforced: Option<Edit>,
    /// The start of its deletion.
    pub(super) deleting: Option<Edit>,
    /// The last change of its consumer Secret's name.
    pub(super) renamed: Option<Edit>,
    /// The last key that the claim's status named, unless another actor removed that field. The
    /// operator never forgets the key's generation.
    told_key: Option<&'a str>,
}

impl Life<'_> {
    /// Returns true if the operator itself released the claim. One that others removed may still be
    /// reconciled, and is swept.
    pub(super) fn was_let_go(&self) -> bool {
        matches!(self.gone, Some(Hand::Operator(_)))
    }

    /// Returns true if a key is revoked. If its labels were removed, its id shows the generation.
    pub(super) fn has_revoked(&self, key: &Key<'_>) -> bool {
        let uid = ClaimUid::new(self.claim.uid);
        let mut revoked = 1..=self.revoked_through;
        match key.generation {
            Some(generation) => revoked.contains(&generation),
            None => revoked.any(|generation| AccessKeyId::of(&uid, generation).as_str() == key.id),
        }
    }

    /// Returns true if the claim is being deleted or is gone. The cluster's own controllers then
    /// delete its consumer Secrets, which counts as no change by others.
    fn goes(&self) -> bool {
        self.gone.is_some() || self.claim.is_deleting()
    }
}

/// Changes of a claim and its Secrets by other actors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meddling {
    /// True if the claim, or only its finalizer, was removed.
    pub(super) finalizer: bool,
    /// One of its records was changed or deleted.
    pub(super) record: bool,
    /// One of its records was deleted.
    pub(super) record_deleted: bool,
    /// One of its records lost its labels before the claim's status named its bucket.
    pub(super) record_untold: bool,
    /// One of its keys or consumer Secrets was changed or deleted.
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
    /// Number of new values of the rotate and revoke annotations, and of moves to another backend.
    pub(super) asked: usize,
    /// True if the claim's key ever was to be rotated by time.
    pub(super) timed: bool,
}

/// A change of a claim, and its place among the operator's calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edit {
    /// Number of the last call that may precede the edit; later calls follow it. Known once a later
    /// call is.
    pub(super) after: Option<u64>,
}

impl Edit {
    /// Returns true if a call certainly came after the edit.
    pub(super) fn precedes(self, number: u64) -> bool {
        self.after.is_some_and(|after| number > after)
    }

    fn settle(edit: &mut Option<Self>, number: u64) {
        if let Some(edit) = edit {
            edit.after.get_or_insert(number);
        }
    }
}

/// The knowledge at a moment.
#[derive(Debug)]
pub(super) struct State<'a> {
    pub(super) setting: &'a Setting,
    pub(super) trace: &'a Trace,
    /// True if no two operators ever ran at once, so that none could interfere with another.
    pub(super) alone: bool,
    /// Every claim that ever existed, by UID.
    pub(super) lives: BTreeMap<&'a str, Life<'a>>,
    /// The existing Secrets.
    pub(super) secrets: BTreeMap<Place<'a>, Held<'a>>,
    pub(super) clocks: Clocks,
    /// The highest number of a call so far.
    latest: u64,
    /// True if an edit waits for the next call.
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

    /// Parses an event. Its change is not yet part of the state.
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

    /// Returns the actor of an event.
    ///
    /// A change under a call that the server refused was made by the rival that caused the refusal;
    /// unless that rival is an earlier attempt of the operator itself which was carried out after
    /// all.
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

    /// Returns the line of a call in the trace.
    pub(super) fn line(&self, number: u64) -> Option<&'a Line> {
        self.trace.lines().get(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// Returns true if the operator decided on the call before it was paused: the request was
    /// ready, and was sent after the pause.
    pub(super) fn stood_still(&self, hand: Hand) -> bool {
        matches!(hand, Hand::Operator(number) if self.line(number).is_some_and(is_standstill))
    }

    /// Returns true if the operator was paused before that call, or before an earlier one that is
    /// later than the last call that matches `first`.
    pub(super) fn stood_still_since(&self, hand: Hand, first: impl Fn(&Line) -> bool) -> bool {
        let Hand::Operator(number) = hand else { return false };
        self.stood_still(hand) || self.before(number).take_while(|line| !first(line)).any(is_standstill)
    }

    /// Returns the life of the operator that made a change; `None` for another actor.
    pub(super) fn life(&self, hand: Hand) -> Option<u32> {
        match hand {
            Hand::Operator(number) => self.line(number).map(|line| line.instance),
            Hand::Other => None,
        }
    }

    /// Returns true if two operators made the changes, or one in two of its lives.
    pub(super) fn are_apart(&self, one: Hand, other: Hand) -> bool {
        matches!((self.life(one), self.life(other)), (Some(one), Some(other)) if one != other)
    }

    /// Returns the earlier calls of the same life of the operator, latest first.
    pub(super) fn before(&self, number: u64) -> impl Iterator<Item = &'a Line> + use<'a> {
        let instance = self.line(number).map(|line| line.instance);
        let index = usize::try_from(number).unwrap_or_default().saturating_sub(1);
        let earlier = self.trace.lines().iter().take(index).rev();
        earlier.filter(move |earlier| Some(earlier.instance) == instance)
    }

    /// Returns the number of the last call before a change in which the same life read the claim.
    pub(super) fn last_read(&self, hand: Hand, claim: &Claim<'_>) -> Option<u64> {
        let Hand::Operator(number) = hand else { return None };
        self.before(number).find(|line| is_read_of(line, claim)).map(|line| line.number)
    }

    /// Returns the Secrets of a claim's UID.
    pub(super) fn of(&self, uid: &str) -> impl Iterator<Item = (&Place<'a>, &Held<'a>)> {
        self.secrets.iter().filter(move |(_, held)| held.secret.uid() == Some(uid))
    }

    /// Returns true if a key is revoked.
    pub(super) fn is_revoked(&self, key: &Key<'_>) -> bool {
        self.lives.get(key.uid.as_str()).is_some_and(|life| life.has_revoked(key))
    }

    /// Returns true if no trace of a record or key of this UID is left.
    ///
    /// Its labels were removed by others. The record that counts keys was deleted too, or lost its
    /// labels before the claim's status named its bucket. The status may still name a key.
    pub(super) fn is_untold(&self, uid: &str, held: &Held<'a>) -> bool {
        let is_told =
            |life: &Life<'_>| matches!(&held.secret, Secret::Key(key) if life.told_key == Some(key.id.as_str()));
        let record_is_lost = |life: &Life<'_>| life.meddling.record_deleted || life.meddling.record_untold;
        let untold = |life: &Life<'_>| record_is_lost(life) && !is_told(life);
        held.hand == Hand::Other && held.secret.is_hidden() && self.lives.get(uid).is_some_and(untold)
    }

    /// Adds the change of a step to the state.
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

    /// Records the bucket of a deleted record if it was to be kept.
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

/// Returns true if a call reads this claim by name.
pub(super) fn is_read_of(line: &Line, claim: &Claim<'_>) -> bool {
    let Call::Kube(call) = &line.call else { return false };
    call.verb == KubeVerb::Get
        && call.resource == "bucketclaims"
        && call.name.as_deref() == Some(claim.name)
        && call.namespace.as_deref() == Some(claim.namespace)
}

/// Returns true if the operator was paused at this call.
pub(super) fn is_standstill(line: &Line) -> bool {
    matches!(line.fault, Some(Fault::Process(ProcessFault::Pause { .. } | ProcessFault::Twin)))
}

/// Returns true if no two operators ever ran at once, so that none could interfere with another.
pub(super) fn are_alone(case: &Case<'_>) -> bool {
    case.setting.elects || (case.setting.operators < 2 && is_one_after_the_other(&case.history.trace))
}

/// Returns true if each life of the operator made its calls after those of the previous life.
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
