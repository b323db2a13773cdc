//! The accesses of the scenario, with their requested buckets and expected states.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use serde_json::json;
use stowage_operator::api::AccessMode::{self, ReadOnly, ReadWrite, WriteOnly};
use stowage_operator::api::BucketAccess;
use stowage_testbed::environment::setup::Setup;
use stowage_testbed::objects::{from_json, text};
use stowage_testbed::request::Asker;
use stowage_testbed::store::Key;

use super::buckets::Buckets;
use super::tries::{Caller, Grant};

/// The claim with a shared bucket, one that isn't shared, and one in another namespace.
pub(super) const PHOTOS: &str = "photos";
pub(super) const FILMS: &str = "films";
pub(super) const NOTES: &str = "notes";

/// Namespace of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The claims' own namespace.
    Own,
    /// One that the owner shares with at first, and later doesn't.
    Shared,
    /// One that the owner shares with until the claim is deleted.
    Guests,
    /// One that no owner shares with.
    Elsewhere,
}

/// An entry of an access: claim, mode, prefix, and expected state: `Open`, or the reason why not.
pub(super) struct Entry(
    pub(super) &'static str,
    pub(super) AccessMode,
    pub(super) Option<&'static str>,
    pub(super) &'static str,
);

/// An access: its name, its namespace, and its entries.
pub(super) struct Wanted(pub(super) &'static str, pub(super) Place, pub(super) &'static [Entry]);

/// State of an entry that the key opens, and reason of an access with only such entries.
pub(super) const OPEN: &str = "Open";

#[rustfmt::skip]
pub(super) static ACCESSES: [Wanted; 8] = [
    Wanted("reader",   Place::Shared,    &[Entry(PHOTOS, ReadOnly,  Some("shared/"), OPEN)]),
    Wanted("writer",   Place::Shared,    &[Entry(PHOTOS, WriteOnly, Some("shared/"), OPEN)]),
    Wanted("editor",   Place::Shared,    &[Entry(PHOTOS, ReadWrite, Some("shared/"), OPEN)]),
    Wanted("deeper",   Place::Shared,    &[Entry(PHOTOS, ReadWrite, Some("shared/deep/"), OPEN)]),
    // Once it has a key, it is edited to request the whole bucket.
    Wanted("greedy",   Place::Shared,    &[Entry(PHOTOS, ReadWrite, Some("shared/"), OPEN)]),
    Wanted("guest",    Place::Guests,    &[Entry(PHOTOS, ReadWrite, Some("shared/"), OPEN)]),
    // It has a key for a bucket in its own namespace.
    Wanted("stranger", Place::Elsewhere, &[Entry(NOTES, ReadWrite, None, OPEN),
                                           Entry(PHOTOS, ReadOnly, Some("shared/"), "NotShared")]),
    Wanted("pair",     Place::Own,       &[Entry(PHOTOS, ReadOnly, None, OPEN), Entry(FILMS, ReadWrite, None, OPEN)]),
];

impl Wanted {
    /// Returns the expected reason of the condition `Ready`.
    pub(super) fn reason(&self) -> &'static str {
        self.2.iter().map(|entry| entry.3).find(|told| *told != OPEN).unwrap_or(OPEN)
    }
}

/// Returns the namespace of a place.
pub(super) fn namespace(setup: &Setup<'_>, from: Place) -> String {
    match from {
        Place::Own => setup.tenant.clone(),
        Place::Shared => format!("{}-b", setup.backend),
        Place::Guests => format!("{}-c", setup.backend),
        Place::Elsewhere => format!("{}-d", setup.backend),
    }
}

/// Returns the API of a place's accesses, with the tenant's rights.
pub(super) fn accesses(setup: &Setup<'_>, from: Place) -> Api<BucketAccess> {
    Api::namespaced(setup.environment.tenant.clone(), &namespace(setup, from))
}

fn secret_name(access: &str) -> String {
    format!("{access}-key")
}

