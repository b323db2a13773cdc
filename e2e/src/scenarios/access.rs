//! Accesses to buckets of others: each opens what its owner consents to, at the gateway, through
//! every door of S3, and nothing beyond; and no longer than that.

mod buckets;
mod doors;
mod tries;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use stowage_operator::api::{AccessMode, BucketAccess, BucketClaim};
use tokio::time::sleep;

use self::buckets::{Buckets, Ids, content};
use self::doors::{DOORS, Door, Need, TRICKS};
use self::tries::{Caller, Grant, Tries, Try, outcome};
use crate::objects::{from_json, text};
use crate::request::{Ask, Asker, Signed};
use crate::simulated::REGION;
use crate::stage::Stage;
use crate::store::Key;
use crate::testbed::Testbed;

/// The claim whose bucket is shared, and one whose bucket is not.
const PHOTOS: &str = "photos";
const FILMS: &str = "films";
/// Requests at once.
const AT_ONCE: usize = 8;
/// Between two looks at what the gateway has heard of.
const LOOK: Duration = Duration::from_millis(20);

/// Where an access is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The claims' own namespace.
    Own,
    /// The one that the owner shares with.
    Shared,
    /// One that nobody shares with.
    Elsewhere,
}

/// An entry of an access: claim, mode, prefix.
struct Entry(&'static str, AccessMode, Option<&'static str>);

