//! The watches of ObjectBucketClaims and of their related objects (spec §9). Nothing else waits for
//! them, as the CRDs may not be installed yet.

use std::fmt::Debug;
use std::sync::Arc;

use daemon::backoff::WatchBackoff;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::core::DeserializeGuard;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Resource, ResourceExt};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::api::{
    ClaimRef, OBC_PROVISIONER, ObjectBucket, ObjectBucketClaim, kept_class, kept_obc, kept_object_bucket,
};
use crate::cache::{ObcCaches, kept_config_map};
use crate::plan::obc::ObcSetting;

use super::feeds::{Feeds, PAGE, is_unknown_kind};
use super::objects::{Access, Claim, claim_ref, keep};
use super::shared::Shared;

/// Callback for an object that was added, changed or deleted. `None` follows a relist, which
/// doesn't name the deleted objects.
type Seen<K> = Box<dyn FnMut(Option<&DeserializeGuard<K>>) + Send>;

/// Starts the watches.
///
/// The watch of ObjectBucketClaims begins once the others have filled their caches, so that no pass
/// runs on partial caches.
pub(super) fn start(
    shared: &Arc<Shared>,
    feeds: &mut Feeds,
    provisioner: &str,
    (claims, accesses): (Store<Claim>, Option<Store<Access>>),
) -> Arc<ObcCaches> {
    let (obcs, obc_writer) = reflector::store();
    let (buckets, bucket_writer) = reflector::store();
    let (classes, class_writer) = reflector::store();
    let (config_maps, config_map_writer) = reflector::store();
    let caches = Arc::new(ObcCaches::new(
        obcs,
        buckets,
        classes,
        config_maps,
        claims,
        accesses,
        shared.actor.written_obcs.clone(),
    ));
    let client = &shared.client;
    let setting = ObcSetting {
        provisioner: provisioner.to_owned(),
        gateway: shared.config.gateway.clone(),
        operator: shared.observer.setting.operator(),
    };
    let labelled = Config::default().labels(&format!("{OBC_PROVISIONER}={}", setting.label())).page_size(PAGE);
    let filled = [
        follow::<ObjectBucket>(
            feeds,
            (Api::all(client.clone()), Config::default(), kept_object_bucket, bucket_writer),
            Vec::new(),
            buckets_seen(shared, &caches),
        ),
        follow::<StorageClass>(
            feeds,
            (Api::all(client.clone()), Config::default(), kept_class, class_writer),
            Vec::new(),
            waking(shared, &caches, |class: &DeserializeGuard<StorageClass>| Whose::OfClass(class.name_any())),
        ),
        follow::<ConfigMap>(
            feeds,
            (Api::all(client.clone()), labelled, kept_config_map, config_map_writer),
            Vec::new(),
            waking(shared, &caches, |map: &DeserializeGuard<ConfigMap>| Whose::One(Some(claim_ref(map)))),
        ),
    ];
    let own = (Api::all(client.clone()), Config::default().page_size(PAGE), kept_obc as fn(&_) -> _, obc_writer);
    follow::<ObjectBucketClaim>(feeds, own, filled.into(), obcs_seen(shared, &caches));
    caches
}

/// The ObjectBucketClaims that depend on an object.
enum Whose {
    One(Option<ClaimRef>),
    OfClass(String),
}

fn waking<K: 'static>(
    shared: &Arc<Shared>,
    caches: &Arc<ObcCaches>,
    whose: impl Fn(&DeserializeGuard<K>) -> Whose + Send + 'static,
) -> Seen<K> {
    let (shared, caches) = (shared.clone(), caches.clone());
    Box::new(move |object| {
        let claims = match object.map(&whose) {
            None => caches.of(|_| true),
            Some(Whose::One(claim)) => claim.into_iter().collect(),
            Some(Whose::OfClass(name)) => caches.of(|obc| obc.spec.storage_class_name.as_ref() == Some(&name)),
        };
        claims.iter().for_each(|claim| shared.wakes.obc(claim));
    })
}

/// Wakes the claims of a changed ObjectBucket, unless the event is the echo of our own write.
fn buckets_seen(shared: &Arc<Shared>, caches: &Arc<ObcCaches>) -> Seen<ObjectBucket> {
    let written = shared.actor.written_obcs.clone();
    let mut wake = waking(shared, caches, |bucket: &DeserializeGuard<ObjectBucket>| {
        let claim = bucket.0.as_ref().ok().map(|bucket| &bucket.spec.claim_ref);
        Whose::One(claim.map(|it| ClaimRef { namespace: it.namespace.clone(), name: it.name.clone() }))
    });
    Box::new(move |bucket| {
        match bucket {
            None => written.buckets.clear(),
            Some(bucket) if bucket.0.as_ref().is_ok_and(|bucket| written.buckets.is_echo(bucket)) => return,
            Some(_) => {}
        }
        wake(bucket);
    })
}

fn obcs_seen(shared: &Arc<Shared>, caches: &Arc<ObcCaches>) -> Seen<ObjectBucketClaim> {
    let (shared, caches) = (shared.clone(), caches.clone());
    Box::new(move |object| {
        let Some(object) = object else {
            caches.forget_what_went();
            return caches.of(|_| true).iter().for_each(|claim| shared.wakes.obc(claim));
        };
        let there = caches.obcs.get(&reflector::ObjectRef::from_obj(object));
        let uid = object.uid().unwrap_or_default();
        if there.is_none_or(|there| there.uid().as_ref() != Some(&uid)) {
            caches.forget(&claim_ref(object), &uid);
            shared.memory.pace.forget(&uid);
            shared.memory.backoff.reset(&uid);
            return;
        }
        if !object.0.as_ref().is_ok_and(|object| caches.written.obcs.is_echo(object)) {
            shared.wakes.obc(&claim_ref(object));
        }
    })
}

/// Parameters of a watch: API, watcher configuration, the function that trims an object, and the
/// store's writer.
type Way<K> = (Api<DeserializeGuard<K>>, Config, fn(&K) -> K, Writer<DeserializeGuard<K>>);

/// Starts a watch once the caches `after` are filled. The returned channel reports when its own
/// cache is filled.
fn follow<K>(
    feeds: &mut Feeds,
    (api, config, kept, writer): Way<K>,
    after: Vec<watch::Receiver<bool>>,
    mut seen: Seen<K>,
) -> watch::Receiver<bool>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let (sender, filled) = watch::channel(false);
    feeds.spawn(async move {
        for mut other in after {
            // An error means that the other task is gone, and then the process ends.
            let _ = other.wait_for(|filled| *filled).await;
        }
        let stream = watcher(api, config).modify(move |object| keep(object, kept)).reflect(writer);
        let mut stream = stream.backoff(WatchBackoff::new(Instant::now)).boxed();
        while let Some(event) = stream.next().await {
            match event {
                Ok(Event::Apply(object) | Event::Delete(object)) => seen(Some(&object)),
                Ok(Event::InitDone) => {
                    seen(None);
                    sender.send_replace(true);
                }
                Ok(Event::Init | Event::InitApply(_)) => {}
                Err(error) if is_unknown_kind(&error) => {
                    tracing::debug!(kind = %K::kind(&()), "the cluster doesn't know this kind yet");
                }
                Err(error) => tracing::warn!(%error, "watch failed, trying again"),
            }
        }
    });
    filled
}
