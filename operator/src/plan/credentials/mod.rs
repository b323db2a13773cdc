//! The keys of whatever holds some, a claim or an access: how a generation is bumped, how a key is
//! made, how it is retired, and how it is revoked (spec §3.3, §8).
//!
//! A rotation reads top to bottom in `rotate` and `retire`, an emergency in `revoke`. What a claim
//! and an access have of their own is behind [`KeyHolder`].

mod holder;
mod record;
mod retire;
mod revoke;
mod rotate;

pub(super) use holder::{Handled, KeyHolder, Requests};
pub(super) use record::{bump_generation, delete_secret, is_rotation_requested, record_patch, repair, rewrite};
pub(super) use retire::{RetireDecision, plus, stamp};
pub(super) use revoke::{end_revoked, is_over, is_revocation_requested, lowest_left, pause};
pub(super) use rotate::{Due, Missing, due, made, missing_key, overtake, rotation_due};
