//! Live reads for ObjectBucketClaims (spec §9).

use std::fmt::Debug;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::core::DeserializeGuard;
use kube::{Api, Resource};

use crate::api::{BucketAccess, BucketClaim, BucketClass, Obc, ObjectBucket, ObjectBucketClaim};
use crate::kubernetes;
use crate::plan::Failure;
use crate::plan::obc::{Bucket, ObcAnswer, ObcLook, Shadow, ShadowKind, Told, bucket_names};

use super::Observer;

impl Observer {
    /// Answers a look of a pass over an ObjectBucketClaim.
    pub(crate) async fn answer_obc(&self, obc: &Obc, look: &ObcLook) -> Result<ObcAnswer, Failure> {
        let (client, namespace, name) = (&self.client, &obc.at.namespace, &obc.at.name);
        Ok(match look {
            ObcLook::Obc => {
                let api: Api<ObjectBucketClaim> = Api::namespaced(client.clone(), namespace);
                ObcAnswer::Obc(get(&api, name).await?.map(|raw| Box::new(Obc::parse(&raw))))
            }
            ObcLook::Namespace => ObcAnswer::Namespace(self.namespace_live(namespace).await?.is_some()),
            ObcLook::Class(class) => {
                let api: Api<StorageClass> = Api::all(client.clone());
                ObcAnswer::Class(get(&api, class).await?.map(|raw| BucketClass::parse(&raw)))
            }
            ObcLook::Buckets => {
                let api: Api<ObjectBucket> = Api::all(client.clone());
                let mut found = Vec::new();
                for name in bucket_names(obc) {
                    let bucket = get(&api, &name).await?.map(|raw| Bucket::parse(&raw));
                    found.push((name, bucket));
                }
                ObcAnswer::Buckets(found)
            }
            ObcLook::Shadow(kind, shadow) => {
                let found = match kind {
                    ShadowKind::Claim => {
                        let api = Api::namespaced(client.clone(), namespace);
                        get_decoded::<BucketClaim>(&api, shadow).await?.as_ref().map(Shadow::of_claim)
                    }
                    ShadowKind::Access => {
                        let api = Api::namespaced(client.clone(), namespace);
                        get_decoded::<BucketAccess>(&api, shadow).await?.as_ref().map(Shadow::of_access)
                    }
                };
                ObcAnswer::Shadow(*kind, found.map(Box::new))
            }
            ObcLook::ConfigMap => {
                let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
                ObcAnswer::ConfigMap(get(&api, name).await?.map(|raw| Told::parse(&raw)))
            }
        })
    }
}

/// Reads an object by name. A kind that the server doesn't know is an error, never absence.
async fn get<K: Resource + Clone + DeserializeOwned + Debug>(api: &Api<K>, name: &str) -> Result<Option<K>, Failure> {
    match api.get(name).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if kubernetes::is_absence_of(&error, name) => Ok(None),
        Err(error) => Err(kubernetes::failure(&error)),
    }
}

/// Like [`get`], for an object that may fail to decode, which is an error.
async fn get_decoded<K>(api: &Api<DeserializeGuard<K>>, name: &str) -> Result<Option<K>, Failure>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    match get(api, name).await? {
        None => Ok(None),
        Some(DeserializeGuard(Ok(raw))) => Ok(Some(raw)),
        Some(DeserializeGuard(Err(error))) => Err(Failure::Kubernetes(error.to_string())),
    }
}
