//! Accesses to the buckets of other namespaces. At the gateway, each opens exactly what the owner
//! consents to, for every S3 request that could reach it, and only as long as the owner does.

mod buckets;
mod cast;
mod doors;
mod tries;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, stream};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use stowage_operator::api::{BucketAccess, BucketClaim};
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::setup::{Setup, ready_reason};
use stowage_testbed::objects::from_json;
use stowage_testbed::request::{Ask, Asker, Signed};
use stowage_testbed::simulated::REGION;
use tokio::time::sleep;

use self::buckets::{Buckets, Ids, content};
use self::cast::{ACCESSES, FILMS, NOTES, OPEN, PHOTOS, Place, Wanted, accesses, caller, make, namespace, shows};
use self::doors::{DOORS, Door, Need, TRICKS};
use self::tries::{Caller, Tries, Try, outcome};

/// Number of concurrent requests: below the gateway's limit per access for requests that delete
/// several keys.
const AT_ONCE: usize = 3;
/// Interval between checks of the gateway's state.
const LOOK: Duration = Duration::from_millis(20);

pub(super) async fn play(environment: &Environment) -> Result<String> {
    let setup = environment.setup("access").await?;
    let gateway = setup.start_gateway().await?;
    let mut operator = setup.start_operator_behind(&gateway.url(), &[]).await?;
    let told = setup.under(&mut operator, in_turn(&setup)).await?;
    operator.terminate().await?;
    gateway.end().await?;
    Ok(told)
}

async fn in_turn(setup: &Setup<'_>) -> Result<String> {
    for place in [Place::Shared, Place::Guests, Place::Elsewhere] {
        setup.environment.make_namespace(&namespace(setup, place)).await?;
    }
    let claim = claims(setup).await?;
    let buckets = buckets(setup).await?;
    let ids = buckets.fill().await?;
    for wanted in &ACCESSES {
        make(setup, wanted).await?;
    }
    let mut callers = Vec::new();
    for wanted in &ACCESSES {
        callers.push(caller(setup, &buckets, wanted).await?);
    }
    all_known(setup, &callers).await?;
    told_to_the_owner(setup).await?;
    beyond_consent(setup, &mut callers).await?;

    let refused = through_every_door(&buckets, &ids, &callers).await?;
    let allowed = through_their_own(&buckets, &callers).await?;
    let lag = withdrawn(setup, &buckets, &mut callers).await?;
    let end = ended(setup, &buckets, &claim, &mut callers).await?;
    Ok(format!(
        "{refused} requests refused and nothing changed, {allowed} let in; consent withdrawn after {} ms, the claim's \
         end after {} ms",
        lag.as_millis(),
        end.as_millis()
    ))
}

/// Creates three claims, one of which shares a prefix. Returns that one.
async fn claims(setup: &Setup<'_>) -> Result<BucketClaim> {
    setup
        .claim(PHOTOS, json!({"versioning": "Enabled", "sharing": sharing(setup, &[Place::Shared, Place::Guests])}))
        .await?;
    setup.claim(FILMS, json!({"versioning": "Enabled"})).await?;
    let notes = from_json(json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "BucketClaim", "metadata": {"name": NOTES},
        "spec": {"backendRef": {"name": setup.backend}},
    }));
    let made = claims_of(setup, NOTES).create(&PostParams::default(), &notes).await;
    made.context("can't make the claim elsewhere")?;
    setup.ready(FILMS).await?;
    setup.ready(PHOTOS).await
}

/// Returns the API of claims in the namespace of this one.
fn claims_of(setup: &Setup<'_>, claim: &str) -> Api<BucketClaim> {
    let place = if claim == NOTES { Place::Elsewhere } else { Place::Own };
    Api::namespaced(setup.environment.tenant.clone(), &namespace(setup, place))
}

/// Returns sharing rules for the namespaces of these places.
fn sharing(setup: &Setup<'_>, with: &[Place]) -> Value {
    let rule = |place: &Place| {
        let names = [namespace(setup, *place)];
        json!({"namespaces": {"names": names}, "maxMode": "ReadWrite", "prefixes": ["shared/"]})
    };
    with.iter().map(rule).collect()
}

