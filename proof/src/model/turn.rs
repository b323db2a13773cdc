//! The simplified API server and store: how the abstract world answers questions and carries out
//! effects.

use stowage_operator::plan::{Checked, OwnerSeen};

use super::access::NAMED;
use super::facts::{ClaimFacts, Uid};
use super::objects::{Kind, SecretFacts};
use super::phrases::{Call, ConsentRead, Ending, Place, Reply, Stride, SweepReply};
use super::state::{Bucket, Cell, Late, Pinned, State};
use super::world::{DEADLINE, ModelWorld};

/// Outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Carried out and answered.
    Answered,
    /// Failed, and not carried out.
    Lost,
    /// Carried out, but its answer is lost.
    Unheard,
    /// Timed out, and may be carried out later.
    Late,
}

impl ModelWorld {
    /// Returns the next step of a pass.
    pub(super) fn plan(&self, state: &State, operator: usize, slot: usize) -> Option<u32> {
        state.operators[operator].passes[slot].map(|pass| self.talks.plan(pass.view, state.now))
    }

    /// Carries out the next step of a pass.
    pub(super) fn step(&self, state: &mut State, operator: usize, slot: usize, fate: Fate) {
        let Some(mut pass) = state.operators[operator].passes[slot] else { return };
        let plan = self.talks.plan(pass.view, state.now);
        let call = &self.talks.planned(plan).call;
        if let Call::Rest(_) = call {
            return self.end(state, operator, slot);
        }
        let uid = self.talks.uid(pass.view);
        if let (Call::Consent(record, _), None, Fate::Answered) = (call, pass.pinned, fate) {
            // The question about consent takes two steps: the record first, and then everything
            // else.
            pass.pinned = Some(Pinned(state.secrets.live(*record)));
            state.operators[operator].passes[slot] = Some(pass);
            return;
        }
        let failure = match call {
            Call::Purge(..) => Reply::PurgeFailed,
            _ if call.place().is_some() => Reply::Upstream,
            _ => Reply::Kubernetes,
        };
        if call.is_act() {
            self.object(state, plan, pass);
        }
        let reply = match fate {
            _ if self.is_unreachable(state, operator, call) => Reply::NoUpstream,
            Fate::Answered if call.is_act() => self.carry_out(state, Some(operator), plan, uid),
            Fate::Answered => match (call, pass.pinned.take()) {
                (Call::Consent(_, backend), Some(pinned)) => self.consent(state, pinned, *backend, uid),
                _ => self.find_out(state, operator, call, uid),
            },
            Fate::Lost => failure,
            Fate::Unheard => {
                self.carry_out(state, None, plan, uid);
                failure
            }
            Fate::Late => {
                state.late = Some(Late { plan, uid, until: state.now + DEADLINE });
                failure
            }
        };
        if let (Call::Bucket(place), Reply::Present(_) | Reply::Absent) = (call, &reply) {
            pass.born = state.buckets[place.bucket].born;
        }
        let changes_buckets = matches!(call, Call::CreateBucket(_) | Call::DeleteBucket(_));
        if reply == Reply::PurgeFailed || (reply == Reply::Upstream && changes_buckets) {
            let memory = &mut state.operators[operator].memory[uid.0 as usize];
            memory.get_or_insert_default().until = state.now + DEADLINE;
        }
        pass.view = self.talks.learn(plan, reply);
        (pass.edited, pass.pinned) = (false, None);
        state.operators[operator].passes[slot] = Some(pass);
    }

    /// Ends a pass and updates what the operator remembers of the claim.
    pub(super) fn end(&self, state: &mut State, operator: usize, slot: usize) {
        if let Some(pass) = state.operators[operator].passes[slot].take() {
            let memory = &mut state.operators[operator].memory[self.talks.uid(pass.view).0 as usize];
            let memory = memory.get_or_insert_default();
            memory.missing = self.talks.missing(pass.view);
            memory.look = match self.talks.view(pass.view).checked() {
                Checked::No => memory.look,
                Checked::Failed => true,
                Checked::Seen => false,
            };
        }
    }

    /// Returns when the claim is looked at again, if the next step ends the pass.
    pub(super) fn ending(&self, state: &State, operator: usize, slot: usize) -> Option<Ending> {
        match self.talks.planned(self.plan(state, operator, slot)?).call {
            Call::Rest(ending) => Some(ending),
            _ => None,
        }
    }

