//! Definition of a small world: its claims, and the events and faults that may happen in it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::Instant;

use parking_lot::Mutex;
use stowage_operator::api::{AccessMode, BucketClaimStatus};

use super::facts::{
    Adoption, BACKENDS, BUCKETS, BackendFacts, CLAIMS, ClaimFacts, OPERATOR_NAMESPACE, Policy, Spec, UIDS, Uid,
};
use super::state::{Bucket, Cells, Ghost, Left, Operator, Seen, State};
use super::talks::{Planners, Talks};

/// Maximum duration of a call to a store in seconds.
pub(super) const DEADLINE: u32 = 30;
/// Time at which a world begins.
pub(super) const START: u32 = 1_000_000;

/// An event from outside the operator. Each event of a world happens at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A user creates the claim again.
    Create(usize),
    /// A user deletes the claim.
    Delete(usize),
    /// A user edits `deletionPolicy` and `forceDelete`.
    Policy(usize, Policy),
    /// A user requests a rotation.
    Rotate(usize),
    /// A user revokes every key of the claim.
    Revoke(usize),
    /// A user pauses the claim.
    Pause(usize),
    /// A user ends the pause.
    Resume(usize),
    /// A user edits `writeConnectionSecretToRef`.
    Rename(usize),
    /// A user edits `backendRef`.
    Move(usize, u8),
    /// A user edits `sharing`: the mode that accesses of the other namespace may have.
    Share(usize, Option<AccessMode>),
    /// A user requests a rotation of the access.
    RotateAccess,
    /// A user deletes the access.
    DeleteAccess,
    /// A third party removes our finalizer from the access.
    StripAccess,
    /// A user edits `anonymousAccess`.
    Public(usize, bool),
    /// A user deletes the claim's namespace.
    EndNamespace(usize),
    /// An admin creates, edits or deletes a backend.
    Backend(u8, Option<BackendFacts>),
    /// A third party deletes a bucket record of the claim.
    DropRecord(usize),
    /// A third party deletes the claim's newest key.
    DropKey(usize),
    /// A third party deletes the claim's consumer Secret.
    DropConsumer(usize),
    /// A third party empties the Secret of the claim's newest key.
    DamageKey(usize),
    /// A third party removes the labels from the claim's record.
    Unlabel(usize),
    /// A third party removes our finalizer from the claim.
    Strip(usize),
    /// A third party creates a Secret under the name of the claim's consumer Secret.
    Squat(usize),
    /// A tenant or a stranger puts an object into a bucket.
    Put(usize),
    /// A stranger creates a bucket.
    Make(usize),
    /// Another account creates a bucket and grants us access.
    Lure(usize),
    /// A stranger deletes a bucket, even if it has objects.
    Remove(usize),
    /// A stranger replaces a bucket's tags.
    Retag(usize),
}

/// A kind of object whose cache lags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Lag {
    Claims,
    Accesses,
    Internal,
    Consumers,
    Backends,
}

impl Lag {
    pub(super) const ALL: [Self; 5] = [Self::Claims, Self::Accesses, Self::Internal, Self::Consumers, Self::Backends];
}

/// Definition of a world. Everything that a recipe does not name is off.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    /// Name of the world.
    pub(super) name: &'static str,
    /// Description of the world.
    pub(super) about: &'static str,
    /// Initial spec of each claim; `None` = no claim.
    pub(super) claims: [Option<Spec>; CLAIMS],
    /// True if there is an access, which names the first claim.
    pub(super) access: bool,
    pub(super) backends: [Option<BackendFacts>; BACKENDS],
    /// True if its claims are bound at first.
    pub(super) bound: bool,
    pub(super) operators: usize,
    /// Kinds of objects whose caches lag.
    pub(super) lag: &'static [Lag],
    pub(super) crashes: u8,
    /// Maximum number of lost answers, of calls that were carried out and of calls that were not.
    pub(super) losses: u8,
    /// True if calls without an answer may be carried out later.
    pub(super) late: bool,
    /// Maximum number of advances of the clock to the next moment at which something is due.
    pub(super) ticks: u8,
    /// True if drift checks fall due.
    pub(super) drift: bool,
    /// Number of objects per slice when a bucket is emptied.
    pub(super) purge_slice: u32,
    pub(super) events: &'static [Event],
    /// Maximum number of events that happen.
    pub(super) most_events: u8,
}

/// Returns a backend with its own store.
pub(super) const fn backend(number: u8, adoption: Adoption) -> BackendFacts {
    BackendFacts { number, store: number, template: 0, adoption, ready: true }
}

impl Recipe {
    /// One claim, one operator, no faults.
    pub(super) const CALM: Self = Self {
        name: "calm",
        about: "one claim, nothing goes wrong",
        claims: [Some(Spec::PLAIN), None],
        access: false,
        backends: [Some(backend(0, Adoption::Owned)), None],
        bound: false,
        operators: 1,
        lag: &[],
        crashes: 0,
        losses: 0,
        late: false,
        ticks: 0,
        drift: false,
        purge_slice: 10_000,
        events: &[],
        most_events: 0,
    };
}

