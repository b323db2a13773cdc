//! The world as a stateright model: the actions that are possible in a state, and their effects.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering;
use std::time::Instant;

use stateright::{Model, Property};

use super::access::access_ref;
use super::facts::{CLAIMS, LIVES, Uid};
use super::objects::Kind;
use super::phrases::{Call, Ending, Reply, Stride};
use super::promise::Promise;
use super::state::State;
use super::turn::Fate;
use super::world::{DEADLINE, Lag, ModelWorld};

/// One transition of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Action {
    /// An operator begins a pass over a claim. If `look` is set, a drift check is due.
    Begin { operator: usize, slot: usize, look: bool },
    /// A pass takes its next step.
    Step { operator: usize, slot: usize, fate: Fate },
    /// An operator begins a pass over the access.
    BeginVisit { operator: usize },
    /// A pass over the access takes its next step.
    Visit { operator: usize, fate: Fate },
    /// An operator begins a sweep of what the access left.
    SweepAccess { operator: usize },
    /// The sweep of the access's Secrets takes its next step.
    StrideAccess { operator: usize, fate: Fate },
    /// An operator begins a sweep.
    Sweep { operator: usize, uid: Uid },
    /// A sweep takes its next step.
    Stride { operator: usize, fate: Fate },
    /// A watch catches up.
    CatchUp { operator: usize, kind: Lag },
    /// An operator's process crashes and is replaced by a new one.
    Crash { operator: usize },
    /// The event with this number in the world's list.
    Event(usize),
    /// A call that timed out is carried out.
    Land,
    /// The clock advances to the next moment at which something is due.
    Tick,
    /// The garbage collector deletes a Secret.
    Collect(u32),
}

/// Largest advance of the clock in seconds. A rotation by interval is weeks away and is not waited
/// for.
pub(super) const FAR: u32 = 86_400;

impl ModelWorld {
    pub(super) fn fingerprint(state: &State) -> u64 {
        let mut hasher = DefaultHasher::new();
        state.hash(&mut hasher);
        hasher.finish()
    }

    /// Returns true once the exploration has reached its bounds.
    fn is_enough(&self) -> bool {
        if self.cut.load(Ordering::Relaxed) || self.found.load(Ordering::Relaxed) {
            return true;
        }
        let looked_at = self.looked_at.load(Ordering::Relaxed);
        let late = || self.bounds.until.is_some_and(|until| Instant::now() >= until);
        let asked = || self.bounds.asked.as_ref().is_some_and(|asked| asked.load(Ordering::Relaxed));
        let enough = self.bounds.states.is_some_and(|most| looked_at >= most)
            || (looked_at.is_multiple_of(64) && (late() || asked()));
        if enough {
            self.cut.store(true, Ordering::Relaxed);
        }
        enough
    }

    fn steps(&self, state: &State, operator: usize, slot: usize, actions: &mut Vec<Action>) {
        let step = |fate| Action::Step { operator, slot, fate };
        let Some(plan) = self.plan(state, operator, slot) else {
            let begins = |look: bool| self.would_act(state, operator, slot, look);
            let looks: &[bool] = if self.recipe.drift { &[false, true] } else { &[false] };
            let begin = |look: &bool| Action::Begin { operator, slot, look: *look };
            actions.extend(looks.iter().filter(|look| begins(**look)).map(begin));
            return;
        };
        let call = &self.talks.planned(plan).call;
        actions.extend(fates(state, call).iter().map(|fate| step(*fate)));
        if state.left.losses > 0 && call.is_act() && self.recipe.late && state.late.is_none() {
            actions.push(step(Fate::Late));
        }
    }

    /// Adds the actions that an operator can take about the access.
    fn visits(&self, state: &State, operator: usize, actions: &mut Vec<Action>) {
        let process = &state.operators[operator];
        let (access, visit) = (&self.talks.access, |fate| Action::Visit { operator, fate });
        match process.visit.map(|visit| &access.planned(self.visit_plan(state, visit)).call) {
            Some(call) => actions.extend(fates(state, call).iter().map(|fate| visit(*fate))),
            None if self.visit_would_act(state, operator) => actions.push(Action::BeginVisit { operator }),
            None => {}
        }
        let stride = |fate| Action::StrideAccess { operator, fate };
        match process.access_sweep.map(|sweep| access.sweeps.stride_of(sweep)) {
            Some(next) => actions.extend(sweep_fates(state, next).map(stride)),
            None if self.access_suspect(state, operator).is_some() => actions.push(Action::SweepAccess { operator }),
            None => {}
        }
    }