    /// Begins a pass.
    pub(super) fn start(&self, state: &mut State, operator: usize, slot: usize, look: bool) {
        if let Some((pass, memory)) = self.begin(state, operator, slot, look) {
            let uid = self.talks.uid(pass.view);
            state.operators[operator].memory[uid.0 as usize] = Some(memory);
            state.operators[operator].passes[slot] = Some(pass);
        }
    }

    fn is_unreachable(&self, state: &State, operator: usize, call: &Call) -> bool {
        let there = |place: Place| self.cached_backend(state, operator, place.backend).map(|backend| backend.store);
        call.place().is_some_and(|place| there(place) != Some(place.store))
    }

    fn find_out(&self, state: &mut State, operator: usize, call: &Call, uid: Uid) -> Reply {
        let secrets = |is: &dyn Fn(&SecretFacts) -> bool| {
            let all = state.secrets.all().map(|number| self.talks.objects.secret_of(number));
            let internal = all.filter(|secret| secret.kind != Kind::Consumer && is(secret));
            Reply::Secrets(internal.map(|secret| secret.number).collect())
        };
        match call {
            Call::Backend(number) => Reply::Backend(self.cached_backend(state, operator, *number)),
            Call::Holder(place) => self.holder(state, operator, uid, *place),
            Call::PublicRival => Reply::Held(None),
            Call::Claim => Reply::Claim(state.claims[uid.slot()]),
            Call::Own => Reply::Secrets(self.own(state, uid)),
            Call::CredentialsFor(place) => {
                secrets(&|secret| secret.kind == Kind::Credential && self.is_key_to(state, operator, secret, *place))
            }
            Call::Internal(_) | Call::Consumer(_) => self.read_secret(state, operator, call),
            Call::Bucket(place) => match state.buckets[place.bucket] {
                Bucket { present: true, tags, .. } => Reply::Present(tags),
                _ => Reply::Absent,
            },
            Call::Owner(place) => match state.buckets[place.bucket] {
                Bucket { present: true, theirs: true, .. } => Reply::Owner(OwnerSeen::Other),
                Bucket { present: true, .. } => Reply::Owner(OwnerSeen::Ours),
                _ => Reply::Upstream,
            },
            Call::Contents(place) => match state.buckets[place.bucket] {
                Bucket { present: true, objects, .. } => Reply::Empty(objects == 0),
                _ => Reply::Upstream,
            },
            _ => Reply::Unsupported,
        }
    }

    /// Reads a Secret by its name.
    pub(super) fn read_secret(&self, state: &mut State, operator: usize, call: &Call) -> Reply {
        let (Call::Internal(name) | Call::Consumer(name)) = call else { return Reply::Unsupported };
        let live = state.secrets.live(*name);
        if live.is_none() {
            self.note(state, operator, *name, Cell::Gone(0));
        }
        Reply::Secret(live)
    }

    /// Answers the question about consent with everything that is read after the record.
    fn consent(&self, state: &State, pinned: Pinned, backend: u8, uid: Uid) -> Reply {
        Reply::Consent(ConsentRead {
            record: pinned.0,
            own: self.own(state, uid),
            asks: uid.slot() == NAMED && self.asks(state.access),
            backend: state.backends[backend as usize],
            claim: state.claims[uid.slot()],
        })
    }

