//! The state of the cluster: each kind is listed once, into the same caches that the operator's
//! watches fill.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource, ResourceExt};
use tokio::sync::mpsc::unbounded_channel;

use crate::Clock;
use crate::api::{AccessRef, ClaimRef, kept, wire};
use crate::cache::{AccessCache, BackendCache, NamespaceCache, SecretCache, UsageCache};
use crate::controller::objects::{Access, Backend, Claim, access_ref, claim_ref, keep};
use crate::kubernetes::{describe, guarded, within};
use crate::mandate::Mandate;
use crate::metrics::Metrics;
use crate::observe::Observer;
use crate::plan::{Part, Setting};
use crate::upstream::{self, Connect, Upstreams};

use super::gateway::gateway;
use super::list::{list, list_if_known};
use super::seen_obc::{ReadObcs, SeenObcs};
use super::setup::{Means, Scope, Setup};

/// The state of the cluster.
pub(super) struct Seen {
    pub(super) observer: Observer,
    pub(super) clock: Clock,
    /// The requested claims, and those that requested accesses and ObjectBucketClaims refer to, by
    /// namespace and name. All claims if the scope is the whole cluster.
    pub(super) claims: BTreeMap<ClaimRef, Claim>,
    /// All served accesses.
    pub(super) accesses: BTreeMap<AccessRef, Access>,
    /// The requested ObjectBucketClaims; `None` if they are not served.
    pub(super) obcs: Option<SeenObcs>,
    pub(super) backends: BTreeMap<String, Backend>,
    /// Values that were not given and were inferred from the cluster.
    pub(super) assumed: Vec<String>,
}

impl Seen {
    /// Reads the state of the cluster.
    ///
    /// # Errors
    /// An error message about what could not be read.
    pub(super) async fn read(setup: &Setup, means: Means, scope: &Scope) -> Result<Self, String> {
        if setup.obc.is_none() && !scope.obcs.is_empty() {
            return Err("the operator serves ObjectBucketClaims if it is told --obc: say so here, too".to_owned());
        }
        let client = guarded(means.client, Mandate::ReadOnly);
        let named = scope.namespaces().unwrap_or_default();
        if let Some(other) = named.iter().find(|namespace| !setup.reach.has(namespace)) {
            return Err(format!("namespace {other} is not among those that --watch-namespace names"));
        }
        let installation = match setup.installation.clone() {
            Some(installation) => installation,
            None => installation(&client).await?,
        };
        let (internal, consumers) = (SecretCache::default(), SecretCache::of_tenants());
        let (backends, namespaces, usage) = (BackendCache::default(), NamespaceCache::default(), UsageCache::default());
        read_secrets(&client, setup, scope, &internal, &consumers).await?;
        read_namespaces(&client, setup, &namespaces).await?;
        let all_backends = read_backends(&client, &backends).await?;
        let accesses = AccessCache::default();
        let all_accesses = read_accesses(&client, setup, &accesses).await?;
        let read_obcs = match &setup.obc {
            Some(provisioner) if scope.may_have_obcs() => Some(ReadObcs::read(&client, scope, provisioner).await?),
            Some(_) | None => None,
        };
        // Last, as in the operator: the objects that claims depend on are known by now.
        let shadows = read_obcs.as_ref().map(ReadObcs::shadows).unwrap_or_default();
        let claims = read_claims(&client, setup, scope, &led_to(scope, &all_accesses, &shadows)).await?;
        if claims.values().any(|claim| claim.0.as_ref().is_ok_and(|claim| claim.spec.quota.is_some())) {
            read_usage(&client, setup, &usage).await?;
        }
        let (gateway, assumed) = gateway(&setup.gateway, &claims, &consumers);
        let (claim_store, access_store) = (stored(claims.values()), stored(all_accesses.values()));
        let setting = Setting {
            operator_namespace: setup.operator_namespace.clone(),
            reach: setup.reach.clone(),
            trusted_namespaces: setup.trusted_namespaces.clone(),
            gateway,
            publishing: setup.publishing.clone(),
            installation,
            purge_slice: setup.purge_slice,
        };
        let obcs = read_obcs.map(|read| read.around(&setting, claim_store.clone(), access_store));
        let observer = Observer {
            setting: Arc::new(setting),
            internal: Arc::new(internal),
            consumers: Arc::new(consumers),
            backends: Arc::new(backends),
            namespaces: Arc::new(namespaces),
            accesses: Arc::new(accesses),
            claims: Some(claim_store),
            usage: Arc::new(usage),
            upstreams: Arc::new(upstreams(setup, &client, means.connect)),
            client,
        };
        Ok(Self { observer, clock: means.clock, claims, accesses: all_accesses, obcs, backends: all_backends, assumed })
    }
}

