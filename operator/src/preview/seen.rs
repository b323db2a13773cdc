//! What there is: each kind is listed once, into the caches that the watches of an operator fill.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{ListParams, ObjectList};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc::unbounded_channel;

use crate::Clock;
use crate::api::{AddressingStyle, ClaimRef, Endpoint, Gateway, kept, wire};
use crate::cache::{AccessCache, BackendCache, NamespaceCache, SecretCache, UsageCache};
use crate::controller::objects::{Backend, Claim, claim_ref, keep};
use crate::kubernetes::{describe, guarded, within};
use crate::mandate::Mandate;
use crate::metrics::Metrics;
use crate::observe::Observer;
use crate::plan::{Part, Setting};
use crate::upstream::{Access, Connect, Upstreams};

use super::setup::{GivenGateway, Means, Scope, Setup};

/// Objects in a page of a list.
const PAGE: u32 = 100;

/// How often a list is begun that a server lets go of half way.
const MOST_LISTS: u8 = 3;

/// Where nothing tells the gateway's address, nothing that is shown depends on it.
const NOWHERE: &str = "http://gateway.invalid";

/// What there is.
pub(super) struct Seen {
    pub(super) observer: Observer,
    pub(super) clock: Clock,
    /// Those that were asked for, by namespace and name; of a whole cluster all of them.
    pub(super) claims: BTreeMap<ClaimRef, Claim>,
    pub(super) backends: BTreeMap<String, Backend>,
    /// What was not told, and is taken from what there is.
    pub(super) assumed: Vec<String>,
}

impl Seen {
    /// Looks at what there is.
    ///
    /// # Errors
    /// One sentence: what could not be read.
    pub(super) async fn read(setup: &Setup, means: Means, scope: &Scope) -> Result<Self, String> {
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
        read_namespaces(&client, setup, scope, &namespaces).await?;
        let all_backends = read_backends(&client, &backends).await?;
        // Last, as an operator does: what claims depend on is known by now.
        let claims = read_claims(&client, setup, scope).await?;
        if claims.values().any(|claim| claim.0.as_ref().is_ok_and(|claim| claim.spec.quota.is_some())) {
            read_usage(&client, setup, &usage).await?;
        }
        let (gateway, assumed) = gateway(&setup.gateway, &claims, &consumers);
        let setting = Setting {
            operator_namespace: setup.operator_namespace.clone(),
            reach: setup.reach.clone(),
            trusted_namespaces: setup.trusted_namespaces.clone(),
            gateway,
            publishing: setup.publishing.clone(),
            installation,
            purge_slice: setup.purge_slice,
        };
        let observer = Observer {
            setting: Arc::new(setting),
            internal: Arc::new(internal),
            consumers: Arc::new(consumers),
            backends: Arc::new(backends),
            namespaces: Arc::new(namespaces),
            // What it shows is about claims: no access is asked about.
            accesses: Arc::new(AccessCache::default()),
            claims: None,
            usage: Arc::new(usage),
            upstreams: Arc::new(upstreams(setup, &client, means.connect)),
            client,
        };
        Ok(Self { observer, clock: means.clock, claims, backends: all_backends, assumed })
    }
}

