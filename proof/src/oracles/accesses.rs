//! Accesses: the buckets that their keys open, under whose consent, and how many keys there are
//! (A1, A2, A3); the truth of their status (I16); and that none of their Secrets outlives them
//! (I12).
//!
//! A gateway follows the Secrets, and may be behind them by its lag. So a key that was allowed to
//! list a bucket must have been valid for it at some moment within that lag: by its own Secret, by
//! the record of its access, and by the record of the bucket. Buckets that an administrator shares
//! are judged by the final probe alone (A5), because no Secret records that consent.

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

/// Maximum duration of a call of the operator.
const A_CALL: SignedDuration = SignedDuration::from_mins(1);

/// A key id and a bucket.
type Pair = (String, String);

/// The oracle's memory of accesses.
#[derive(Debug)]
pub(super) struct Accesses<'a> {
    /// True if no two operators ever ran at once.
    alone: bool,
    /// Internal Secrets of keys and records, by name.
    secrets: BTreeMap<&'a str, &'a Value>,
    /// Time since when each of them exists.
    since: BTreeMap<&'a str, Timestamp>,
    open: BTreeSet<Pair>,
    /// True if another actor wrote a Secret of an access, or one in a tenant's namespace.
    is_meddled_with: bool,
    /// UIDs of claims that are being deleted.
    going: BTreeSet<&'a str>,
    /// Pairs that were open once: the time at which each was closed, and whether its claim was
    /// being deleted then.
    closed: BTreeMap<Pair, (Timestamp, bool)>,
}

impl<'a> Accesses<'a> {
    /// Creates an empty memory.
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

    /// Judges an event.
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
                    // Its finalizers may have been removed before.
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

    /// Judges the end of a run that came to rest.
    pub(super) fn judge_end(&self, case: &Case<'_>, found: &mut Findings) {
        let live: BTreeSet<&str> =
            case.end.all("bucketaccesses").filter_map(|(_, _, it)| it["metadata"]["uid"].as_str()).collect();
        for (name, secret) in self.secrets.iter().filter(|(name, _)| is_of_access(name)) {
            // A Secret without an access UID is a stranger's.
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

    /// Returns the pairs that are open now, regardless of the expiry of keys.
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

    /// Returns the UID of an access's namespace, from the record of the access.
    fn namespace_of(&self, uid: &str) -> Option<String> {
        let records = self.secrets.iter().filter(|(name, record)| name.starts_with("ar-") && !is_deleted(record));
        let mut own = records.filter(|(_, record)| field(record, "access_uid").as_deref() == Some(uid));
        own.next().and_then(|(_, record)| field(record, "namespace_uid"))
    }

    fn records(&self, bucket: &str) -> impl Iterator<Item = &&'a Value> {
        let records = self.secrets.iter().filter(|(name, _)| name.starts_with("br-")).map(|(_, record)| record);
        records.filter(move |record| field(record, "bucket_name").as_deref() == Some(bucket))
    }

    /// Returns true if a key with this scope, of an access in this namespace, may list the bucket.
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

    /// Judges the deletion of a claim's key: a claim that is being deleted first ends the accesses
    /// to its bucket, and only then its own keys.
    ///
    /// A key that is revoked or has expired may be deleted at any time.
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

    /// Judges the removal of an access's finalizer: it comes last, after its keys and its record.
    ///
    /// A Secret that another call created only just before is excused, because the operator may not
    /// know it.
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

    /// Judges that the status of an access doesn't deny a key that works (spec `8.key.earlier`).
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

    /// Counts the live keys of an access when one is created.
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

/// Returns true if no operator made the change.
fn event_of_others(step: &HistoryStep<'_>) -> bool {
    step.hand == Hand::Other
}

/// Returns the id of the key in an access's status.
fn told_key(access: &Value) -> Option<&str> {
    access["status"]["accessKeyId"].as_str()
}

/// Returns true if the Secret's name is that of a key or the record of an access.
fn is_of_access(name: &str) -> bool {
    name.starts_with("va-") || name.starts_with("ar-")
}

fn is_deleted(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Returns the consent to a namespace in the `accesses` of a record. A number refers to the consent
/// of the namespace at that index.
fn consent<'a>(map: &'a Value, namespace: &str) -> &'a Value {
    let own = &map[namespace];
    let same = own.as_u64().and_then(|place| map.as_object()?.values().nth(usize::try_from(place).ok()?));
    same.unwrap_or(own)
}