    /// Returns true if a pass that begins now does more than read its caches.
    fn would_act(&self, state: &State, operator: usize, slot: usize, look: bool) -> bool {
        let Some((pass, _)) = self.begin(state, operator, slot, look) else { return false };
        let mut view = pass.view;
        for _ in 0..4 {
            let plan = self.talks.plan(view, state.now);
            let uid = self.talks.uid(view);
            let reply = match self.talks.planned(plan).call {
                Call::Backend(number) => Reply::Backend(self.cached_backend(state, operator, number)),
                Call::Holder(place) => self.holder(state, operator, uid, place),
                Call::Rest(_) => return false,
                _ => return true,
            };
            view = self.talks.learn(plan, reply);
        }
        true
    }

    fn sweeps(&self, state: &State, operator: usize, actions: &mut Vec<Action>) {
        if let Some((_, sweep)) = state.operators[operator].sweep {
            let fates = sweep_fates(state, self.talks.sweeps.stride_of(sweep));
            actions.extend(fates.map(|fate| Action::Stride { operator, fate }));
            return;
        }
        let suspects = Uid::all().filter(|uid| state.lives[uid.slot()] > uid.0 % LIVES as u8);
        let waits = |uid: &Uid| {
            state.operators[operator].alone[uid.0 as usize].is_some_and(|since| state.now < since + DEADLINE)
        };
        let suspects = suspects.filter(|uid| !waits(uid) && self.suspect(state, operator, *uid).is_some());
        actions.extend(suspects.map(|uid| Action::Sweep { operator, uid }));
    }

    /// Returns the next moment at which something is due: the expiry of a key, a waiting rotation,
    /// the deadline of a call that may still be carried out.
    pub(super) fn next_due(&self, state: &State) -> Option<u32> {
        let mut due: Vec<u32> = Vec::new();
        let claims = || state.claims.iter().flatten().map(|number| self.talks.objects.claim_facts(*number));
        let rotates = claims().any(|claim| claim.rotate.max(claim.revoke) > 0 || claim.spec.interval.is_some());
        for secret in state.secrets.all().map(|number| self.talks.objects.secret_of(number)) {
            let rotates = match secret.kind {
                Kind::Credential => Some(rotates),
                // An entry that opens again or points elsewhere also takes another key.
                Kind::AccessKey => Some(true),
                _ => None,
            };
            if let Some(rotates) = rotates {
                due.extend(secret.expires);
                due.extend(secret.expires.map(|at| at.saturating_add(60)));
                due.extend(rotates.then_some(secret.made + 60));
            }
        }
        for interval in claims().filter_map(|claim| claim.spec.interval) {
            let made = state.secrets.all().map(|number| self.talks.objects.secret_of(number).made).max();
            due.extend(made.map(|made| made + interval * FAR));
        }
        for operator in &state.operators {
            due.extend(operator.memory.iter().flatten().map(|memory| memory.until));
            due.extend(operator.alone.iter().flatten().map(|since| since + DEADLINE));
        }
        due.extend(state.late.map(|late| late.until));
        due.into_iter().filter(|at| *at > state.now).min()
    }

    /// Applies an action to a state.
    pub(super) fn apply(&self, state: &mut State, action: Action) {
        match action {
            Action::Begin { operator, slot, look } => self.start(state, operator, slot, look),
            Action::Step { operator, slot, fate } => {
                state.left.losses -= u8::from(fate != Fate::Answered);
                self.step(state, operator, slot, fate);
            }
            Action::BeginVisit { operator } => self.start_visit(state, operator),
            Action::Visit { operator, fate } => {
                state.left.losses -= u8::from(fate != Fate::Answered);
                self.visit_step(state, operator, fate);
            }
            Action::SweepAccess { operator } => {
                state.operators[operator].access_sweep = self.access_suspect(state, operator);
            }
            Action::StrideAccess { operator, fate } => {
                state.left.losses -= u8::from(fate != Fate::Answered);
                self.access_stride(state, operator, fate);
            }
            Action::Sweep { operator, uid } => self.start_sweep(state, operator, uid),
            Action::Stride { operator, fate } => {
                state.left.losses -= u8::from(fate != Fate::Answered);
                self.stride(state, operator, fate);
            }
            Action::CatchUp { operator, kind } => {
                let mut process = state.operators[operator].clone();
                self.show(state, &mut process, kind);
                state.operators[operator] = process;
            }
            Action::Crash { operator } => {
                state.left.crashes -= 1;
                self.crash(state, operator);
            }
            Action::Event(number) => {
                state.happened |= 1 << number;
                state.left.events -= 1;
                self.happen(state, self.recipe.events[number]);
            }
            Action::Land => self.land(state),
            Action::Tick => {
                state.left.ticks -= 1;
                self.tick(state);
            }
            Action::Collect(secret) => {
                self.delete_secret(state, None, secret);
            }
        }
        self.inspect(state);
    }