/// Creates clients of stores that can't change anything.
fn upstreams(setup: &Setup, client: &Client, connect: Arc<dyn Connect>) -> Upstreams {
    let mut namespaces: Vec<String> = setup.trusted_namespaces.iter().cloned().collect();
    namespaces.push(setup.operator_namespace.clone());
    // Nothing waits here for a store to recover.
    let (recoveries, _) = unbounded_channel();
    Upstreams::new(upstream::Access {
        client: client.clone(),
        connect,
        limits: setup.limits,
        mandate: Mandate::ReadOnly,
        namespaces,
        unlabelled: setup.unlabelled_credentials,
        recoveries,
        metrics: Metrics::new(),
    })
}

async fn installation(client: &Client) -> Result<String, String> {
    let api: Api<Namespace> = Api::all(client.clone());
    let why = match api.get("kube-system").await {
        Ok(it) => match it.metadata.uid {
            Some(uid) => return Ok(uid),
            None => "it has no UID".to_owned(),
        },
        Err(error) => describe(&error),
    };
    Err(format!(
        "can't read namespace kube-system, whose UID identifies this installation: {why}; see --installation-id"
    ))
}

/// Returns the namespaces to read; `None` means all.
fn looked_at<'a>(setup: &'a Setup, scope: &'a Scope) -> Option<BTreeSet<&'a str>> {
    scope.namespaces().or_else(|| setup.reach.names().map(|names| names.iter().map(String::as_str).collect()))
}

async fn read_secrets(
    client: &Client,
    setup: &Setup,
    scope: &Scope,
    internal: &SecretCache,
    consumers: &SecretCache,
) -> Result<(), String> {
    let operator: Api<Secret> = Api::namespaced(client.clone(), &setup.operator_namespace);
    let place = format!("Secrets in namespace {}", setup.operator_namespace);
    list(&place, wire::ROLE, async |it| operator.list(&it).await, |event| drop(internal.apply(event))).await?;
    let label = format!("{}={}", wire::ROLE, wire::Role::ConsumerSecret.as_str());
    let Some(namespaces) = looked_at(setup, scope) else {
        let all: Api<Secret> = Api::all(client.clone());
        let ask = async |it| all.list(&it).await;
        return list("Secrets of all namespaces", &label, ask, |event| drop(consumers.apply(event))).await;
    };
    // The lists of several namespaces count as one list for the cache.
    consumers.apply(Event::Init);
    for namespace in namespaces {
        let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let take = |event| {
            if let Event::InitApply(secret) = event {
                consumers.apply(Event::InitApply(secret));
            }
        };
        list(&format!("Secrets in namespace {namespace}"), &label, async |it| api.list(&it).await, take).await?;
    }
    consumers.apply(Event::InitDone);
    Ok(())
}

/// Reads all served namespaces: accesses to a claim may be in any of them.
async fn read_namespaces(client: &Client, setup: &Setup, cache: &NamespaceCache) -> Result<(), String> {
    let api: Api<PartialObjectMeta<Namespace>> = Api::all(client.clone());
    let Some(names) = setup.reach.names() else {
        let take = |event| drop(cache.apply(&Part::All, event));
        return list("namespaces", "", async |it| api.list(&it).await, take).await;
    };
    for name in names {
        let found = api.get_opt(name).await;
        let found = found.map_err(|error| format!("can't read namespace {name}: {}", describe(&error)))?;
        found.into_iter().for_each(|namespace| drop(cache.apply(&Part::All, Event::Apply(namespace))));
    }
    Ok(())
}

/// Reads all served accesses, as each may name a previewed claim. If the cluster doesn't have the
/// kind, the cache stays unfilled, as in the operator.
async fn read_accesses(
    client: &Client,
    setup: &Setup,
    cache: &AccessCache,
) -> Result<BTreeMap<AccessRef, Access>, String> {
    let mut all = BTreeMap::new();
    // The lists of several namespaces count as one list for the cache.
    cache.apply(&Event::Init);
    let mut take = |event| {
        if let Event::InitApply(mut access) = event {
            keep(&mut access, kept::access_for_pass);
            all.insert(access_ref(&access), access.clone());
            cache.apply(&Event::InitApply(access));
        }
    };
    for part in setup.reach.parts() {
        let api: Api<Access> = within(client, &part);
        let what = listed_in("BucketAccesses", &part);
        if !list_if_known(&what, "", async |it| api.list(&it).await, &mut take).await? {
            return Ok(all);
        }
    }
    cache.apply(&Event::InitDone);
    Ok(all)
}