async fn buckets(setup: &Setup<'_>) -> Result<Buckets> {
    let own_cluster =
        setup.environment.own_cluster.as_ref().context("there is a gateway only in a cluster of the harness' own")?;
    let (store, key) = own_cluster.store();
    let owner = Asker::new(&store, REGION, key.clone())?;
    let name = async |claim| {
        let bound = |claim: Option<&BucketClaim>| claim.is_some_and(|claim| ready_reason(claim) == Some("Bound"));
        let found = setup.environment.wait(&claims_of(setup, claim), claim, "Bound", bound).await?;
        found.and_then(|claim| claim.status?.bucket_name).with_context(|| format!("claim {claim} has no bucket"))
    };
    Ok(Buckets { owner, photos: name(PHOTOS).await?, films: name(FILMS).await?, notes: name(NOTES).await? })
}

/// Waits until the gateway knows every key.
async fn all_known(setup: &Setup<'_>, callers: &[Caller]) -> Result<()> {
    let deadline = Instant::now() + setup.environment.patience;
    for caller in callers {
        while !caller.is_known().await? {
            ensure!(Instant::now() < deadline, "the gateway does not come to know the key of {}", caller.name);
            sleep(LOOK).await;
        }
    }
    Ok(())
}

/// Waits until the claim's status lists the accesses that its bucket is open to.
async fn told_to_the_owner(setup: &Setup<'_>) -> Result<()> {
    let is_open = |wanted: &&Wanted| wanted.2.iter().any(|entry| entry.0 == PHOTOS && entry.3 == OPEN);
    let open = ACCESSES.iter().filter(is_open).map(|wanted| format!("{}/{}", namespace(setup, wanted.1), wanted.0));
    let open: BTreeSet<String> = open.collect();
    let told = |claim: Option<&BucketClaim>| {
        let accesses = claim.and_then(|claim| claim.status.as_ref()?.accesses.as_ref());
        accesses.is_some_and(|it| it.first.iter().cloned().collect::<BTreeSet<_>>() == open)
    };
    setup.environment.wait(&setup.claims(), PHOTOS, "telling of its accesses", told).await.map(|_| ())
}

/// Edits an access that has a key, so that it requests more than the owner consents to, and checks
/// that it loses all buckets.
async fn beyond_consent(setup: &Setup<'_>, callers: &mut [Caller]) -> Result<()> {
    let whole = json!({"spec": {"buckets": [{"claimRef": {"name": PHOTOS, "namespace": setup.tenant}}]}});
    let patched = accesses(setup, Place::Shared).patch("greedy", &PatchParams::default(), &Patch::Merge(whole)).await;
    patched.context("can't patch access greedy")?;
    shows(setup, Place::Shared, "greedy", "BeyondConsent").await?;
    let greedy = callers.iter_mut().find(|caller| caller.name == "greedy").context("no greedy")?;
    greedy.grants.clear();
    let deadline = Instant::now() + setup.environment.patience;
    while !greedy.buckets().await?.is_empty() {
        ensure!(Instant::now() < deadline, "an access goes on that asks for more than is consented to");
        sleep(LOOK).await;
    }
    Ok(())
}

/// Sends every request that callers have no right to. Checks that all are denied, and that nothing
/// in the store changes. Returns the number of requests.
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

/// Checks that requests that might be parsed as another one are rejected. Returns their number.
async fn tricks(buckets: &Buckets, editor: &Caller) -> Result<usize> {
    let named = |text: &str| text.replace('@', &buckets.photos).replace('^', &buckets.films);
    let mut count = 0;
    for (method, target, bucket) in TRICKS {
        for signed in [Signed::Headers, Signed::Query] {
            let host = bucket.map(|bucket| format!("{}.{}", named(bucket), editor.asker.host()));
            let answer = editor.asker.ask(Ask { host, ..Ask::new(method, named(target)) }, signed).await?;
            let is_refused = match answer.status {
                403 => answer.code() == Some("AccessDenied"),
                // The gateway doesn't forward operations that S3 doesn't have.
                501 => answer.code() == Some("NotImplemented"),
                status => status == 400,
            };
            ensure!(is_refused, "a trick, {method} {target} signed {signed:?}: {}", outcome(&answer));
            count += 1;
        }
    }
    Ok(count)
}