/// Clients of stores that change nothing.
fn upstreams(setup: &Setup, client: &Client, connect: Arc<dyn Connect>) -> Upstreams {
    let mut namespaces: Vec<String> = setup.trusted_namespaces.iter().cloned().collect();
    namespaces.push(setup.operator_namespace.clone());
    // Nobody waits here for a store that answers again.
    let (recoveries, _) = unbounded_channel();
    Upstreams::new(Access {
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

/// The namespaces that are looked at; `None` = all.
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
    // One list of several namespaces, as far as the cache is concerned.
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

async fn read_namespaces(client: &Client, setup: &Setup, scope: &Scope, cache: &NamespaceCache) -> Result<(), String> {
    let api: Api<PartialObjectMeta<Namespace>> = Api::all(client.clone());
    let Some(namespaces) = looked_at(setup, scope) else {
        let take = |event| drop(cache.apply(&Part::All, event));
        return list("namespaces", "", async |it| api.list(&it).await, take).await;
    };
    for name in namespaces {
        let found = api.get_opt(name).await;
        let found = found.map_err(|error| format!("can't read namespace {name}: {}", describe(&error)))?;
        found.into_iter().for_each(|namespace| drop(cache.apply(&Part::All, Event::Apply(namespace))));
    }
    Ok(())
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

async fn read_claims(client: &Client, setup: &Setup, scope: &Scope) -> Result<BTreeMap<ClaimRef, Claim>, String> {
    let mut claims = BTreeMap::new();
    let mut take = |mut claim: Claim| {
        keep(&mut claim, kept::claim);
        claims.insert(claim_ref(&claim), claim);
    };
    let mut listed = |event| {
        if let Event::InitApply(claim) = event {
            take(claim);
        }
    };
    if scope.needs_all_claims() {
        for part in setup.reach.parts() {
            let api: Api<Claim> = within(client, &part);
            let what = match &part {
                Part::All => "BucketClaims of all namespaces".to_owned(),
                Part::Namespace(namespace) => format!("BucketClaims in namespace {namespace}"),
            };
            list(&what, "", async |it| api.list(&it).await, &mut listed).await?;
        }
        return Ok(claims);
    }
    if let Some(namespace) = &scope.namespace {
        let api: Api<Claim> = Api::namespaced(client.clone(), namespace);
        list(&format!("BucketClaims in namespace {namespace}"), "", async |it| api.list(&it).await, &mut listed)
            .await?;
    }
    for at in &scope.claims {
        let api: Api<Claim> = Api::namespaced(client.clone(), &at.namespace);
        let claim = api.get_opt(&at.name).await;
        let claim = claim.map_err(|error| format!("can't read BucketClaim {at}: {}", describe(&error)))?;
        claim.into_iter().for_each(|claim| listed(Event::InitApply(claim)));
    }
    Ok(claims)
}

async fn read_usage(client: &Client, setup: &Setup, cache: &UsageCache) -> Result<(), String> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &setup.operator_namespace);
    let label = format!("{}={}", wire::USAGE, wire::Usage::Snapshot.as_str());
    let place = format!("ConfigMaps in namespace {}", setup.operator_namespace);
    list(&place, &label, async |it| api.list(&it).await, |event| drop(cache.apply(&event))).await
}

/// One list, in pages, as a watch would tell of it. What a server lets go of half way is begun
/// again.
async fn list<K: Clone>(
    what: &str,
    labels: &str,
    ask: impl AsyncFn(ListParams) -> kube::Result<ObjectList<K>>,
    mut take: impl FnMut(Event<K>),
) -> Result<(), String> {
    let first = ListParams::default().limit(PAGE).labels(labels);
    let (mut begun, mut params) = (1, first.clone());
    take(Event::Init);
    loop {
        let page: ObjectList<K> = match ask(params.clone()).await {
            Ok(page) => page,
            Err(kube::Error::Api(status)) if status.code == 410 && begun < MOST_LISTS => {
                begun += 1;
                params = first.clone();
                take(Event::Init);
                continue;
            }
            Err(error) => return Err(format!("can't list {what}: {}", describe(&error))),
        };
        page.items.into_iter().for_each(|object| take(Event::InitApply(object)));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    take(Event::InitDone);
    Ok(())
}

/// The gateway that the operator has most likely been told: what is not given is what most bound
/// claims have. The address is in their status, which nobody else writes.
fn gateway(
    given: &GivenGateway,
    claims: &BTreeMap<ClaimRef, Claim>,
    consumers: &SecretCache,
) -> (Gateway, Vec<String>) {
    let statuses = claims.values().filter_map(|claim| claim.0.as_ref().ok()?.status.as_ref());
    let endpoints = statuses.filter_map(|status| Endpoint::parse(status.proxy_endpoint.as_deref()?).ok());
    let secrets = consumers.all();
    let texts = |key: &'static str| secrets.iter().filter_map(move |secret| secret.text(key).map(str::to_owned));
    let style = |text: String| AddressingStyle::ALL.into_iter().find(|style| style.as_str() == text);
    let mut assumed = Vec::new();
    let mut assume = |flag: &str, found: Option<String>| {
        assumed.push(match found {
            Some(value) => format!("{flag} is not given, and taken to be {value}, as most bound claims have it"),
            None => format!("{flag} is not given, and no bound claim shows it"),
        });
    };
    let endpoint = given.endpoint.clone().or_else(|| {
        let found = most_frequent(endpoints.map(|endpoint| endpoint.to_string()));
        assume("--gateway-endpoint", found.clone());
        found.and_then(|found| Endpoint::parse(&found).ok())
    });
    let endpoint = endpoint.unwrap_or_else(|| Endpoint::parse(NOWHERE).expect("it is a URL"));
    let region = given.region.clone().or_else(|| most_frequent(texts("AWS_REGION")));
    let styles = || most_frequent(texts("S3_ADDRESSING_STYLE")).and_then(style);
    let gateway = Gateway {
        endpoint,
        region: region.unwrap_or_else(|| "us-east-1".to_owned()),
        addressing_style: given.addressing_style.or_else(styles).unwrap_or(AddressingStyle::Path),
        ca: given.ca.clone(),
    };
    (gateway, assumed)
}

/// The most frequent; of several the first in order.
fn most_frequent(all: impl Iterator<Item = String>) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    let most = counts.values().max().copied()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(one, _)| one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_counts_and_of_several_the_first_in_order() {
        let of = |all: &[&str]| most_frequent(all.iter().map(|it| (*it).to_owned()));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["b", "a", "b"]).as_deref(), Some("b"));
        assert_eq!(of(&["b", "a"]).as_deref(), Some("a"));
    }
}