/// Describes a list for error messages.
fn listed_in(kind: &str, part: &Part) -> String {
    match part {
        Part::All => format!("{kind} of all namespaces"),
        Part::Namespace(namespace) => format!("{kind} in namespace {namespace}"),
    }
}

/// Returns the claims that the requested accesses and ObjectBucketClaims refer to. `shadows` are
/// the BucketClaims and BucketAccesses of these ObjectBucketClaims.
fn led_to(scope: &Scope, accesses: &BTreeMap<AccessRef, Access>, shadows: &BTreeSet<ClaimRef>) -> BTreeSet<ClaimRef> {
    let is_shadow =
        |at: &AccessRef| shadows.contains(&ClaimRef { namespace: at.namespace.clone(), name: at.name.clone() });
    let asked = accesses.iter().filter(|(at, _)| scope.has_access(at) || is_shadow(at));
    let parsed = asked.filter_map(|(_, access)| access.0.as_ref().ok().map(crate::api::Access::parse));
    let named: BTreeSet<ClaimRef> = parsed.flat_map(|it| it.claims().cloned().collect::<Vec<_>>()).collect();
    named.union(shadows).cloned().collect()
}

/// Fills a store with the objects, as a watch does.
fn stored<'a, K>(all: impl Iterator<Item = &'a DeserializeGuard<K>>) -> Store<DeserializeGuard<K>>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let (store, mut writer) = reflector::store();
    writer.apply_watcher_event(&Event::Init);
    all.for_each(|object| writer.apply_watcher_event(&Event::InitApply(object.clone())));
    writer.apply_watcher_event(&Event::InitDone);
    store
}

async fn read_backends(client: &Client, cache: &BackendCache) -> Result<BTreeMap<String, Backend>, String> {
    let (api, mut all) = (Api::<Backend>::all(client.clone()), BTreeMap::new());
    list(
        "S3Backends",
        "",
        async |it| api.list(&it).await,
        |mut event| {
            if let Event::InitApply(backend) = &mut event {
                keep(backend, kept::backend);
                all.insert(backend.name_any(), backend.clone());
            }
            cache.apply(&event);
        },
    )
    .await?;
    Ok(all)
}

/// Reads the requested claims, and those in `besides` whose namespace is served.
async fn read_claims(
    client: &Client,
    setup: &Setup,
    scope: &Scope,
    besides: &BTreeSet<ClaimRef>,
) -> Result<BTreeMap<ClaimRef, Claim>, String> {
    let mut claims = BTreeMap::new();
    let mut listed = |event| {
        if let Event::InitApply(mut claim) = event {
            keep(&mut claim, kept::claim_for_pass);
            claims.insert(claim_ref(&claim), claim);
        }
    };
    if scope.needs_all_claims() {
        for part in setup.reach.parts() {
            let api: Api<Claim> = within(client, &part);
            list(&listed_in("BucketClaims", &part), "", async |it| api.list(&it).await, &mut listed).await?;
        }
        return Ok(claims);
    }
    if let Some(namespace) = &scope.namespace {
        let api: Api<Claim> = Api::namespaced(client.clone(), namespace);
        list(&format!("BucketClaims in namespace {namespace}"), "", async |it| api.list(&it).await, &mut listed)
            .await?;
    }
    let named = scope.claims.union(besides);
    let is_unread = |at: &ClaimRef| setup.reach.has(&at.namespace) && scope.namespace.as_ref() != Some(&at.namespace);
    for at in named.filter(|at| is_unread(at)) {
        let api: Api<Claim> = Api::namespaced(client.clone(), &at.namespace);
        let claim = api.get_opt(&at.name).await;
        let claim = claim.map_err(|error| format!("can't read BucketClaim {at}: {}", describe(&error)))?;
        claim.into_iter().for_each(|claim| listed(Event::InitApply(claim)));
    }
    Ok(claims)
}

async fn read_usage(client: &Client, setup: &Setup, cache: &UsageCache) -> Result<(), String> {
    let namespace = setup.usage_namespace.as_ref().unwrap_or(&setup.operator_namespace);
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let label = format!("{}={}", wire::USAGE, wire::Usage::Snapshot.as_str());
    let place = format!("ConfigMaps in namespace {namespace}");
    list(&place, &label, async |it| api.list(&it).await, |event| drop(cache.apply(&event))).await
}
