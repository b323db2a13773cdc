//! What is read about ObjectBucketClaims (spec §9).

use std::fmt::Debug;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::core::DeserializeGuard;
use kube::{Api, Resource};

use crate::api::{BucketClaim, BucketClass, Obc, ObjectBucket, ObjectBucketClaim};
use crate::kubernetes;
use crate::plan::Failure;
use crate::plan::obc::{Bucket, ObcAnswer, ObcLook, Shadow, Told, bucket_names};

use super::Observer;

impl Observer {
    /// Answers one question of a pass over an ObjectBucketClaim.
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
            ObcLook::Shadow(shadow) => {
                let api: Api<DeserializeGuard<BucketClaim>> = Api::namespaced(client.clone(), namespace);
                match get(&api, shadow).await? {
                    None => ObcAnswer::Shadow(None),
                    Some(DeserializeGuard(Ok(raw))) => ObcAnswer::Shadow(Some(Box::new(Shadow::parse(&raw)))),
                    Some(DeserializeGuard(Err(error))) => return Err(Failure::Kubernetes(error.to_string())),
                }
            }
            ObcLook::ConfigMap => {
                let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
                ObcAnswer::ConfigMap(get(&api, name).await?.map(|raw| Told::parse(&raw)))
            }
        })
    }
}

/// The object of this name. That the server doesn't know the kind is an error, never absence.
async fn get<K: Resource + Clone + DeserializeOwned + Debug>(api: &Api<K>, name: &str) -> Result<Option<K>, Failure> {
    match api.get(name).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if kubernetes::is_absence_of(&error, name) => Ok(None),
        Err(error) => Err(kubernetes::failure(&error)),
    }
}