/// Creates an access.
pub(super) async fn make(setup: &Setup<'_>, Wanted(name, from, entries): &Wanted) -> Result<()> {
    let entry = |Entry(claim, mode, prefix, _): &Entry| {
        let place = if *claim == NOTES { Place::Elsewhere } else { Place::Own };
        let claim = json!({"name": claim, "namespace": namespace(setup, place)});
        match prefix {
            Some(prefix) => json!({"claimRef": claim, "mode": mode, "prefix": prefix}),
            None => json!({"claimRef": claim, "mode": mode}),
        }
    };
    let access = from_json(json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "BucketAccess", "metadata": {"name": name},
        "spec": {
            "buckets": entries.iter().map(entry).collect::<Vec<_>>(),
            "writeConnectionSecretToRef": {"name": secret_name(name)},
        },
    }));
    let made = accesses(setup, *from).create(&PostParams::default(), &access).await;
    made.with_context(|| format!("can't make access {name}")).map(|_| ())
}

/// Waits until `Ready` of an access has this reason, for its current generation.
pub(super) async fn shows(setup: &Setup<'_>, from: Place, name: &str, reason: &'static str) -> Result<BucketAccess> {
    let tells = |access: Option<&BucketAccess>| access.is_some_and(|access| reason_of(access) == Some(reason));
    let found = setup.environment.wait(&accesses(setup, from), name, reason, tells).await?;
    found.with_context(|| format!("access {name} is gone"))
}

/// Returns the reason of the condition `Ready` if the condition is about the access's current
/// generation.
fn reason_of(access: &BucketAccess) -> Option<&str> {
    let conditions = &access.status.as_ref()?.conditions;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    (ready.observed_generation == access.metadata.generation).then_some(ready.reason.as_str())
}

/// Waits until an access has its expected state, and reads its Secret.
pub(super) async fn caller(setup: &Setup<'_>, buckets: &Buckets, wanted: &Wanted) -> Result<Caller> {
    let Wanted(name, from, entries) = wanted;
    let access = shows(setup, *from, name, wanted.reason()).await?;
    let status = access.status.unwrap_or_default();
    ensure!(status.rotation_generation == Some(1), "access {name} took more than its first key");
    let shown = status.buckets.get().unwrap_or_default();
    let told = shown.iter().map(|entry| entry.reason.as_deref().unwrap_or(&entry.state));
    ensure!(told.eq(entries.iter().map(|entry| entry.3)), "access {name} tells {shown:?}");
    let secrets = setup.secrets(&namespace(setup, *from));
    let secret = secrets.get(&secret_name(name)).await.with_context(|| format!("no Secret of access {name}"))?;
    let key = Key { id: text(&secret, "AWS_ACCESS_KEY_ID"), secret: text(&secret, "AWS_SECRET_ACCESS_KEY") };
    ensure!(status.access_key_id.as_ref() == Some(&key.id), "the status of {name} shows another key than its Secret");
    check_buckets(buckets, wanted, &secret)?;
    let asker = Asker::new(&text(&secret, "AWS_ENDPOINT_URL"), &text(&secret, "AWS_REGION"), key)?;
    let grant = |Entry(claim, mode, prefix, _): &Entry| {
        (bucket_of(buckets, claim), Grant { mode: *mode, prefix: prefix.unwrap_or_default() })
    };
    let grants = entries.iter().filter(|entry| entry.3 == OPEN).map(grant).collect();
    Ok(Caller { name: wanted.0, asker, grants })
}

fn bucket_of(buckets: &Buckets, claim: &str) -> String {
    let bucket = match claim {
        PHOTOS => &buckets.photos,
        FILMS => &buckets.films,
        _ => &buckets.notes,
    };
    bucket.clone()
}

/// Checks the bucket names in a Secret: `BUCKET_NAME` for one bucket, `BUCKET_NAMES` in the order
/// of the entries for several.
fn check_buckets(buckets: &Buckets, Wanted(name, _, entries): &Wanted, secret: &Secret) -> Result<()> {
    let open = entries.iter().filter(|entry| entry.3 == OPEN);
    let names: Vec<String> = open.map(|entry| bucket_of(buckets, entry.0)).collect();
    let (one, several) = match names.as_slice() {
        [one] => (one.clone(), String::new()),
        several => (String::new(), several.join(",")),
    };
    let found = (text(secret, "BUCKET_NAME"), text(secret, "BUCKET_NAMES"));
    ensure!(found == (one, several), "the Secret of {name} names the buckets {found:?}");
    Ok(())
}
