//! What a view knows, in a few bytes: by that it is found again.

use std::collections::BTreeMap;
use std::fmt::Write;

use stowage_operator::plan::{BackendSeen, Stored, VersioningSeen, View};

/// The number of the object that a resourceVersion is.
pub(super) fn version(text: &str) -> u32 {
    text.parse().unwrap_or_else(|_| unreachable!("no resourceVersion of the model: {text}"))
}

/// All that a view knows, in a few bytes: objects stand for themselves by their resourceVersion. Takes the view apart,
/// so that a field that is new can't be forgotten.
pub(super) fn key(view: &View, begun: u32) -> String {
    let View {
        setting: _,
        claim,
        status_before: _, // the status of `begun`
        fresh,
        confirmed,
        late,
        newborn,
        backends,
        own,
        own_lists,
        own_current,
        live,
        absent,
        holder,
        own_target,
        remade,
        bucket_at,
        rivals,
        bucket,
        bucket_empty,
        created,
        tagged,
        versioning,
        look_due,
        checked,
        missing_at,
        unanswered,
        purged,
        purge,
        removed,
        let_go,
        consumers,
        consumer_written,
        taken,
        met,
        doubted,
        deleted,
        revoked,
        revoked_through,
        released,
        outdated,
        failure,
    } = view;
    let number = |secret: &Stored| secret.0.metadata.resource_version.clone().unwrap_or_default();
    let backends: BTreeMap<&String, String> = backends.iter().map(|(name, seen)| (name, backend_key(seen))).collect();
    let own: Vec<String> = own.values().map(number).collect();
    let consumers: Vec<(&String, Option<String>)> =
        consumers.iter().map(|(name, secret)| (name, secret.as_ref().map(number))).collect();
    let rivals: Option<(_, Vec<String>)> =
        rivals.as_ref().map(|(at, rivals)| (at, rivals.iter().map(number).collect()));
    let versioning: &Option<VersioningSeen> = versioning;
    let mut key = String::with_capacity(512);
    let flags =
        [fresh, confirmed, late, newborn, own_current, remade, tagged, look_due, consumer_written, released, outdated];
    for flag in flags {
        key.push(if *flag { '1' } else { '0' });
    }
    // Writing to a text can't fail.
    let _ = write!(key, "{begun} {} {backends:?} {own:?} {own_lists} {live:?} {absent:?}", claim.id.resource_version);
    let _ = write!(key, "{holder:?} {own_target:?} {bucket_at:?} {rivals:?} {bucket:?} {bucket_empty:?} {created:?}");
    let _ = write!(key, "{versioning:?} {checked:?} {missing_at:?} {unanswered:?} {purged} {purge:?} {removed:?}");
    let _ = write!(key, "{let_go:?} {consumers:?} {taken:?} {met:?} {doubted:?} {deleted:?}");
    let _ = write!(key, "{revoked} {revoked_through} {failure:?}");
    key
}

fn backend_key(seen: &BackendSeen) -> String {
    match seen {
        BackendSeen::Present { backend, allowed } => format!("{} {allowed}", backend.id.resource_version),
        BackendSeen::Missing => "missing".to_owned(),
        BackendSeen::Invalid(why) => why.clone(),
    }
}