    /// Carries out an effect. `operator` is the process that receives the answer; a late call has
    /// none.
    pub(super) fn carry_out(&self, state: &mut State, operator: Option<usize>, plan: u32, uid: Uid) -> Reply {
        match &self.talks.planned(plan).call {
            Call::Finalizer(claim, present) => self.write_claim(state, operator, *claim, |facts| {
                facts.finalizer = *present;
            }),
            Call::Status(claim, status) => self.write_claim(state, operator, *claim, |facts| {
                facts.status = *status;
            }),
            Call::Create(name) => {
                let now = state.now;
                self.create_secret(state, operator, *name, |version| self.talks.create(plan, version, now))
            }
            Call::Patch(secret) => self.patch_secret(state, operator, *secret, |secret| self.talks.patch(plan, secret)),
            Call::Delete(secret) => self.delete_secret(state, operator, *secret),
            Call::CreateBucket(place) => {
                let bucket = &mut state.buckets[place.bucket];
                let made = !bucket.present;
                if made {
                    *bucket = Bucket { present: true, maker: Some(uid), born: bucket.born + 1, ..Bucket::NONE };
                }
                Reply::Created(made)
            }
            Call::Tag(place, tags) => {
                let bucket = &mut state.buckets[place.bucket];
                if !bucket.present {
                    return Reply::Upstream;
                }
                bucket.tags = *tags;
                Reply::Done
            }
            Call::Purge(place, most) => {
                let objects = &mut state.buckets[place.bucket].objects;
                let gone = (*objects).min(u8::try_from(*most).unwrap_or(u8::MAX));
                *objects -= gone;
                Reply::Purged(gone, *objects == 0)
            }
            Call::DeleteBucket(place) => {
                let bucket = &mut state.buckets[place.bucket];
                match bucket {
                    Bucket { present: false, .. } => Reply::Gone,
                    Bucket { objects: 1.., .. } => Reply::NotEmpty,
                    _ => {
                        *bucket = Bucket { born: bucket.born, ..Bucket::NONE };
                        Reply::Deleted
                    }
                }
            }
            _ => Reply::Unsupported,
        }
    }

    /// Writes to a claim if it still has this version.
    fn write_claim(
        &self,
        state: &mut State,
        operator: Option<usize>,
        version: u32,
        edit: impl FnOnce(&mut ClaimFacts),
    ) -> Reply {
        let slot = self.talks.objects.claim_facts(version).uid.slot();
        if state.claims[slot] != Some(version) {
            return Reply::Conflict;
        }
        let number = self.edit_claim(state, slot, edit);
        if let Some(operator) = operator.filter(|_| self.lags(super::world::Lag::Claims)) {
            state.operators[operator].wrote_claims[slot] = number;
        }
        Reply::Claim(number)
    }

    /// Edits a claim. A claim that is being deleted disappears when it loses its finalizer.
    pub(super) fn edit_claim(&self, state: &mut State, slot: usize, edit: impl FnOnce(&mut ClaimFacts)) -> Option<u32> {
        let mut facts = self.talks.objects.claim_facts(state.claims[slot]?).clone();
        edit(&mut facts);
        facts.version += 1;
        let number = self.talks.objects.claim(&facts);
        state.claims[slot] = (!facts.deleting || facts.finalizer).then_some(number);
        Some(number)
    }

    /// Creates a Secret. `make` gets the version number of the name.
    pub(super) fn create_secret(
        &self,
        state: &mut State,
        operator: Option<usize>,
        name: u32,
        make: impl FnOnce(u16) -> u32,
    ) -> Reply {
        let version = match state.secrets.get(name) {
            Some(Cell::Live(_)) => return Reply::Exists,
            Some(Cell::Gone(version)) => version + 1,
            None => 1,
        };
        let secret = make(version);
        let facts = self.talks.objects.secret_of(secret);
        let slot = facts.claim.map(Uid::slot).filter(|_| facts.kind == Kind::Consumer);
        if slot.is_some_and(|slot| state.terminating[slot]) {
            return Reply::Terminating;
        }
        self.store(state, operator, secret);
        Reply::Secret(Some(secret))
    }

    /// Applies `patch` to a Secret if it still has this version.
    pub(super) fn patch_secret(
        &self,
        state: &mut State,
        operator: Option<usize>,
        secret: u32,
        patch: impl FnOnce(u32) -> Option<u32>,
    ) -> Reply {
        let name = self.talks.objects.secret_of(secret).name;
        if state.secrets.live(name) != Some(secret) {
            return Reply::Conflict;
        }
        let Some(after) = patch(secret) else { return Reply::Conflict };
        self.store(state, operator, after);
        Reply::Secret(Some(after))
    }

    fn store(&self, state: &mut State, operator: Option<usize>, secret: u32) {
        let name = self.talks.objects.secret_of(secret).name;
        self.remember(state, secret);
        state.secrets.put(name, Cell::Live(secret));
        if let Some(operator) = operator {
            self.note(state, operator, name, Cell::Live(secret));
        }
    }

    /// Deletes a Secret if it still has this version. A Secret that is already gone counts as
    /// deleted.
    pub(super) fn delete_secret(&self, state: &mut State, operator: Option<usize>, secret: u32) -> Reply {
        let facts = self.talks.objects.secret_of(secret);
        match state.secrets.live(facts.name) {
            Some(live) if live != secret => return Reply::Conflict,
            Some(_) => state.secrets.put(facts.name, Cell::Gone(facts.version)),
            None => {}
        }
        if let Some(operator) = operator {
            self.note(state, operator, facts.name, Cell::Gone(facts.version));
        }
        Reply::Done
    }

