//! Accesses: what their keys open, while whose word is what, how many there are (A1, A2, A3), that
//! the status tells of them (I16), and that nothing of them outlives them (I12).
//!
//! A gateway follows the Secrets, and may be behind them by its lag. So a key that was let list a
//! bucket must have been good for it at some moment since that long ago: by its own Secret, by the
//! record of its access, and by the record of the bucket. What an administrator shares is judged by
//! the last look alone (A5): it stands in no Secret.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use stowage_operator::api::{ACCESS_FINALIZER, wire};
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::history::facts::{expires_at, field, label};
use stowage_world::history::{Event, Stored, Used, What};

use super::Promise;
use super::case::Case;
use super::findings::Findings;
use super::state::{Hand, HistoryStep, are_alone};

/// The longest that a call of the operator is under way.
const A_CALL: SignedDuration = SignedDuration::from_mins(1);

/// A key id and a bucket.
type Pair = (String, String);

/// What is remembered of accesses.
#[derive(Debug)]
pub(super) struct Accesses<'a> {
    /// Whether no two operators ever ran at once.
    alone: bool,
    /// Internal Secrets that matter, by name.
    secrets: BTreeMap<&'a str, &'a Value>,
    /// Since when each of them is there.
    since: BTreeMap<&'a str, Timestamp>,
    open: BTreeSet<Pair>,
    /// Somebody else wrote a Secret of an access, or one in a tenant's namespace.
    is_meddled_with: bool,
    /// UIDs of claims that are on their way out.
    going: BTreeSet<&'a str>,
    /// Since when what was open once is not, and whether its claim was on its way out then.
    closed: BTreeMap<Pair, (Timestamp, bool)>,
}

impl<'a> Accesses<'a> {
    /// Nothing is seen yet.
    pub(super) fn new(case: &Case<'_>) -> Self {
        Self {
            alone: are_alone(case),
            secrets: BTreeMap::new(),
            since: BTreeMap::new(),
            open: BTreeSet::new(),
            is_meddled_with: false,
            going: BTreeSet::new(),
            closed: BTreeMap::new(),
        }
    }

    /// Looks at an event.
    pub(super) fn see(&mut self, case: &Case<'_>, event: &'a Event, step: &HistoryStep<'_>, found: &mut Findings) {
        if let What::Stored(stored) = &event.what
            && stored.plural == "secrets"
            && event_of_others(step)
        {
            self.is_meddled_with |= stored.namespace != OPERATOR_NAMESPACE || is_of_access(&stored.name);
        }
        match &event.what {
            What::Stored(stored) if stored.plural == "secrets" && stored.namespace == OPERATOR_NAMESPACE => {
                self.take_in(stored, event.at);
                self.count(stored, step, found);
                self.look_at_end(stored, step, found);
            }
            What::Stored(stored) if stored.plural == "bucketclaims" => {
                let is_going = |object: &&Value| object["metadata"]["deletionTimestamp"].is_string();
                let going = match (stored.old.as_deref(), stored.new.as_deref()) {
                    (_, Some(new)) => Some(new).filter(is_going),
                    // Somebody may have taken its finalizers off before.
                    (old, None) => old,
                };
                self.going.extend(going.and_then(|claim| claim["metadata"]["uid"].as_str()));
            }
            What::Stored(stored) if stored.plural == "bucketaccesses" => {
                self.look_at_departure(stored, step, found);
                self.look_at_status(stored, step, found);
            }
            What::AccessUsed(used) if used.allowed => self.judge(case, used, step, found),
            _ => {}
        }
    }

    /// Looks at the end of a run that came to rest.
    pub(super) fn judge_end(&self, case: &Case<'_>, found: &mut Findings) {
        let live: BTreeSet<&str> =
            case.end.all("bucketaccesses").filter_map(|(_, _, it)| it["metadata"]["uid"].as_str()).collect();
        for (name, secret) in self.secrets.iter().filter(|(name, _)| is_of_access(name)) {
            // What says of no access that it is its is a stranger's.
            if field(secret, "access_uid").is_some_and(|uid| !live.contains(uid.as_str())) {
                found.broken_in_the_end(Promise::A3, format!("Secret {name} is left of an access that is gone"));
            }
        }
    }

    fn take_in(&mut self, stored: &'a Stored, at: Timestamp) {
        if !["va-", "ar-", "br-"].iter().any(|prefix| stored.name.starts_with(prefix)) {
            return;
        }
        match stored.new.as_deref() {
            Some(new) => {
                self.since.entry(&stored.name).or_insert(at);
                self.secrets.insert(&stored.name, new);
            }
            None => {
                self.since.remove(stored.name.as_str());
                self.secrets.remove(stored.name.as_str());
            }
        }
        let open = self.all_open();
        let ends = |bucket: &str| self.records(bucket).all(|record| field(record, "ending").as_deref() == Some("true"));
        let closed = self.open.difference(&open).map(|pair| (pair.clone(), (at, ends(&pair.1))));
        let closed: Vec<_> = closed.collect();
        self.closed.extend(closed);
        self.open = open;
    }

