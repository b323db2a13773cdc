//! The state of ObjectBucketClaims and of their related objects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource};

use crate::api::{ClaimRef, OBC_PROVISIONER, Obc, kept_class, kept_obc, kept_object_bucket};
use crate::cache::{ObcCaches, kept_config_map};
use crate::controller::objects::{Access, Claim, ObcObject, claim_ref, keep};
use crate::kubernetes::describe;
use crate::plan::Setting;
use crate::plan::obc::{ObcSetting, provisioner_label, shadow_name};

use super::list::list_if_known;
use super::setup::Scope;

/// An object as a list delivers it, or the error if it can't be decoded.
type Guarded<K> = DeserializeGuard<K>;

/// The objects read so far.
pub(super) struct ReadObcs {
    provisioner: String,
    all: BTreeMap<ClaimRef, ObcObject>,
    obcs: Store<ObcObject>,
    buckets: Store<Guarded<crate::api::ObjectBucket>>,
    classes: Store<Guarded<StorageClass>>,
    config_maps: Store<Guarded<ConfigMap>>,
}

/// The state of ObjectBucketClaims.
pub(super) struct SeenObcs {
    pub(super) setting: Arc<ObcSetting>,
    pub(super) caches: ObcCaches,
    /// The requested ObjectBucketClaims.
    pub(super) all: BTreeMap<ClaimRef, ObcObject>,
}

impl ReadObcs {
    /// Reads the requested ObjectBucketClaims. The cluster may not have the kinds.
    ///
    /// # Errors
    /// An error message about what could not be read.
    pub(super) async fn read(client: &Client, scope: &Scope, provisioner: &str) -> Result<Self, String> {
        let mut all = BTreeMap::new();
        let (obcs, mut writer) = reflector::store();
        let mut take = |mut event: Event<ObcObject>| {
            if let Event::InitApply(obc) | Event::Apply(obc) = &mut event {
                keep(obc, kept_obc);
                all.insert(claim_ref(obc), obc.clone());
            }
            writer.apply_watcher_event(&event);
        };
        let listed: Option<Api<ObcObject>> = match (scope.is_whole(), &scope.namespace) {
            (true, _) => Some(Api::all(client.clone())),
            (false, Some(namespace)) => Some(Api::namespaced(client.clone(), namespace)),
            (false, None) => None,
        };
        if let Some(api) = listed {
            list_if_known("ObjectBucketClaims", "", async |it| api.list(&it).await, &mut take).await?;
        }
        for at in &scope.obcs {
            let api: Api<ObcObject> = Api::namespaced(client.clone(), &at.namespace);
            let found = api.get_opt(&at.name).await;
            let found = found.map_err(|error| format!("can't read ObjectBucketClaim {at}: {}", describe(&error)))?;
            found.into_iter().for_each(|obc| take(Event::Apply(obc)));
        }
        let buckets = around("ObjectBuckets", &Api::all(client.clone()), "", kept_object_bucket).await?;
        let classes = around("storage classes", &Api::all(client.clone()), "", kept_class).await?;
        let labelled = format!("{OBC_PROVISIONER}={}", provisioner_label(provisioner));
        let config_maps =
            around("ConfigMaps of ObjectBucketClaims", &Api::all(client.clone()), &labelled, kept_config_map).await?;
        Ok(Self { provisioner: provisioner.to_owned(), all, obcs, buckets, classes, config_maps })
    }

    /// Returns the names of the objects that do the work of the requested ones.
    pub(super) fn shadows(&self) -> BTreeSet<ClaimRef> {
        let parsed = self.all.values().filter_map(|obc| obc.0.as_ref().ok().map(Obc::parse));
        parsed.map(|obc| ClaimRef { name: shadow_name(&obc), namespace: obc.at.namespace }).collect()
    }

    /// Adds the claims and accesses that were read.
    pub(super) fn around(self, setting: &Setting, claims: Store<Claim>, accesses: Store<Access>) -> SeenObcs {
        let Self { provisioner, all, obcs, buckets, classes, config_maps } = self;
        let caches = ObcCaches::new(obcs, buckets, classes, config_maps, claims, Some(accesses), Arc::default());
        let setting = ObcSetting { provisioner, gateway: setting.gateway.clone(), operator: setting.operator() };
        SeenObcs { setting: Arc::new(setting), caches, all }
    }
}

/// Reads all objects of a kind that ObjectBucketClaims depend on.
async fn around<K>(
    what: &str,
    api: &Api<Guarded<K>>,
    labels: &str,
    kept: fn(&K) -> K,
) -> Result<Store<Guarded<K>>, String>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + 'static,
{
    let (store, mut writer) = reflector::store();
    let take = |mut event: Event<Guarded<K>>| {
        if let Event::InitApply(object) = &mut event {
            keep(object, kept);
        }
        writer.apply_watcher_event(&event);
    };
    list_if_known(what, labels, async |it| api.list(&it).await, take).await?;
    Ok(store)
}
