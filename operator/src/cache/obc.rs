//! Caches of ObjectBucketClaims and their related objects (spec §9), and the last reported state of
//! each. No change is based on the caches alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::{ObjectRef, Store};
use parking_lot::Mutex;

use crate::api::{
    BucketAccess, BucketClaim, BucketClass, ClaimRef, OBC_PROVISIONER, Obc, ObjectBucket, ObjectBucketClaim, kept,
};
use crate::plan::obc::{Bucket, CONFIG_KEYS, ObcCached, Shadow, Told, bucket_names, provisioner_label, shadow_name};

use super::written::Written;

/// An object as a watch delivers it, or the error if it can't be decoded.
type Guarded<K> = DeserializeGuard<K>;

/// Our own writes, until the watches show them.
#[derive(Default)]
pub(crate) struct ObcsWritten {
    pub(crate) obcs: Written<ObjectBucketClaim>,
    pub(crate) buckets: Written<ObjectBucket>,
}

/// Caches that a pass over an ObjectBucketClaim reads.
pub(crate) struct ObcCaches {
    pub(crate) obcs: Store<Guarded<ObjectBucketClaim>>,
    pub(crate) buckets: Store<Guarded<ObjectBucket>>,
    pub(crate) classes: Store<Guarded<StorageClass>>,
    pub(crate) config_maps: Store<Guarded<ConfigMap>>,
    pub(crate) claims: Store<Guarded<BucketClaim>>,
    /// `None` if accesses are not served.
    pub(crate) accesses: Option<Store<Guarded<BucketAccess>>>,
    pub(crate) written: Arc<ObcsWritten>,
    /// The state that this process last reported, by UID.
    told: Mutex<BTreeMap<String, String>>,
}

impl ObcCaches {
    pub(crate) fn new(
        obcs: Store<Guarded<ObjectBucketClaim>>,
        buckets: Store<Guarded<ObjectBucket>>,
        classes: Store<Guarded<StorageClass>>,
        config_maps: Store<Guarded<ConfigMap>>,
        claims: Store<Guarded<BucketClaim>>,
        accesses: Option<Store<Guarded<BucketAccess>>>,
        written: Arc<ObcsWritten>,
    ) -> Self {
        Self { obcs, buckets, classes, config_maps, claims, accesses, written, told: Mutex::default() }
    }

    /// Returns the cached objects related to a claim.
    pub(crate) fn around(&self, obc: &Obc) -> ObcCached {
        let namespace = &obc.at.namespace;
        let bucket = |name: String| {
            let found = self.buckets.get(&ObjectRef::new(&name))?;
            found.0.as_ref().ok().map(|seen| Bucket::parse(&self.written.buckets.latest(seen)))
        };
        let class = obc.spec.storage_class_name.as_ref().and_then(|name| self.classes.get(&ObjectRef::new(name)));
        let shadow = shadow_name(obc);
        let claim = self.claims.get(&ObjectRef::new(&shadow).within(namespace));
        let accesses = self.accesses.as_ref();
        let access = accesses.and_then(|all| all.get(&ObjectRef::new(&shadow).within(namespace)));
        let config_map = self.config_maps.get(&ObjectRef::new(&obc.at.name).within(namespace));
        ObcCached {
            class: class.and_then(|it| it.0.as_ref().ok().map(BucketClass::parse)),
            buckets: bucket_names(obc).into_iter().filter_map(bucket).collect(),
            claim: claim.and_then(|it| it.0.as_ref().ok().map(Shadow::of_claim)),
            access: access.and_then(|it| it.0.as_ref().ok().map(Shadow::of_access)),
            config_map: config_map.and_then(|it| it.0.as_ref().ok().map(Told::parse)),
            told: self.told.lock().get(obc.uid()).cloned(),
        }
    }

    /// Returns the matching claims in sorted order: a store's own order differs in every run.
    pub(crate) fn of(&self, concerned: impl Fn(&ObjectBucketClaim) -> bool) -> Vec<ClaimRef> {
        let all = self.obcs.state();
        let concerned = all.iter().filter_map(|obc| obc.0.as_ref().ok()).filter(|obc| concerned(obc));
        let at =
            |obc: &ObjectBucketClaim| ClaimRef { namespace: obc.namespace().unwrap_or_default(), name: obc.name_any() };
        let mut claims: Vec<ClaimRef> = concerned.map(at).collect();
        claims.sort_unstable();
        claims
    }

    /// Returns the phases of the claims that this provisioner serves, by its label or by their
    /// class.
    pub(crate) fn phases(&self, provisioner: &str) -> Vec<Option<String>> {
        let label = provisioner_label(provisioner);
        let is_labelled = |obc: &ObjectBucketClaim| obc.labels().get(OBC_PROVISIONER) == Some(&label);
        let is_of_class = |obc: &ObjectBucketClaim| {
            let class = obc.spec.storage_class_name.as_ref().and_then(|name| self.classes.get(&ObjectRef::new(name)));
            class.is_some_and(|class| class.0.as_ref().is_ok_and(|class| class.provisioner == provisioner))
        };
        let all = self.obcs.state();
        let served =
            all.iter().filter_map(|obc| obc.0.as_ref().ok()).filter(|obc| is_labelled(obc) || is_of_class(obc));
        served.map(|obc| obc.status.as_ref().and_then(|status| status.phase.clone())).collect()
    }

    /// Records the state that was reported for a claim.
    pub(crate) fn told(&self, uid: &str, what: String) {
        self.told.lock().insert(uid.to_owned(), what);
    }

    /// Drops the state of a deleted claim.
    pub(crate) fn forget(&self, claim: &ClaimRef, uid: &str) {
        self.written.obcs.forget(&claim.namespace, &claim.name);
        self.told.lock().remove(uid);
    }

    /// Drops the state of claims deleted while the watch was down, after a relist.
    pub(crate) fn forget_what_went(&self) {
        let there: BTreeSet<String> = self.obcs.state().iter().filter_map(|obc| obc.uid()).collect();
        self.told.lock().retain(|uid, _| there.contains(uid));
        self.written.obcs.clear();
    }
}

/// Trims a ConfigMap to its controller and our own keys.
pub(crate) fn kept_config_map(of: &ConfigMap) -> ConfigMap {
    let mut metadata = kept::metadata(&of.metadata, &[crate::api::OBC_PROVISIONER], &[]);
    metadata.owner_references = kept::obc_controller(&of.metadata);
    let own = |(key, value): (&String, &String)| {
        let is_own = CONFIG_KEYS.contains(&key.as_str()) && value.len() <= kept::LONGEST;
        is_own.then(|| (key.clone(), value.clone()))
    };
    ConfigMap {
        metadata,
        data: of.data.as_ref().map(|all| all.iter().filter_map(own).collect()),
        ..ConfigMap::default()
    }
}
