//! List of worlds. Each is small enough to be explored completely, or reports the bound that it was
//! cut at.

use super::access_worlds::ACCESS_WORLDS;
use super::facts::{Adoption, BackendFacts, Policy, Spec};
use super::world::{Event, Lag, Recipe, backend};

const PLAIN: Spec = Spec::PLAIN;
const FORCE: Spec = Spec { deletion: Policy::Force, ..PLAIN };
const DELETE: Spec = Spec { deletion: Policy::Delete, ..PLAIN };
const OWNED: BackendFacts = backend(0, Adoption::Owned);
const SECOND: BackendFacts = backend(1, Adoption::Owned);
const BOUND: Recipe = Recipe { bound: true, ..Recipe::CALM };
const ALL: &[Lag] = &[Lag::Claims, Lag::Internal, Lag::Consumers];

/// Returns every world, in the order of exploration.
pub(super) fn worlds() -> impl Iterator<Item = &'static Recipe> {
    WORLDS.iter().chain(ACCESS_WORLDS)
}

/// Worlds without an access.
pub(super) const WORLDS: &[Recipe] = &[
    Recipe {
        name: "one-claim-crashes",
        about: "a claim is made and deleted with its bucket; crashes and lost answers",
        claims: [Some(FORCE), None],
        crashes: 2,
        losses: 2,
        ticks: 2,
        events: &[Event::Delete(0), Event::Put(0)],
        most_events: 2,
        ..Recipe::CALM
    },
    Recipe {
        name: "one-claim-late",
        about: "the same, with calls that come late",
        claims: [Some(FORCE), None],
        crashes: 1,
        losses: 2,
        late: true,
        ticks: 2,
        events: &[Event::Delete(0), Event::Put(0)],
        most_events: 2,
        ..Recipe::CALM
    },
    Recipe {
        name: "two-claims-one-bucket",
        about: "a-b/c and a/b-c come to one bucket; either may be deleted",
        claims: [Some(DELETE), Some(PLAIN)],
        crashes: 1,
        losses: 1,
        events: &[Event::Delete(0), Event::Delete(1)],
        most_events: 2,
        ..Recipe::CALM
    },
    Recipe {
        name: "two-claims-stale",
        about: "the same with caches that lag",
        claims: [Some(DELETE), Some(PLAIN)],
        lag: &[Lag::Internal],
        crashes: 1,
        events: &[Event::Delete(0)],
        most_events: 1,
        ..Recipe::CALM
    },
    Recipe {
        name: "rotation-stale-cache",
        about: "a rotation, asked for twice, on caches that lag each for itself",
        lag: ALL,
        crashes: 1,
        losses: 1,
        ticks: 3,
        events: &[Event::Rotate(0), Event::Rotate(0)],
        most_events: 2,
        ..BOUND
    },
    Recipe {
        name: "rotation-late",
        about: "a rotation whose calls may come late",
        crashes: 1,
        losses: 2,
        late: true,
        ticks: 4,
        events: &[Event::Rotate(0), Event::Rotate(0), Event::Delete(0)],
        most_events: 3,
        ..BOUND
    },
    Recipe {
        name: "rotation-by-time",
        about: "a rotation that comes by itself, with no overlap",
        claims: [Some(Spec { interval: Some(7), overlap: 0, ..PLAIN }), None],
        lag: &[Lag::Internal, Lag::Consumers],
        crashes: 1,
        losses: 1,
        ticks: 5,
        events: &[Event::Rotate(0)],
        most_events: 1,
        ..BOUND
    },
    Recipe {
        name: "revocation",
        about: "every key is revoked, twice, on caches that lag each for itself",
        lag: ALL,
        crashes: 1,
        losses: 1,
        ticks: 2,
        events: &[Event::Revoke(0), Event::Revoke(0)],
        most_events: 2,
        ..BOUND
    },
    Recipe {
        name: "revocation-in-rotation",
        about: "two keys are revoked in the middle of a rotation; the claim is paused, or goes",
        claims: [Some(DELETE), None],
        lag: &[Lag::Internal],
        crashes: 1,
        losses: 1,
        ticks: 1,
        events: &[Event::Rotate(0), Event::Revoke(0), Event::Pause(0), Event::Resume(0), Event::Delete(0)],
        most_events: 4,
        ..BOUND
    },
    Recipe {
        name: "revocation-late",
        about: "a revocation whose calls may come late",
        crashes: 1,
        losses: 2,
        late: true,
        ticks: 2,
        events: &[Event::Revoke(0), Event::Rotate(0), Event::Delete(0)],
        most_events: 2,
        ..BOUND
    },
    Recipe {
        name: "revocation-moved",
        about: "every key is revoked while the claim is sent to another backend",
        backends: [Some(OWNED), Some(SECOND)],
        crashes: 1,
        losses: 1,
        ticks: 1,
        events: &[Event::Move(0, 1), Event::Revoke(0), Event::Revoke(0)],
        most_events: 3,
        ..BOUND
    },
    Recipe {
        name: "revocation-two-operators",
        about: "two operators revoke every key, one of them on old caches",
        operators: 2,
        lag: &[Lag::Internal, Lag::Consumers],
        ticks: 1,
        events: &[Event::Revoke(0)],
        most_events: 1,
        ..BOUND
    },
    Recipe {
        name: "revocation-tampered",
        about: "every key is revoked, and somebody deletes record, key or consumer Secret",
        crashes: 1,
        events: &[Event::Revoke(0), Event::DropRecord(0), Event::DropKey(0), Event::DropConsumer(0)],
        most_events: 2,
        ..BOUND
    },
    Recipe {
        name: "recreate-delete",
        about: "a claim is deleted and made again under its name, and its caches lag",
        claims: [Some(DELETE), None],
        lag: ALL,
        crashes: 1,
        losses: 1,
        ticks: 1,
        events: &[Event::Delete(0), Event::Create(0)],
        most_events: 2,
        ..BOUND
    },
    Recipe {
        name: "deletion-by-name",
        about: "a claim that was rotated and made public goes with its bucket, and its caches lag",
        claims: [Some(DELETE), None],
        lag: &[Lag::Internal, Lag::Consumers],
        crashes: 1,
        losses: 1,
        events: &[Event::Rotate(0), Event::Public(0, true), Event::Delete(0)],
        most_events: 3,
        ..BOUND
    },
    Recipe {
        name: "move-deleted",
        about: "a claim that was made public and sent on goes, and its caches lag",
        backends: [Some(OWNED), Some(SECOND)],
        lag: &[Lag::Internal, Lag::Consumers],
        crashes: 1,
        losses: 1,
        events: &[Event::Public(0, true), Event::Move(0, 1), Event::Delete(0)],
        most_events: 3,
        ..BOUND
    },
    Recipe {
        name: "stripped-finalizer",
        about: "somebody takes the finalizer off; the claim is made again while the orphans are swept",
        claims: [Some(DELETE), None],
        lag: &[Lag::Claims, Lag::Internal],
        crashes: 1,
        losses: 1,
        events: &[Event::Strip(0), Event::Delete(0), Event::Create(0)],
        most_events: 3,
        ..BOUND
    },
    Recipe {
        name: "two-operators",
        about: "two operators make a claim and delete it with its bucket",
        claims: [Some(FORCE), None],
        operators: 2,
        losses: 1,
        events: &[Event::Delete(0)],
        most_events: 1,
        ..Recipe::CALM
    },
    Recipe {
        name: "two-operators-rotate",
        about: "two operators rotate a key, one of them on old caches",
        operators: 2,
        lag: &[Lag::Internal, Lag::Consumers],
        ticks: 2,
        events: &[Event::Rotate(0)],
        most_events: 1,
        ..BOUND
    },
    Recipe {
        name: "stranger",
        about: "a stranger makes, deletes and tags buckets of the claim's name while it is made and deleted",
        claims: [Some(FORCE), None],
        backends: [Some(backend(0, Adoption::Any)), None],
        crashes: 1,
        losses: 1,
        events: &[Event::Make(0), Event::Remove(0), Event::Retag(0), Event::Put(0), Event::Delete(0)],
        most_events: 3,
        ..Recipe::CALM
    },
    Recipe {
        name: "another-account",
        about: "another account makes a bucket of the claim's name and lets us in, while it is made and deleted",
        claims: [Some(FORCE), None],
        backends: [Some(backend(0, Adoption::Any)), None],
        crashes: 1,
        losses: 1,
        events: &[Event::Lure(0), Event::Remove(0), Event::Put(0), Event::Delete(0)],
        most_events: 3,
        ..Recipe::CALM
    },
    Recipe {
        name: "adoption",
        about: "what is retained comes back to the claim's next life, and is never destroyed",
        claims: [Some(PLAIN), None],
        crashes: 1,
        losses: 1,
        events: &[Event::Delete(0), Event::Create(0), Event::Policy(0, Policy::Force), Event::Put(0)],
        most_events: 4,
        ..BOUND
    },
    Recipe {
        name: "vanished-bucket",
        about: "a bound claim's bucket vanishes, and comes back as another",
        claims: [Some(DELETE), None],
        crashes: 1,
        losses: 1,
        drift: true,
        events: &[Event::Remove(0), Event::Make(0), Event::Delete(0)],
        most_events: 3,
        ..BOUND
    },
    Recipe {
        name: "policy-edits",
        about: "the deletion policy is edited back and forth while the bucket is emptied in slices",
        claims: [Some(FORCE), None],
        crashes: 1,
        losses: 1,
        purge_slice: 1,
        events: &[
            Event::Put(0),
            Event::Delete(0),
            Event::Policy(0, Policy::Retain),
            Event::Policy(0, Policy::Delete),
            Event::Policy(0, Policy::Force),
        ],
        most_events: 5,
        ..BOUND
    },
    Recipe {
        name: "purge-slices",
        about: "a bucket is emptied in slices on an old cache, with calls that come late",
        claims: [Some(FORCE), None],
        lag: &[Lag::Claims],
        crashes: 1,
        losses: 2,
        late: true,
        ticks: 2,
        purge_slice: 1,
        events: &[Event::Put(0), Event::Delete(0), Event::Policy(0, Policy::Retain)],
        most_events: 3,
        ..BOUND
    },
    Recipe {
        name: "backend-move",
        about: "a bound claim is sent to another backend, and back",
        backends: [Some(OWNED), Some(SECOND)],
        crashes: 1,
        losses: 1,
        ticks: 3,
        events: &[Event::Move(0, 1), Event::Move(0, 0), Event::Delete(0)],
        most_events: 3,
        ..BOUND
    },
    Recipe {
        name: "backend-move-stale",
        about: "a bound claim is sent to another backend and asked to rotate, on caches that lag",
        backends: [Some(OWNED), Some(SECOND)],
        lag: &[Lag::Internal, Lag::Consumers],
        losses: 1,
        ticks: 2,
        events: &[Event::Move(0, 1), Event::Rotate(0)],
        most_events: 2,
        ..BOUND
    },
    Recipe {
        name: "backend-edited",
        about: "a backend's endpoint is edited, the backend is deleted, and comes back",
        claims: [Some(DELETE), None],
        lag: &[Lag::Backends],
        crashes: 1,
        losses: 1,
        drift: true,
        events: &[
            Event::Backend(0, Some(BackendFacts { store: 1, ..OWNED })),
            Event::Backend(0, None),
            Event::Backend(0, Some(OWNED)),
            Event::Delete(0),
        ],
        most_events: 3,
        ..BOUND
    },
    Recipe {
        name: "template-edited",
        about: "the template changes while a claim is made",
        claims: [Some(DELETE), None],
        crashes: 1,
        losses: 1,
        ticks: 1,
        events: &[Event::Backend(0, Some(BackendFacts { template: 1, ..OWNED })), Event::Delete(0)],
        most_events: 2,
        ..Recipe::CALM
    },
    Recipe {
        name: "rename",
        about: "the connection is to go into another Secret while a rotation is under way",
        lag: &[Lag::Consumers],
        crashes: 1,
        losses: 1,
        ticks: 2,
        events: &[Event::Rename(0), Event::Rotate(0), Event::Delete(0)],
        most_events: 3,
        ..BOUND
    },
    Recipe {
        name: "pause",
        about: "a claim is paused while it is rotated, made public and deleted",
        claims: [Some(FORCE), None],
        lag: &[Lag::Claims],
        crashes: 1,
        losses: 1,
        ticks: 1,
        events: &[Event::Pause(0), Event::Resume(0), Event::Rotate(0), Event::Public(0, true), Event::Delete(0)],
        most_events: 4,
        ..BOUND
    },
    Recipe {
        name: "public-access",
        about: "public access is given, taken back and swept",
        lag: &[Lag::Internal, Lag::Claims],
        crashes: 1,
        losses: 1,
        events: &[Event::Public(0, true), Event::Public(0, false), Event::Delete(0), Event::Create(0)],
        most_events: 4,
        ..BOUND
    },
    Recipe {
        name: "namespace-deleted",
        about: "the claim's namespace goes, and with it claim and Secrets in any order",
        claims: [Some(DELETE), None],
        crashes: 1,
        losses: 2,
        events: &[Event::EndNamespace(0), Event::Rotate(0)],
        most_events: 2,
        ..Recipe::CALM
    },
    Recipe {
        name: "tampering",
        about: "somebody deletes, damages and takes labels off Secrets of ours",
        crashes: 1,
        losses: 1,
        ticks: 2,
        events: &[
            Event::DropRecord(0),
            Event::DropKey(0),
            Event::DropConsumer(0),
            Event::Unlabel(0),
            Event::DamageKey(0),
            Event::Rotate(0),
            Event::Delete(0),
        ],
        most_events: 2,
        ..BOUND
    },
    Recipe {
        name: "tampering-stale",
        about: "somebody deletes record and key, and the caches lag",
        lag: &[Lag::Internal],
        losses: 1,
        events: &[Event::DropRecord(0), Event::DropKey(0), Event::Delete(0)],
        most_events: 3,
        ..BOUND
    },
    Recipe {
        name: "all-dropped",
        about: "somebody deletes record, key and consumer Secret, and calls get no answer",
        losses: 1,
        events: &[Event::DropRecord(0), Event::DropKey(0), Event::DropConsumer(0), Event::Delete(0)],
        most_events: 4,
        ..BOUND
    },
    Recipe {
        name: "squatter",
        about: "a Secret of somebody else has the name that the claim's is to have",
        lag: &[Lag::Consumers],
        crashes: 1,
        losses: 1,
        events: &[Event::Squat(0), Event::Rename(0), Event::Delete(0)],
        most_events: 3,
        ..Recipe::CALM
    },
    Recipe {
        name: "record-dropped-rival",
        about: "a bound claim's record is deleted by hand, and another claim wants the bucket",
        claims: [Some(PLAIN), Some(PLAIN)],
        lag: &[Lag::Internal],
        crashes: 1,
        events: &[Event::DropRecord(0), Event::Delete(0), Event::Delete(1)],
        most_events: 2,
        ..BOUND
    },
];