    /// What keys open now, their own ends aside.
    fn all_open(&self) -> BTreeSet<Pair> {
        let keys = self.secrets.iter().filter(|(name, key)| name.starts_with("va-") && !is_deleted(key));
        let pairs = keys.flat_map(|(_, key)| {
            let id = field(key, "access_key_id").unwrap_or_default();
            let uid = field(key, "access_uid").unwrap_or_default();
            let scopes: Option<Value> = field(key, "scopes").and_then(|text| serde_json::from_str(&text).ok());
            let scopes = scopes.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
            let namespace = self.namespace_of(&uid);
            let opens = move |scope: &Value| namespace.as_ref().is_some_and(|namespace| self.lets_in(scope, namespace));
            let bucket = |scope: &Value| Some((id.clone(), scope["bucket"].as_str()?.to_owned()));
            scopes.iter().filter(|scope| opens(scope)).filter_map(bucket).collect::<Vec<_>>()
        });
        pairs.collect()
    }

    /// UID of the namespace of an access, as its record has it.
    fn namespace_of(&self, uid: &str) -> Option<String> {
        let records = self.secrets.iter().filter(|(name, record)| name.starts_with("ar-") && !is_deleted(record));
        let mut own = records.filter(|(_, record)| field(record, "access_uid").as_deref() == Some(uid));
        own.next().and_then(|(_, record)| field(record, "namespace_uid"))
    }