/// An access, and what is to become of it: where from, its entries, and the reason of `Ready`.
struct Wanted(&'static str, Place, &'static [Entry], &'static str);

use AccessMode::{ReadOnly, ReadWrite, WriteOnly};

#[rustfmt::skip]
static ACCESSES: [Wanted; 7] = [
    Wanted("reader",   Place::Shared,    &[Entry(PHOTOS, ReadOnly,  Some("shared/"))],      "Open"),
    Wanted("writer",   Place::Shared,    &[Entry(PHOTOS, WriteOnly, Some("shared/"))],      "Open"),
    Wanted("editor",   Place::Shared,    &[Entry(PHOTOS, ReadWrite, Some("shared/"))],      "Open"),
    Wanted("deeper",   Place::Shared,    &[Entry(PHOTOS, ReadWrite, Some("shared/deep/"))], "Open"),
    Wanted("greedy",   Place::Shared,    &[Entry(PHOTOS, ReadWrite, None)],                 "BeyondConsent"),
    Wanted("stranger", Place::Elsewhere, &[Entry(PHOTOS, ReadOnly,  Some("shared/"))],      "NotShared"),
    Wanted("pair",     Place::Own,       &[Entry(PHOTOS, ReadOnly,  None), Entry(FILMS, ReadWrite, None)], "Open"),
];

pub(super) async fn play(testbed: &Testbed) -> Result<String> {
    let stage = testbed.stage("access").await?;
    let gateway = stage.start_gateway().await?;
    let mut operator = stage.start_operator_behind(&gateway.url(), &[]).await?;
    let told = stage.under(&mut operator, in_turn(&stage)).await?;
    operator.terminate().await?;
    gateway.end().await?;
    Ok(told)
}

async fn in_turn(stage: &Stage<'_>) -> Result<String> {
    let claim = claims(stage).await?;
    let buckets = buckets(stage, &claim).await?;
    let ids = buckets.fill().await?;
    for from in [Place::Shared, Place::Elsewhere] {
        stage.testbed.make_namespace(&namespace(stage, from)).await?;
    }
    for wanted in &ACCESSES {
        make(stage, wanted).await?;
    }
    let mut callers = Vec::new();
    for wanted in &ACCESSES {
        callers.push(caller(stage, &buckets, wanted).await?);
    }
    all_known(stage, &callers).await?;
    told_to_the_owner(stage).await?;

    let refused = through_every_door(&buckets, &ids, &callers).await?;
    let allowed = through_their_own(&buckets, &callers).await?;
    let lag = withdrawn(stage, &buckets, &mut callers).await?;
    let end = ended(stage, &buckets, &claim, &mut callers).await?;
    Ok(format!(
        "{refused} requests refused and nothing changed, {allowed} let in; consent withdrawn after {} ms, the claim's \
         end after {} ms",
        lag.as_millis(),
        end.as_millis()
    ))
}

/// Two claims, of which one shares what is below a prefix. Returns that one.
async fn claims(stage: &Stage<'_>) -> Result<BucketClaim> {
    stage.claim(PHOTOS, json!({"versioning": "Enabled", "sharing": sharing(stage)})).await?;
    stage.claim(FILMS, json!({"versioning": "Enabled"})).await?;
    stage.ready(FILMS).await?;
    stage.ready(PHOTOS).await
}

/// The owner's consent.
fn sharing(stage: &Stage<'_>) -> Value {
    let with = namespace(stage, Place::Shared);
    json!([{"namespaces": {"names": [with]}, "maxMode": "ReadWrite", "prefixes": ["shared/"]}])
}

fn namespace(stage: &Stage<'_>, from: Place) -> String {
    match from {
        Place::Own => stage.tenant.clone(),
        Place::Shared => format!("{}-b", stage.backend),
        Place::Elsewhere => format!("{}-c", stage.backend),
    }
}

async fn buckets(stage: &Stage<'_>, claim: &BucketClaim) -> Result<Buckets> {
    let rig = stage.testbed.rig.as_ref().context("there is a gateway only in a cluster of the harness' own")?;
    let (store, key) = rig.store();
    let owner = Asker::new(&store, REGION, key.clone())?;
    let photos = claim.status.as_ref().and_then(|status| status.bucket_name.clone());
    let films = stage.claims().get(FILMS).await.context("no claim")?.status.and_then(|status| status.bucket_name);
    Ok(Buckets { owner, photos: photos.context("no bucket")?, films: films.context("no bucket")? })
}

fn accesses(stage: &Stage<'_>, from: Place) -> Api<BucketAccess> {
    Api::namespaced(stage.testbed.tenant.clone(), &namespace(stage, from))
}

fn secret_name(access: &str) -> String {
    format!("{access}-key")
}

async fn make(stage: &Stage<'_>, Wanted(name, from, entries, _): &Wanted) -> Result<()> {
    let entry = |Entry(claim, mode, prefix): &Entry| {
        let claim = json!({"name": claim, "namespace": stage.tenant});
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
    let made = accesses(stage, *from).create(&PostParams::default(), &access).await;
    made.with_context(|| format!("can't make access {name}")).map(|_| ())
}

/// Waits until an access tells this reason, for its current generation.
async fn shows(stage: &Stage<'_>, from: Place, name: &str, reason: &'static str) -> Result<BucketAccess> {
    let tells = |access: Option<&BucketAccess>| access.is_some_and(|access| reason_of(access) == Some(reason));
    let found = stage.testbed.wait(&accesses(stage, from), name, reason, tells).await?;
    found.with_context(|| format!("access {name} is gone"))
}

/// Reason of the condition `Ready`, if it speaks of the access's current generation.
fn reason_of(access: &BucketAccess) -> Option<&str> {
    let conditions = &access.status.as_ref()?.conditions;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    (ready.observed_generation == access.metadata.generation).then_some(ready.reason.as_str())
}

/// Waits until an access is what it is to become, and reads its Secret.
async fn caller(stage: &Stage<'_>, buckets: &Buckets, wanted: &Wanted) -> Result<Caller> {
    let Wanted(name, from, entries, reason) = wanted;
    let access = shows(stage, *from, name, reason).await?;
    let status = access.status.unwrap_or_default();
    let open = *reason == "Open";
    let states = status.buckets.iter().all(|entry| (entry.state == "Open") == open);
    ensure!(states && status.buckets.len() == entries.len(), "access {name} tells {:?}", status.buckets);
    let secrets = stage.secrets(&namespace(stage, *from));
    let secret = secrets.get(&secret_name(name)).await.with_context(|| format!("no Secret of access {name}"))?;
    let key = Key { id: text(&secret, "AWS_ACCESS_KEY_ID"), secret: text(&secret, "AWS_SECRET_ACCESS_KEY") };
    ensure!(status.access_key_id.as_ref() == Some(&key.id), "the status of {name} shows another key than its Secret");
    if open {
        check_buckets(buckets, wanted, &secret)?;
    }
    let asker = Asker::new(&text(&secret, "AWS_ENDPOINT_URL"), &text(&secret, "AWS_REGION"), key)?;
    let grant = |Entry(claim, mode, prefix): &Entry| {
        (bucket_of(buckets, claim), Grant { mode: *mode, prefix: prefix.unwrap_or_default() })
    };
    let grants = if open { entries.iter().map(grant).collect() } else { BTreeMap::new() };
    Ok(Caller { name: wanted.0, asker, grants })
}

fn bucket_of(buckets: &Buckets, claim: &str) -> String {
    if claim == PHOTOS { buckets.photos.clone() } else { buckets.films.clone() }
}

/// One bucket has a name, several have theirs in the order of the entries.
fn check_buckets(buckets: &Buckets, Wanted(name, _, entries, _): &Wanted, secret: &Secret) -> Result<()> {
    let names: Vec<String> = entries.iter().map(|Entry(claim, ..)| bucket_of(buckets, claim)).collect();
    let (one, several) = match names.as_slice() {
        [one] => (one.clone(), String::new()),
        several => (String::new(), several.join(",")),
    };
    let found = (text(secret, "BUCKET_NAME"), text(secret, "BUCKET_NAMES"));
    ensure!(found == (one, several), "the Secret of {name} names the buckets {found:?}");
    Ok(())
}

/// Waits until the gateway has heard of every key.
async fn all_known(stage: &Stage<'_>, callers: &[Caller]) -> Result<()> {
    let deadline = Instant::now() + stage.testbed.patience;
    for caller in callers {
        while !caller.is_known().await? {
            ensure!(Instant::now() < deadline, "the gateway does not come to know the key of {}", caller.name);
            sleep(LOOK).await;
        }
    }
    Ok(())
}

/// The claim tells how many accesses its bucket is open to.
async fn told_to_the_owner(stage: &Stage<'_>) -> Result<()> {
    let of_photos = |Wanted(_, _, entries, reason): &&Wanted| *reason == "Open" && entries[0].0 == PHOTOS;
    let expected = i64::try_from(ACCESSES.iter().filter(of_photos).count())?;
    let count = |claim: &BucketClaim| claim.status.as_ref()?.accesses.as_ref().map(|accesses| accesses.count);
    let told = |claim: Option<&BucketClaim>| claim.and_then(count) == Some(expected);
    stage.testbed.wait(&stage.claims(), PHOTOS, "telling of its accesses", told).await.map(|_| ())
}

/// Everybody tries what isn't theirs, and nothing at the store changes. Tells how often.
async fn through_every_door(
    buckets: &Buckets,
    ids: &BTreeMap<(String, String), Ids>,
    callers: &[Caller],
) -> Result<usize> {
    let before = buckets.state().await?;
    let mut count = 0;
    for caller in callers {
        let named: BTreeSet<String> = caller.buckets().await?.into_iter().collect();
        let theirs: BTreeSet<String> = caller.grants.keys().cloned().collect();
        ensure!(named == theirs, "{} is told of the buckets {named:?}", caller.name);
        let tries = Tries::of(caller, [&buckets.photos, &buckets.films]).refused;
        count += refused(caller, &tries, ids).await?;
    }
    let editor = callers.iter().find(|caller| caller.name == "editor").context("no editor")?;
    count += tricks(buckets, editor).await?;
    ensure!(buckets.state().await? == before, "something at the store has changed, though all was refused");
    Ok(count)
}

async fn refused(caller: &Caller, tries: &[Try], ids: &BTreeMap<(String, String), Ids>) -> Result<usize> {
    let each = stream::iter(tries).map(|it| caller.is_refused(it, ids)).buffer_unordered(AT_ONCE);
    let outcomes: Vec<Result<()>> = each.collect().await;
    let wrong: Vec<String> = outcomes.iter().filter_map(|it| it.as_ref().err()).map(|why| format!("{why:#}")).collect();
    let some = wrong.iter().take(10).cloned().collect::<Vec<_>>().join("; ");
    ensure!(wrong.is_empty(), "{} of {} requests were not refused: {some}", wrong.len(), tries.len());
    Ok(tries.len())
}

/// What could be read as another request is refused as well, or makes no sense.
async fn tricks(buckets: &Buckets, editor: &Caller) -> Result<usize> {
    let named = |text: &str| text.replace('@', &buckets.photos).replace('^', &buckets.films);
    let mut count = 0;
    for (method, target, bucket) in TRICKS {
        for signed in [Signed::Headers, Signed::Query] {
            let host = bucket.map(|bucket| format!("{}.{}", named(bucket), editor.asker.host()));
            let answer = editor.asker.ask(Ask { host, ..Ask::new(method, named(target)) }, signed).await?;
            let is_refused = match answer.status {
                403 => answer.code() == Some("AccessDenied"),
                status => status == 400,
            };
            ensure!(is_refused, "a trick, {method} {target} signed {signed:?}: {}", outcome(&answer));
            count += 1;
        }
    }
    Ok(count)
}

/// Everybody does what is theirs, through every door that there is. Tells how often.
async fn through_their_own(buckets: &Buckets, callers: &[Caller]) -> Result<usize> {
    let mut opened = BTreeSet::new();
    let mut count = 0;
    for caller in callers {
        for it in Tries::of(caller, [&buckets.photos, &buckets.films]).allowed {
            let mut ids = BTreeMap::new();
            for (bucket, key) in [(&it.bucket, &it.key), (&it.bucket, &it.inside), (&it.other, &it.key)] {
                // A prefix is no object.
                if !key.is_empty() && !key.ends_with('/') && !ids.contains_key(&(bucket.clone(), key.clone())) {
                    ids.insert((bucket.clone(), key.clone()), buckets.put(bucket, key).await?);
                }
            }
            let answer = caller.is_let_in(&it, &ids).await?;
            let is_read = matches!(it.door, Door(Need::Reads, "GET", "/@/#", _));
            ensure!(!is_read || answer.body == content(&it.bucket, &it.key), "{} read {:?}", caller.name, answer.body);
            opened.insert(format!("{:?}", it.door));
            count += 1;
        }
    }
    let never = DOORS.iter().filter(|door| door.0 != Need::Nobody && !opened.contains(&format!("{door:?}")));
    let never: Vec<String> = never.map(|door| format!("{door:?}")).collect();
    ensure!(never.is_empty(), "nobody was let in through {}", never.join(", "));
    Ok(count)
}

/// The owner withdraws consent: those whom it let in are refused, and told so; those of the own
/// namespace aren't. Then it is given again. Tells how long the gateway took.
async fn withdrawn(stage: &Stage<'_>, buckets: &Buckets, callers: &mut [Caller]) -> Result<Duration> {
    stage.patch(PHOTOS, json!({"spec": {"sharing": null}})).await?;
    let lag = shut(stage, buckets, callers, &[Place::Shared]).await?;
    for Wanted(name, from, ..) in ACCESSES.iter().filter(|it| it.1 == Place::Shared) {
        shows(stage, *from, name, "NotShared").await?;
    }
    let own = callers.iter().find(|caller| caller.name == "pair").context("no pair")?;
    let photo = Ask::new("GET", format!("/{}/shared/a", buckets.photos));
    let answer = own.asker.ask(photo.clone(), Signed::Headers).await?;
    ensure!(answer.is_done(), "an access of the own namespace: {}", outcome(&answer));

    stage.patch(PHOTOS, json!({"spec": {"sharing": sharing(stage)}})).await?;
    for Wanted(name, from, _, reason) in &ACCESSES {
        shows(stage, *from, name, reason).await?;
    }
    let deadline = Instant::now() + stage.testbed.patience;
    let editor = callers.iter().find(|caller| caller.name == "editor").context("no editor")?;
    while !editor.asker.ask(photo.clone(), Signed::Headers).await?.is_done() {
        ensure!(Instant::now() < deadline, "consent that was given again does not come to the gateway");
        sleep(LOOK).await;
    }
    Ok(lag)
}

/// The claim goes, and its bucket stays: every access to it ends, and those to the other go on.
/// Tells how long the gateway took once the claim was gone.
async fn ended(stage: &Stage<'_>, buckets: &Buckets, claim: &BucketClaim, callers: &mut [Caller]) -> Result<Duration> {
    let before = buckets.state().await?;
    stage.delete(claim).await?;
    let lag = shut(stage, buckets, callers, &[Place::Shared, Place::Own]).await?;
    ensure!(buckets.state().await? == before, "the retained bucket is not what it was");
    for Wanted(name, from, ..) in ACCESSES.iter().filter(|it| it.1 == Place::Shared) {
        shows(stage, *from, name, "NotShared").await?;
    }
    let closed = |access: Option<&BucketAccess>| {
        let entries = access.and_then(|access| access.status.as_ref()).map(|status| &status.buckets);
        entries.is_some_and(|entries| entries.iter().map(|it| it.state.as_str()).eq(["Closed", "Open"]))
    };
    stage.testbed.wait(&accesses(stage, Place::Own), "pair", "half closed", closed).await?;
    let own = callers.iter().find(|caller| caller.name == "pair").context("no pair")?;
    let film = Ask::new("GET", format!("/{}/shared/a", buckets.films));
    let answer = own.asker.ask(film, Signed::Headers).await?;
    ensure!(answer.is_done(), "an access to the other bucket: {}", outcome(&answer));
    Ok(lag)
}

/// Waits until nobody from these namespaces is told of the first bucket any more, and then tries all
/// that was theirs of it. Tells how long the first took.
async fn shut(stage: &Stage<'_>, buckets: &Buckets, callers: &mut [Caller], from: &[Place]) -> Result<Duration> {
    let (start, none) = (Instant::now(), BTreeMap::new());
    let is_from = |caller: &Caller| ACCESSES.iter().any(|wanted| wanted.0 == caller.name && from.contains(&wanted.1));
    for caller in callers.iter().filter(|caller| is_from(caller)) {
        while caller.buckets().await?.contains(&buckets.photos) {
            ensure!(start.elapsed() < stage.testbed.patience, "{} is let in, though nobody consents", caller.name);
            sleep(LOOK).await;
        }
    }
    let (lag, before) = (start.elapsed(), buckets.state().await?);
    for caller in callers.iter_mut().filter(|caller| is_from(caller)) {
        let Some(grant) = caller.grants.remove(&buckets.photos) else { continue };
        let tries = Tries::of(caller, [&buckets.photos, &buckets.films]).refused;
        let was_theirs = |it: &&Try| it.bucket == buckets.photos && it.key.starts_with(grant.prefix);
        let tries: Vec<Try> = tries.iter().filter(was_theirs).cloned().collect();
        refused(caller, &tries, &none).await?;
        caller.grants.insert(buckets.photos.clone(), grant);
    }
    ensure!(buckets.state().await? == before, "something at the store has changed, though all was refused");
    Ok(lag)
}
