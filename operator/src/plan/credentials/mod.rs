//! Life cycle of the keys of a claim or an access: how the generation is bumped, and how a key is
//! created, published, retired and revoked (spec §3.3, §8).
//!
//! A rotation reads top to bottom in `rotate` and `retire`, an emergency revocation in `revoke`.
//! The differences between claims and accesses are behind [`KeyHolder`].

mod holder;
mod publish;
mod record;
mod retire;
mod revoke;
mod rotate;

pub(super) use holder::{Handled, KeyHolder, KeyStep, KeyStop};
pub(super) use publish::{Publisher, publish, unpublish};
pub(super) use record::{delete_secret, record_patch, repair, rewrite};
pub(super) use retire::{plus, retire_lower, stamp};
pub(super) use revoke::{end_revoked, is_over, is_revocation_requested, pause, revoke};
pub(super) use rotate::{Due, bump_generation, due, ensure_key, is_rotation_requested, made, overtake, rotation_due};
