//! Worlds with an access: one claim, and one access in another namespace that names it.

use stowage_operator::api::AccessMode;

use super::facts::{Adoption, Policy, Spec};
use super::world::{Event, Lag, Recipe, backend};

const FULL: Option<AccessMode> = Some(AccessMode::ReadWrite);
const READ: Option<AccessMode> = Some(AccessMode::ReadOnly);

/// A bound claim whose owner consents, and an access that has its key.
const OPEN: Recipe =
    Recipe { claims: [Some(Spec { shares: FULL, ..Spec::PLAIN }), None], access: true, bound: true, ..Recipe::CALM };
/// Like the claim of [`OPEN`], with a bucket that is deleted with it.
const DELETED: Option<Spec> = Some(Spec { shares: FULL, deletion: Policy::Delete, ..Spec::PLAIN });
const TWO_BACKENDS: Recipe =
    Recipe { backends: [Some(backend(0, Adoption::Owned)), Some(backend(1, Adoption::Owned))], ..OPEN };

/// Every world with an access, in the order of exploration.
pub(super) const ACCESS_WORLDS: &[Recipe] = &[
    Recipe {
        name: "access-made",
        about: "a claim and an access to its bucket are made; consent comes, and goes again",
        claims: [Some(Spec::PLAIN), None],
        bound: false,
        crashes: 1,
        losses: 1,
        events: &[Event::Share(0, FULL), Event::Share(0, None)],
        most_events: 2,
        ..OPEN
    },
    Recipe {
        name: "access-consent",
        about: "consent to an access is narrowed, withdrawn and given again",
        crashes: 1,
        losses: 1,
        ticks: 1,
        events: &[Event::Share(0, READ), Event::Share(0, None), Event::Share(0, FULL)],
        most_events: 3,
        ..OPEN
    },
    Recipe {
        name: "access-stale",
        about: "consent is withdrawn and the access deleted, on caches that lag each for itself",
        lag: &[Lag::Claims, Lag::Accesses, Lag::Internal],
        losses: 1,
        events: &[Event::Share(0, None), Event::DeleteAccess],
        most_events: 2,
        ..OPEN
    },
    Recipe {
        name: "access-rotated",
        about: "an access is asked for a rotation, twice, and deleted, and its caches lag",
        lag: &[Lag::Internal, Lag::Consumers],
        crashes: 1,
        losses: 1,
        ticks: 3,
        events: &[Event::RotateAccess, Event::RotateAccess, Event::DeleteAccess],
        most_events: 3,
        ..OPEN
    },
    Recipe {
        name: "access-restarted",
        about: "the operator starts anew on an old cache in the middle of a rotation of the access",
        lag: &[Lag::Internal],
        crashes: 1,
        ticks: 3,
        events: &[Event::RotateAccess],
        most_events: 1,
        ..OPEN
    },
    Recipe {
        name: "access-deleted",
        about: "an access is deleted while consent to it comes and goes",
        claims: [Some(Spec::PLAIN), None],
        crashes: 1,
        losses: 2,
        events: &[Event::Share(0, FULL), Event::DeleteAccess, Event::Share(0, None)],
        most_events: 3,
        ..OPEN
    },
    Recipe {
        name: "access-claim-retained",
        about: "a claim that keeps its bucket goes while accesses to it are let in, and the caches lag",
        lag: &[Lag::Claims, Lag::Internal],
        crashes: 1,
        losses: 1,
        events: &[Event::Share(0, READ), Event::Delete(0)],
        most_events: 2,
        ..OPEN
    },
    Recipe {
        name: "access-claim-deleted",
        about: "a claim goes with its bucket, and is made again under its name",
        claims: [DELETED, None],
        crashes: 1,
        losses: 1,
        events: &[Event::Delete(0), Event::Create(0), Event::RotateAccess],
        most_events: 3,
        ..OPEN
    },
    Recipe {
        name: "access-moved",
        about: "a claim that is shared moves to another bucket, and consent is withdrawn",
        losses: 1,
        ticks: 4,
        events: &[Event::Move(0, 1), Event::Share(0, None)],
        most_events: 2,
        ..TWO_BACKENDS
    },
    Recipe {
        name: "access-moved-stale",
        about: "the same with caches that lag, and the claim may go",
        lag: &[Lag::Internal, Lag::Accesses],
        ticks: 3,
        events: &[Event::Move(0, 1), Event::Share(0, None), Event::Delete(0)],
        most_events: 2,
        ..TWO_BACKENDS
    },
    Recipe {
        name: "access-two-operators",
        about: "two operators while consent comes and goes, one of them on old caches",
        operators: 2,
        lag: &[Lag::Claims, Lag::Internal, Lag::Accesses],
        events: &[Event::Share(0, None), Event::Share(0, FULL), Event::Delete(0)],
        most_events: 2,
        ..OPEN
    },
    Recipe {
        name: "access-two-operators-rotate",
        about: "two operators while the access is rotated and deleted",
        operators: 2,
        lag: &[Lag::Internal, Lag::Accesses],
        ticks: 2,
        events: &[Event::RotateAccess, Event::DeleteAccess],
        most_events: 2,
        ..OPEN
    },
    Recipe {
        name: "access-stripped",
        about: "somebody takes the finalizer off the access, and what it leaves is swept",
        lag: &[Lag::Internal, Lag::Accesses],
        crashes: 1,
        losses: 1,
        events: &[Event::StripAccess, Event::DeleteAccess, Event::Share(0, None)],
        most_events: 3,
        ..OPEN
    },
    Recipe {
        name: "access-all",
        about: "consent, rotation, both deletions and a move, and two operators on old caches",
        claims: [DELETED, None],
        operators: 2,
        lag: &[Lag::Claims, Lag::Accesses, Lag::Internal, Lag::Consumers],
        crashes: 1,
        losses: 1,
        ticks: 3,
        events: &[
            Event::Share(0, None),
            Event::Share(0, READ),
            Event::Share(0, FULL),
            Event::RotateAccess,
            Event::DeleteAccess,
            Event::Move(0, 1),
            Event::Rotate(0),
            Event::Delete(0),
        ],
        most_events: 4,
        ..TWO_BACKENDS
    },
];