    fn crash(&self, state: &mut State, operator: usize) {
        let process = &mut state.operators[operator];
        process.began = state.now;
        process.wrote.clear();
        process.wrote_claims = Default::default();
        process.wrote_access = None;
        process.passes = Default::default();
        (process.visit, process.access_sweep) = (None, None);
        process.memory = Default::default();
        process.sweep = None;
        process.alone = Default::default();
    }

    /// Carries out a call that timed out.
    pub(super) fn land(&self, state: &mut State) {
        if let Some(late) = state.late.take() {
            self.object_to_late(state, late);
            self.carry_out(state, None, late.plan, late.uid);
        }
    }

    /// Advances the clock to the next moment at which something is due.
    pub(super) fn tick(&self, state: &mut State) {
        if let Some(due) = self.next_due(state) {
            self.go_on_to(state, due);
        }
    }

    /// Advances the clock to a moment and drops calls whose deadline has passed.
    pub(super) fn go_on_to(&self, state: &mut State, moment: u32) {
        state.now = state.now.max(moment);
        state.late = state.late.filter(|late| late.until > state.now);
        for operator in &mut state.operators {
            // Expired deadlines are reset, so that states that differ in nothing else are equal.
            for memory in operator.memory.iter_mut().flatten() {
                if memory.until <= state.now {
                    memory.until = 0;
                }
            }
        }
    }

    fn list(&self, state: &State, actions: &mut Vec<Action>) {
        for (operator, process) in state.operators.iter().enumerate() {
            for slot in 0..CLAIMS {
                self.steps(state, operator, slot, actions);
            }
            self.sweeps(state, operator, actions);
            self.visits(state, operator, actions);
            actions.extend(self.behind(state, operator).map(|kind| Action::CatchUp { operator, kind }));
            let visits = process.visit.is_some() || process.access_sweep.is_some();
            let something = visits || process.passes.iter().any(Option::is_some) || process.sweep.is_some();
            let remembers = process.memory.iter().any(Option::is_some);
            if state.left.crashes > 0 && (something || remembers) {
                actions.push(Action::Crash { operator });
            }
        }
        if state.left.events > 0 {
            let open = |number: &usize| state.happened & (1 << number) == 0;
            let events = self.recipe.events.iter().enumerate().map(|(number, _)| number).filter(open);
            let can = events.filter(|number| self.can_happen(state, self.recipe.events[*number]));
            actions.extend(can.map(Action::Event));
        }
        actions.extend(state.late.map(|_| Action::Land));
        if state.left.ticks > 0 && self.next_due(state).is_some() {
            actions.push(Action::Tick);
        }
        actions.extend(self.garbage(state).map(Action::Collect));
    }

    /// Returns the kinds of objects whose latest changes the operator has not seen yet.
    pub(super) fn behind<'a>(&'a self, state: &'a State, operator: usize) -> impl Iterator<Item = Lag> + 'a {
        let process = &state.operators[operator];
        let wrote = move |internal: bool| process.wrote.iter().any(|(name, _)| self.is_internal(name) == internal);
        let stored =
            move |internal: bool| state.secrets.iter().filter(move |(name, _)| self.is_internal(*name) == internal);
        self.recipe.lag.iter().copied().filter(move |kind| match kind {
            Lag::Claims => process.seen.claims != state.claims || process.wrote_claims.iter().any(Option::is_some),
            Lag::Accesses => process.seen.access != state.access || process.wrote_access.is_some(),
            Lag::Internal => wrote(true) || !process.seen.internal.iter().eq(stored(true)),
            Lag::Consumers => wrote(false) || !process.seen.consumers.iter().eq(stored(false)),
            Lag::Backends => process.seen.backends != state.backends,
        })
    }