/// Bounds that stop an exploration before it is complete.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// Maximum number of states.
    pub states: Option<usize>,
    /// Deadline.
    pub until: Option<Instant>,
    /// Flag that requests the end.
    pub asked: Option<Arc<AtomicBool>>,
}

/// A world while it is explored.
pub(super) struct ModelWorld {
    pub(super) recipe: Recipe,
    pub(super) talks: Talks,
    pub(super) bounds: Bounds,
    /// Number of states that were checked at rest.
    pub(super) looked_at: AtomicUsize,
    /// Set once a broken promise was found.
    pub(super) found: AtomicBool,
    /// Set once states were skipped because of the bounds.
    pub(super) cut: AtomicBool,
    /// Number of steps that met a documented limit of the contract.
    pub(super) limits: AtomicU64,
    /// Fingerprints of states from which the world is known to come to rest in a correct state.
    pub(super) restful: Mutex<HashSet<u64>>,
}

impl ModelWorld {
    pub(super) fn new(recipe: Recipe, planners: Planners, bounds: Bounds) -> Self {
        Self {
            talks: Talks::new(recipe.purge_slice, planners),
            recipe,
            bounds,
            looked_at: AtomicUsize::new(0),
            found: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            limits: AtomicU64::new(0),
            restful: Mutex::default(),
        }
    }

    pub(super) fn lags(&self, kind: Lag) -> bool {
        self.recipe.lag.contains(&kind)
    }

    /// Returns the initial state.
    pub(super) fn first(&self) -> State {
        let recipe = &self.recipe;
        let mut state = State {
            now: START,
            claims: [None; CLAIMS],
            lives: [0; CLAIMS],
            terminating: [false; CLAIMS],
            access: None,
            secrets: Cells::default(),
            backends: recipe.backends,
            buckets: [Bucket::NONE; BUCKETS],
            operators: Vec::new(),
            late: None,
            left: Left { crashes: 0, losses: 0, ticks: 0, events: 0 },
            happened: 0,
            ghost: Ghost::NONE,
            broken: None,
        };
        for (slot, spec) in recipe.claims.iter().enumerate() {
            if let Some(spec) = spec {
                self.make_claim(&mut state, slot, *spec);
            }
        }
        if recipe.access {
            self.make_access(&mut state);
        }
        state.operators = vec![self.operator(&state); recipe.operators];
        if recipe.bound {
            state = self.at_rest(state);
        }
        for operator in &mut state.operators {
            operator.wrote.clear();
            operator.wrote_claims = [None; CLAIMS];
            operator.wrote_access = None;
        }
        state.left =
            Left { crashes: recipe.crashes, losses: recipe.losses, ticks: recipe.ticks, events: recipe.most_events };
        state
    }

    /// Returns a process that just started and whose caches are up to date.
    fn operator(&self, state: &State) -> Operator {
        let mut operator = Operator {
            began: state.now,
            seen: Seen::default(),
            wrote: Cells::default(),
            wrote_claims: [None; CLAIMS],
            wrote_access: None,
            passes: [None; CLAIMS],
            visit: None,
            memory: [None; UIDS],
            sweep: None,
            access_sweep: None,
            alone: [None; UIDS],
        };
        for kind in Lag::ALL {
            self.show(state, &mut operator, kind);
        }
        operator
    }

    /// Lets the watch of a kind catch up.
    pub(super) fn show(&self, state: &State, operator: &mut Operator, kind: Lag) {
        if !self.lags(kind) {
            return;
        }
        let is_internal = |name: u32| self.is_internal(name);
        match kind {
            Lag::Claims => {
                operator.seen.claims = state.claims;
                operator.wrote_claims = [None; CLAIMS];
            }
            Lag::Accesses => {
                operator.seen.access = state.access;
                operator.wrote_access = None;
            }
            Lag::Internal => {
                operator.seen.internal = state.secrets.clone();
                operator.seen.internal.retain(is_internal);
                operator.wrote.retain(|name| !is_internal(name));
            }
            Lag::Consumers => {
                operator.seen.consumers = state.secrets.clone();
                operator.seen.consumers.retain(|name| !is_internal(name));
                operator.wrote.retain(is_internal);
            }
            Lag::Backends => operator.seen.backends = state.backends,
        }
    }

    pub(super) fn is_internal(&self, name: u32) -> bool {
        self.talks.objects.named(name).0 == OPERATOR_NAMESPACE
    }

    /// Creates a claim with a new UID under this name.
    pub(super) fn make_claim(&self, state: &mut State, slot: usize, spec: Spec) {
        let uid = Uid::of(slot, state.lives[slot]);
        state.lives[slot] += 1;
        let status = BucketClaimStatus { observed_generation: Some(-1), ..BucketClaimStatus::default() };
        let facts = ClaimFacts {
            uid,
            spec,
            deleting: false,
            finalizer: false,
            paused: false,
            rotate: 0,
            revoke: 0,
            generation: 1,
            status: self.talks.objects.status(&status),
            version: 1,
        };
        state.claims[slot] = Some(self.talks.objects.claim(&facts));
    }
}