    /// Carries out the next step of a sweep.
    pub(super) fn stride(&self, state: &mut State, operator: usize, fate: Fate) {
        let Some((uid, sweep)) = state.operators[operator].sweep else { return };
        let stride = self.talks.sweeps.stride_of(sweep);
        let reply = match (stride, fate) {
            (Stride::Over | Stride::Retry, _) => {
                state.operators[operator].sweep = None;
                state.operators[operator].alone[uid.0 as usize] = None;
                return;
            }
            (Stride::Held, _) => {
                let process = &mut state.operators[operator];
                process.sweep = None;
                let under_way = process.passes.iter().flatten().any(|pass| self.talks.uid(pass.view) == uid);
                let alone = &mut process.alone[uid.0 as usize];
                *alone = if under_way { None } else { alone.or(Some(state.now)) };
                return;
            }
            (Stride::Delete(secret), Fate::Unheard) => {
                self.object_to_sweep(state, uid, secret);
                self.delete_secret(state, None, secret);
                SweepReply::Failed
            }
            (_, Fate::Lost | Fate::Unheard | Fate::Late) => SweepReply::Failed,
            (Stride::Claim(slot), Fate::Answered) => {
                SweepReply::Claim(state.claims[slot].map(|claim| self.talks.objects.claim_facts(claim).uid))
            }
            (Stride::All, Fate::Answered) => SweepReply::All(self.is_alive(state, uid)),
            (Stride::Own, Fate::Answered) => match self.find_out(state, operator, &Call::Own, uid) {
                Reply::Secrets(secrets) => SweepReply::Secrets(secrets),
                _ => SweepReply::Failed,
            },
            (Stride::End(record), Fate::Answered) => {
                let name = self.talks.objects.secret_of(record).name;
                let after = Some(record).filter(|it| state.secrets.live(name) == Some(*it));
                match after.and_then(|record| self.talks.sweeps.patch(&self.talks.objects, sweep, record)) {
                    Some(after) => {
                        self.store(state, Some(operator), after);
                        SweepReply::Secret(Some(after))
                    }
                    None => SweepReply::Failed,
                }
            }
            (Stride::Internal(name), Fate::Answered) => SweepReply::Secret(state.secrets.live(name)),
            (Stride::Delete(secret), Fate::Answered) => {
                self.object_to_sweep(state, uid, secret);
                match self.delete_secret(state, Some(operator), secret) {
                    Reply::Done => SweepReply::Deleted,
                    _ => SweepReply::Failed,
                }
            }
        };
        state.operators[operator].sweep = Some((uid, self.talks.sweeps.learn(&self.talks.objects, sweep, reply)));
    }

    /// Begins a sweep if the caches show Secrets of a claim but not the claim.
    pub(super) fn start_sweep(&self, state: &mut State, operator: usize, uid: Uid) {
        if let Some(sweep) = self.suspect(state, operator, uid) {
            state.operators[operator].sweep = Some((uid, sweep));
        }
    }

    /// Returns the sweep that can begin.
    pub(super) fn suspect(&self, state: &State, operator: usize, uid: Uid) -> Option<u32> {
        let claim = self.cached_claim(state, operator, uid.slot());
        if claim.is_some_and(|claim| self.talks.objects.claim_facts(claim).uid == uid) {
            return None;
        }
        let of_claim = |secret: &&SecretFacts| secret.kind != Kind::Consumer && secret.swept == Some(uid);
        let seen: Vec<u32> = self.all_cached(state, operator).filter(of_claim).map(|secret| secret.number).collect();
        if seen.is_empty() {
            return None;
        }
        let landed = state.operators[operator].alone[uid.0 as usize].is_some_and(|since| state.now >= since + DEADLINE);
        Some(self.talks.sweeps.begin(&self.talks.objects, uid.claim_uid(), &seen, !landed))
    }

    /// Returns true if a claim with this UID exists.
    pub(super) fn is_alive(&self, state: &State, uid: Uid) -> bool {
        state.claims[uid.slot()].is_some_and(|claim| self.talks.objects.claim_facts(claim).uid == uid)
    }
}