    /// Describes an action that is about to happen.
    pub(super) fn describe(&self, state: &State, action: Action) -> String {
        let who = |operator: usize| {
            if self.recipe.operators > 1 { format!("operator {}", operator + 1) } else { "operator".to_owned() }
        };
        let claim = |slot: usize| super::names::claim_ref(slot).to_string();
        match action {
            Action::Begin { operator, slot, look } => {
                let look = if look { ", a drift check is due" } else { "" };
                format!("{}: begins a pass over {}{look}", who(operator), claim(slot))
            }
            Action::Step { operator, slot, fate } => {
                let step = self.plan(state, operator, slot).map(|plan| self.talks.planned(plan).step.to_string());
                format!("{}: {}: {}{fate}", who(operator), claim(slot), step.unwrap_or_default())
            }
            Action::BeginVisit { operator } => format!("{}: begins a pass over access {}", who(operator), access_ref()),
            Action::Visit { operator, fate } => {
                let visit = state.operators[operator].visit;
                let step = visit.map(|visit| self.visit_text(state, visit));
                format!("{}: access {}: {}{fate}", who(operator), access_ref(), step.unwrap_or_default())
            }
            Action::SweepAccess { operator } => format!("{}: begins a sweep of the access", who(operator)),
            Action::StrideAccess { operator, fate } => {
                let text = state.operators[operator].access_sweep.map(|sweep| self.talks.access.sweeps.text(sweep));
                format!("{}: {}{fate}", who(operator), text.unwrap_or_default())
            }
            Action::Sweep { operator, uid } => format!("{}: begins a sweep of {}", who(operator), uid.text()),
            Action::Stride { operator, fate } => {
                let text = state.operators[operator].sweep.map(|(_, sweep)| self.talks.sweeps.text(sweep));
                format!("{}: {}{fate}", who(operator), text.unwrap_or_default())
            }
            Action::CatchUp { operator, kind } => format!("{}: its watch of {kind:?} catches up", who(operator)),
            Action::Crash { operator } => format!("{}: crashes and starts anew", who(operator)),
            Action::Event(number) => format!("somebody: {:?}", self.recipe.events[number]),
            Action::Land => {
                let step = state.late.map(|late| self.talks.planned(late.plan).step.to_string());
                format!("a call that nobody waits for happens: {}", step.unwrap_or_default())
            }
            Action::Tick => {
                let moment = self.next_due(state).unwrap_or(state.now) - super::world::START;
                format!("the clock goes on to {moment} s")
            }
            Action::Collect(secret) => {
                let (_, name) = self.talks.objects.named(self.talks.objects.secret_of(secret).name);
                format!("the garbage collector takes Secret {name}")
            }
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answered => "",
            Self::Lost => " -> no answer, not carried out",
            Self::Unheard => " -> carried out, its answer is lost",
            Self::Late => " -> no answer yet",
        })
    }
}

impl Model for ModelWorld {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.first()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_none() {
            self.list(state, actions);
        }
    }

    fn within_boundary(&self, _: &State) -> bool {
        !self.is_enough()
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        self.apply(&mut next, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("safety", |world: &Self, state: &State| world.is_safe(state)),
            Property::always("rest", |world: &Self, state| world.is_restful(state)),
        ]
    }
}

impl ModelWorld {
    /// Returns true if no promise is broken, or if one was already found. Only the first one is
    /// reported, because it has the shortest path.
    fn is_safe(&self, state: &State) -> bool {
        state.broken.is_none() || self.found.swap(true, Ordering::Relaxed)
    }

    /// Returns true if the world comes to rest in a correct state from here, once no more faults
    /// happen.
    fn is_restful(&self, state: &State) -> bool {
        self.looked_at.fetch_add(1, Ordering::Relaxed);
        // No state follows a broken promise. Once the bounds are reached, remaining states are not
        // checked.
        let over = self.found.load(Ordering::Relaxed) || self.cut.load(Ordering::Relaxed);
        over || self.come_to_rest(state).1.is_none() || self.found.swap(true, Ordering::Relaxed)
    }
}

/// Returns the possible outcomes of a call of a pass, except that it is carried out late.
fn fates(state: &State, call: &Call) -> &'static [Fate] {
    match call {
        _ if state.left.losses == 0 || call.is_cached() || matches!(call, Call::Rest(_)) => &[Fate::Answered],
        _ if call.is_act() => &[Fate::Answered, Fate::Lost, Fate::Unheard],
        _ => &[Fate::Answered, Fate::Lost],
    }
}

/// Returns the possible outcomes of a step of a sweep.
fn sweep_fates(state: &State, next: Stride) -> impl Iterator<Item = Fate> + use<> {
    let is_call = state.left.losses > 0 && !matches!(next, Stride::Over | Stride::Held | Stride::Retry);
    let lost = is_call.then_some(Fate::Lost);
    let unheard = (is_call && matches!(next, Stride::Delete(_))).then_some(Fate::Unheard);
    [Some(Fate::Answered), lost, unheard].into_iter().flatten()
}

/// Returns the first broken promise of a state, to report it by its name.
pub(super) fn first_broken(world: &ModelWorld, state: &State) -> Option<(Promise, String)> {
    match state.broken {
        Some(promise) => Some((promise, String::new())),
        None => world.come_to_rest(state).1,
    }
}

/// Returns the seconds until a claim is looked at again; `None` if that is not scheduled or is more
/// than a day away.
pub(super) fn soon(ending: Ending) -> Option<u32> {
    match ending {
        Ending::After(seconds) if seconds < FAR => Some(seconds),
        _ => None,
    }
}
