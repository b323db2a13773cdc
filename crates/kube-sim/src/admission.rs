//! Who has a say in a write: mutating webhooks before it is settled, then policies, then validating
//! webhooks. All of them are passed over where nobody asks who is judged.

use serde_json::Value;

use super::decode;
use super::delete::Deletion;
use super::kind::Kind;
use super::managed;
use super::meta;
use super::policies::{self, Admission, Operation};
use super::status::Failure;
use super::store::State;
use super::webhooks::{self, Asking};
use super::write::{Ownership, Part, WriteOptions};

/// A new object as mutating webhooks want it. They see it without what the server is to add, but
/// for who owns what: what they add is nobody's.
///
/// # Errors
/// As of [`webhooks::mutate`].
pub(crate) fn mutate_new(
    state: &State,
    kind: &Kind,
    mut object: Value,
    ownership: Ownership,
    options: &WriteOptions,
) -> Result<(Value, Ownership), Failure> {
    if !webhooks::may_mutate(state, kind, options.asking.as_ref()) {
        return Ok((object, ownership));
    }
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        meta::set(&mut object, field, Value::Null);
    }
    if ownership == Ownership::Creator {
        let now = options.now(state);
        managed::record_update(kind, &decode::empty(), &mut object, &options.manager, "", &now);
    }
    Ok((mutate(state, kind, (object, None), Part::Main, options)?, Ownership::Applied))
}

/// What is proposed, as mutating webhooks want it.
///
/// # Errors
/// As of [`webhooks::mutate`].
pub(crate) fn mutate(
    state: &State,
    kind: &Kind,
    (object, old): (Value, Option<&Value>),
    part: Part,
    options: &WriteOptions,
) -> Result<Value, Failure> {
    let Some(asking) = &options.asking else { return Ok(object) };
    webhooks::mutate(state, &of_write(kind, (None, old), part, asking), asking, object)
}

/// Judges a write by policies and webhooks. Gives the warnings of policies.
///
/// # Errors
/// As of [`policies::admit`] and [`webhooks::validate`].
pub(crate) fn judge(
    state: &State,
    kind: &Kind,
    objects: (Option<&Value>, Option<&Value>),
    part: Part,
    options: &WriteOptions,
) -> Result<Vec<String>, Failure> {
    let Some(asking) = &options.asking else { return Ok(Vec::new()) };
    let asked = of_write(kind, objects, part, asking);
    let warnings = policies::admit(state, &asked)?;
    webhooks::validate(state, &asked, asking)?;
    Ok(warnings)
}

/// Judges a deletion.
///
/// # Errors
/// As of [`judge`], and of [`webhooks::before_deletion`].
pub(crate) fn judge_deletion(state: &State, kind: &Kind, existing: &Value, deletion: &Deletion) -> Result<(), Failure> {
    let Some(asking) = &deletion.asking else { return Ok(()) };
    let Asking { user, dry_run, .. } = asking;
    let (operation, dry_run) = (Operation::Delete, *dry_run);
    let (is_named, object, old) = (!deletion.of_collection, None, Some(existing));
    let asked = Admission { kind, subresource: "", operation, is_named, object, old, user, dry_run };
    webhooks::before_deletion(state, &asked, asking)?;
    policies::admit(state, &asked)?;
    webhooks::validate(state, &asked, asking)
}

fn of_write<'a>(
    kind: &'a Kind,
    (object, old): (Option<&'a Value>, Option<&'a Value>),
    part: Part,
    asking: &'a Asking,
) -> Admission<'a> {
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let Asking { user, dry_run, .. } = asking;
    let (subresource, dry_run) = (part.subresource(), *dry_run);
    Admission { kind, subresource, operation, is_named: true, object, old, user, dry_run }
}