    fn records(&self, bucket: &str) -> impl Iterator<Item = &&'a Value> {
        let records = self.secrets.iter().filter(|(name, _)| name.starts_with("br-")).map(|(_, record)| record);
        records.filter(move |record| field(record, "bucket_name").as_deref() == Some(bucket))
    }

    /// Whether a bucket may be listed by whoever has this scope, from this namespace.
    fn lets_in(&self, scope: &Value, namespace: &str) -> bool {
        let Some(claim) = scope["claimUid"].as_str() else { return true };
        let reads = |mode: &Value| matches!(mode.as_str(), Some("ReadOnly" | "ReadWrite"));
        let bucket = scope["bucket"].as_str().unwrap_or_default();
        reads(&scope["mode"])
            && self.records(bucket).any(|record| {
                let is = |name: &str, value: &Value| field(record, name).as_deref() == value.as_str();
                let map: Option<Value> = field(record, "accesses").and_then(|text| serde_json::from_str(&text).ok());
                is("claim_uid", &claim.into())
                    && is("endpoint", &scope["endpoint"])
                    && field(record, "ending").is_none()
                    && map.is_some_and(|map| reads(&consent(&map, namespace)["maxMode"]))
            })
    }

    fn judge(&self, case: &Case<'_>, used: &Used, step: &HistoryStep<'_>, found: &mut Findings) {
        let lag = SignedDuration::try_from(case.setting.gateway_lag).unwrap_or(SignedDuration::MAX);
        let since = step.at.checked_sub(lag).unwrap_or(Timestamp::MIN);
        let pair = (used.access_key_id.clone(), used.bucket.clone());
        let (id, bucket) = (&used.access_key_id, &used.bucket);
        let name = format!("va-{}", id.to_lowercase());
        let ended = self.secrets.get(name.as_str()).and_then(|key| expires_at(key)).is_some_and(|end| end <= since);
        if ended {
            found.broken(Promise::A3, step, format!("key {id} of an access opens bucket {bucket} after its end"));
        }
        if self.open.contains(&pair) {
            return;
        }
        match self.closed.get(&pair) {
            Some((at, _)) if *at >= since => {}
            Some((_, true)) => {
                found.broken(Promise::A2, step, format!("key {id} opens bucket {bucket}, whose claim is to go"));
            }
            Some((_, false)) | None => {
                found.broken(Promise::A1, step, format!("key {id} opens bucket {bucket} without consent"));
            }
        }
    }

    /// The first thing that a claim which goes ends are the accesses to its bucket, and before its
    /// own keys. One that is revoked, or at its end, goes whenever that is.
    fn look_at_end(&self, stored: &Stored, step: &HistoryStep<'_>, found: &mut Findings) {
        if stored.new.is_some() || !stored.name.starts_with("vc-") || event_of_others(step) {
            return;
        }
        let Some(key) = stored.old.as_deref() else { return };
        let Some(uid) = field(key, "claim_uid").filter(|uid| self.going.contains(uid.as_str())) else { return };
        if expires_at(key).is_some_and(|end| end <= step.at) {
            return;
        }
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
        let generation = number(label(key, wire::ROTATION_GENERATION));
        let stays = |record: &Value| {
            let is_revoked = generation.is_some() && generation <= number(field(record, "revoked-through").as_deref());
            field(record, "ending").is_none() && !is_revoked
        };
        let records = self.secrets.iter().filter(|(name, _)| name.starts_with("br-"));
        let mut own = records.filter(|(_, record)| field(record, "claim_uid").as_deref() == Some(uid.as_str()));
        if own.any(|(_, record)| stays(record)) {
            let message = format!("a key of claim {uid}, which goes, is deleted before the accesses to its bucket end");
            found.broken(Promise::A2, step, message);
        }
    }

    /// An access is let go of last: after its keys, and after its record. What another call brought
    /// only just before, the operator need not have known of.
    fn look_at_departure(&self, stored: &Stored, step: &HistoryStep<'_>, found: &mut Findings) {
        let is_held = |object: Option<&Value>| {
            let finalizers = object.and_then(|object| object["metadata"]["finalizers"].as_array());
            finalizers.is_some_and(|all| all.iter().any(|one| one == ACCESS_FINALIZER))
        };
        let (old, new) = (stored.old.as_deref(), stored.new.as_deref());
        if !is_held(old) || is_held(new) || event_of_others(step) || !self.alone {
            return;
        }
        let uid = old.and_then(|old| old["metadata"]["uid"].as_str()).unwrap_or_default();
        let own = self.secrets.iter().filter(|(name, _)| is_of_access(name));
        for (name, _) in own.filter(|(_, secret)| field(secret, "access_uid").as_deref() == Some(uid)) {
            let is_new = self.since.get(name).is_none_or(|since| step.at.duration_since(*since) < A_CALL);
            if !is_new {
                found.broken(Promise::I12, step, format!("access {uid} is let go of before Secret {name}"));
            }
        }
    }

    /// An access whose key works is not told to have none (spec `8.key.earlier`).
    fn look_at_status(&self, stored: &Stored, step: &HistoryStep<'_>, found: &mut Findings) {
        let (Some(old), Some(new)) = (stored.old.as_deref(), stored.new.as_deref()) else { return };
        if event_of_others(step) || !self.alone || self.is_meddled_with || is_deleted(new) {
            return;
        }
        let (Some(id), None) = (told_key(old), told_key(new)) else { return };
        let key = self.secrets.get(format!("va-{}", id.to_lowercase()).as_str());
        if key.is_some_and(|key| !is_deleted(key) && expires_at(key).is_none_or(|end| end > step.at)) {
            let message =
                format!("access {}/{} has a key that works, and says that it has none", stored.namespace, stored.name);
            found.broken(Promise::I16, step, message);
        }
    }

    /// How many keys of an access live, when one was made.
    fn count(&self, stored: &Stored, step: &HistoryStep<'_>, found: &mut Findings) {
        if stored.old.is_some() || !stored.name.starts_with("va-") {
            return;
        }
        let Some(uid) = stored.new.as_deref().and_then(|new| field(new, "access_uid")) else { return };
        let keys = self.secrets.iter().filter(|(name, _)| name.starts_with("va-")).map(|(_, key)| key);
        let own = keys.filter(|key| field(key, "access_uid").as_deref() == Some(uid.as_str()) && !is_deleted(key));
        let live = own.filter(|key| expires_at(key).is_none_or(|end| end > step.at)).count();
        let role = stored.new.as_deref().and_then(|new| new["metadata"]["labels"][wire::ROLE].as_str());
        if live > 2 && role.is_some() {
            let message = format!("{live} keys of the access {uid} live at once");
            if !self.alone {
                found.limit(Promise::A3, step, message);
            } else {
                found.broken(Promise::A3, step, message);
            }
        }
    }
}

/// Whether no operator did it.
fn event_of_others(step: &HistoryStep<'_>) -> bool {
    step.hand == Hand::Other
}

/// Id of the key that an access tells of.
fn told_key(access: &Value) -> Option<&str> {
    access["status"]["accessKeyId"].as_str()
}

/// A Secret's name says that it is a key or the record of an access.
fn is_of_access(name: &str) -> bool {
    name.starts_with("va-") || name.starts_with("ar-")
}

fn is_deleted(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The consent of a namespace in the `accesses` of a record: a number stands for that of the
/// namespace at this place.
fn consent<'a>(map: &'a Value, namespace: &str) -> &'a Value {
    let own = &map[namespace];
    let same = own.as_u64().and_then(|place| map.as_object()?.values().nth(usize::try_from(place).ok()?));
    same.unwrap_or(own)
}
