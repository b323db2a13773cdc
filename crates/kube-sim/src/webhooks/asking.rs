//! Who asks for a write, and how: what admission is told besides the objects.

use std::sync::Arc;

use http::request::Parts;
use serde_json::{Value, json};

use super::Hearing;
use crate::policies::User;
use crate::route::Query;

/// A request as those who judge it are told of it.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    pub(crate) user: User,
    /// Whether it is to change nothing.
    pub(crate) dry_run: bool,
    /// Its options, without their type.
    pub(crate) options: Value,
    /// The version that the path names, where it isn't the stored one.
    pub(crate) version: Option<String>,
    /// What webhooks said; `None` where nobody can be asked.
    pub(crate) hearing: Option<Arc<Hearing>>,
}

/// The version that a client asked for, of a request that is put to the stored one.
#[derive(Clone, Debug)]
pub(crate) struct RequestedVersion(pub(crate) String);

impl Asking {
    /// What admission is told of a request with these options; `None` for what isn't judged, as
    /// what didn't come through a front.
    pub(crate) fn of(head: &Parts, dry_run: bool, options: impl FnOnce() -> Value) -> Option<Self> {
        let user = head.extensions.get::<User>()?.clone();
        let hearing = head.extensions.get::<Arc<Hearing>>().cloned();
        let version = head.extensions.get::<RequestedVersion>().map(|version| version.0.clone());
        let options = if hearing.is_some() { options() } else { Value::Null };
        Some(Self { user, dry_run, options, version, hearing })
    }

    /// The value that this had when the request was first tried; it is made then.
    pub(crate) fn kept(asking: Option<&Self>, what: &'static str, make: impl FnOnce() -> String) -> String {
        match asking.and_then(|asking| asking.hearing.as_ref()) {
            Some(hearing) => hearing.kept(what, make),
            None => make(),
        }
    }
}

/// The options of a write that stand in its query, as objects have them.
pub(crate) fn write_options(query: &Query) -> Value {
    let mut options = json!({});
    if let Some(dry_run) = query.get("dryRun") {
        options["dryRun"] = json!([dry_run]);
    }
    for name in ["fieldManager", "fieldValidation"] {
        if let Some(value) = query.get(name) {
            options[name] = value.into();
        }
    }
    options
}

/// The options of a deletion: its body, or what stands in its query.
pub(crate) fn delete_options(body: &[u8], query: &Query) -> Value {
    if let Ok(options @ Value::Object(_)) = serde_json::from_slice(body) {
        return options;
    }
    let mut options = json!({});
    if let Some(dry_run) = query.get("dryRun") {
        options["dryRun"] = json!([dry_run]);
    }
    if let Some(policy) = query.get("propagationPolicy") {
        options["propagationPolicy"] = policy.into();
    }
    options
}