/// Sends every kind of request that callers have a right to, and checks that all succeed. Returns
/// the number of requests.
async fn through_their_own(buckets: &Buckets, callers: &[Caller]) -> Result<usize> {
    let mut opened = BTreeSet::new();
    let mut count = 0;
    for caller in callers {
        for it in Tries::of(caller, [&buckets.photos, &buckets.films]).allowed {
            let mut ids = BTreeMap::new();
            for (bucket, key) in [(&it.bucket, &it.key), (&it.bucket, &it.inside), (&it.other, &it.key)] {
                // A prefix is not an object.
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

/// The owner withdraws consent from one namespace. Its accesses are denied and their status says
/// so, while others continue to work. Returns the time that the gateway took.
async fn withdrawn(setup: &Setup<'_>, buckets: &Buckets, callers: &mut [Caller]) -> Result<Duration> {
    let ids = buckets.fill().await?;
    setup.patch(PHOTOS, json!({"spec": {"sharing": sharing(setup, &[Place::Guests])}})).await?;
    let lag = shut(setup, buckets, &ids, callers, &[Place::Shared]).await?;
    for Wanted(name, from, ..) in ACCESSES.iter().filter(|it| it.1 == Place::Shared) {
        shows(setup, *from, name, "NotShared").await?;
    }
    reads(callers, "guest", &buckets.photos).await?;
    reads(callers, "pair", &buckets.photos).await?;
    Ok(lag)
}

/// Deletes the claim and retains its bucket. Every access to it ends, and accesses to the other
/// bucket continue to work. Returns the time that the gateway took after the claim was gone.
async fn ended(setup: &Setup<'_>, buckets: &Buckets, claim: &BucketClaim, callers: &mut [Caller]) -> Result<Duration> {
    let ids = buckets.fill().await?;
    let before = buckets.state().await?;
    setup.delete(claim).await?;
    let lag = shut(setup, buckets, &ids, callers, &[Place::Guests, Place::Own]).await?;
    ensure!(buckets.state().await? == before, "the retained bucket is not what it was");
    shows(setup, Place::Guests, "guest", "NotShared").await?;
    let closed = |access: Option<&BucketAccess>| {
        let entries = access.and_then(|access| access.status.as_ref()?.buckets.get());
        entries.is_some_and(|entries| entries.iter().map(|it| it.state.as_str()).eq(["Closed", "Open"]))
    };
    setup.environment.wait(&accesses(setup, Place::Own), "pair", "half closed", closed).await?;
    reads(callers, "pair", &buckets.films).await?;
    Ok(lag)
}

/// Checks that a caller can read an object.
async fn reads(callers: &[Caller], name: &str, bucket: &str) -> Result<()> {
    let caller = callers.iter().find(|caller| caller.name == name).with_context(|| format!("no {name}"))?;
    let answer = caller.asker.ask(Ask::new("GET", format!("/{bucket}/shared/a")), Signed::Headers).await?;
    ensure!(answer.body == content(bucket, "shared/a"), "{name} reads {bucket}: {}", outcome(&answer));
    Ok(())
}

/// Waits until ListBuckets no longer shows the first bucket to any caller from these places, then
/// checks that all their requests to it are denied. Returns the time until then.
async fn shut(
    setup: &Setup<'_>,
    buckets: &Buckets,
    ids: &BTreeMap<(String, String), Ids>,
    callers: &mut [Caller],
    from: &[Place],
) -> Result<Duration> {
    let start = Instant::now();
    let is_from = |caller: &Caller| ACCESSES.iter().any(|wanted| wanted.0 == caller.name && from.contains(&wanted.1));
    for caller in callers.iter().filter(|caller| is_from(caller)) {
        while caller.buckets().await?.contains(&buckets.photos) {
            ensure!(start.elapsed() < setup.environment.patience, "{} is let in, though nobody consents", caller.name);
            sleep(LOOK).await;
        }
    }
    let (lag, before) = (start.elapsed(), buckets.state().await?);
    for caller in callers.iter_mut().filter(|caller| is_from(caller)) {
        let Some(grant) = caller.grants.remove(&buckets.photos) else { continue };
        let tries = Tries::of(caller, [&buckets.photos, &buckets.films]).refused;
        let was_theirs = |it: &&Try| it.bucket == buckets.photos && it.key.starts_with(grant.prefix);
        let tries: Vec<Try> = tries.iter().filter(was_theirs).cloned().collect();
        refused(caller, &tries, ids).await?;
        caller.grants.insert(buckets.photos.clone(), grant);
    }
    ensure!(buckets.state().await? == before, "something at the store has changed, though all was refused");
    Ok(lag)
}
