//! What opens the bucket of a claim that holds it: credential → consumer Secret → anonymous
//! binding → rotation (spec §3.3).

use k8s_openapi::jiff::Timestamp;

use crate::api::{BucketRecord, CredentialFacts, Desired};

use super::halt::{Halt, Outcome};
use super::secret::Stored;
use super::stop::together;
use super::view::View;
use super::{consumer, key, place, public, renamed, rotation, setback};

/// Makes sure that the credential aimed at is there, published, unless the consumer Secret holds a
/// later one (`setback`), and public access as the spec has it; then sees to rotation.
pub(super) fn walk(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
    now: Timestamp,
) -> Result<Outcome, Halt> {
    let facts = CredentialFacts::of(desired, record);
    let credential = key::ensure_credential(view, &facts, record, stored)?;
    setback::refuse(view, desired, record, stored)?;
    consumer::ensure_secret(view, desired, record, &credential)?;
    renamed::remove(view)?;
    public::ensure_binding(view, desired, record, stored)?;
    let keys = rotation::walk(view, desired, record, stored, now)?;
    let place = place::contradiction(view, record)?;
    let public = public::outranked(view, desired, record)?;
    Ok(Outcome { impaired: together([place, keys.impaired, public]), ..keys })
}
