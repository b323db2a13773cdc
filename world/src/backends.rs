//! Stores of a world, and their credentials.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use s3_sim::{Dialect, Store};
use seeded::WallClock;
use serde::de::DeserializeOwned;
use stowage_operator::api::{AdminCredentialsSecretRef, Endpoint, S3Backend};

use crate::installation::{ADMIN_ACCESS_KEY, ADMIN_ACCOUNT, ADMIN_SECRET_KEY, STORE_ENDPOINT};
use crate::manifests::Document;
use crate::transport::authority;

/// The store of a backend.
#[derive(Clone, Debug)]
pub struct BackendStore {
    /// Name of its S3Backend.
    pub name: String,
    /// Endpoint at which the operator reaches the store. Requests are path-style only.
    pub endpoint: Endpoint,
    /// Region of the store.
    pub region: String,
    /// Account that owns the backend's buckets.
    pub account: String,
    /// Admin credentials, access key id and secret key. Without them the store refuses the
    /// operator.
    pub keys: Option<(String, String)>,
}

impl BackendStore {
    /// Returns the backend `main` at [`STORE_ENDPOINT`].
    pub fn main() -> Self {
        Self {
            name: "main".to_owned(),
            endpoint: Endpoint::parse(STORE_ENDPOINT).expect("it is a URL"),
            region: "us-east-1".to_owned(),
            account: ADMIN_ACCOUNT.to_owned(),
            keys: Some((ADMIN_ACCESS_KEY.to_owned(), ADMIN_SECRET_KEY.to_owned())),
        }
    }

    /// Returns the stores for manifests: one per S3Backend. It accepts the admin credentials in the
    /// backend's Secret, if the manifests have it. Equal credentials belong to one account.
    /// Malformed documents are skipped, because the API server refuses them.
    pub fn of_manifests(documents: &[Document]) -> Vec<Self> {
        let backends: Vec<S3Backend> = of_kind(documents, "S3Backend");
        let secrets: Vec<Secret> = of_kind(documents, "Secret");
        let store = |backend: &S3Backend| {
            let reference = &backend.spec.admin_credentials_secret_ref;
            let secret = secrets.iter().find(|secret| {
                secret.metadata.name.as_ref() == Some(&reference.name)
                    && secret.metadata.namespace.as_ref() == Some(&reference.namespace)
            });
            Self::of(backend, secret)
        };
        backends.iter().filter_map(store).collect()
    }

    /// Returns the store of a backend, which accepts the credentials in `secret`, if any; `None` if
    /// the backend is malformed.
    pub fn of(backend: &S3Backend, secret: Option<&Secret>) -> Option<Self> {
        let keys = secret.and_then(|secret| admin_keys(secret, &backend.spec.admin_credentials_secret_ref));
        Some(Self {
            name: backend.metadata.name.clone()?,
            endpoint: Endpoint::parse(&backend.spec.endpoint).ok()?,
            region: backend.spec.region.clone(),
            account: keys.as_ref().map_or_else(|| ADMIN_ACCOUNT.to_owned(), |(id, _)| id.clone()),
            keys,
        })
    }
}

/// Returns the well-formed documents of a kind.
fn of_kind<T: DeserializeOwned>(documents: &[Document], kind: &str) -> Vec<T> {
    let wanted = |document: &&Document| document.object.types.as_ref().is_some_and(|types| types.kind == kind);
    let typed = |document: &Document| serde_json::from_value(serde_json::to_value(&document.object).ok()?).ok();
    documents.iter().filter(wanted).filter_map(typed).collect()
}

fn admin_keys(secret: &Secret, reference: &AdminCredentialsSecretRef) -> Option<(String, String)> {
    let field = |name: &str| {
        let text = secret.string_data.as_ref().and_then(|data| data.get(name)).cloned();
        let data = || String::from_utf8(secret.data.as_ref()?.get(name)?.0.clone()).ok();
        text.or_else(data)
    };
    Some((field(&reference.access_key_field)?, field(&reference.secret_key_field)?))
}

/// Creates one store per endpoint, in the region of the first backend that names it.
pub(super) fn stores(backends: &[BackendStore], dialect: &Dialect, clock: &WallClock) -> BTreeMap<Endpoint, Store> {
    let mut stores: BTreeMap<Endpoint, Store> = BTreeMap::new();
    for backend in backends {
        let dialect = || Dialect { region: backend.region.clone(), ..dialect.clone() };
        let spelled = |(there, _): &(&Endpoint, &Store)| there.is_alias_of(&backend.endpoint);
        let known = stores.iter().find(spelled).map(|(_, store)| Store::clone(store));
        let store = || known.unwrap_or_else(|| Store::new(clock.clone(), dialect()));
        let store = stores.entry(backend.endpoint.clone()).or_insert_with(store);
        if let Some((id, secret)) = &backend.keys {
            store.add_account(&backend.account, id, secret);
        }
    }
    stores
}

/// Returns the account that owns the operator's buckets, by host and port of the store. If several
/// backends name the store, the first one counts.
pub(super) fn accounts(backends: &[BackendStore]) -> BTreeMap<String, String> {
    let mut accounts = BTreeMap::new();
    for backend in backends {
        accounts.entry(authority(backend.endpoint.as_str())).or_insert_with(|| backend.account.clone());
    }
    accounts
}

#[cfg(test)]
mod tests {
    use seeded::VirtualClock;

    use super::*;
    use crate::manifests::parse;

    const YAML: &str = "
apiVersion: v1
kind: Secret
metadata: {name: admin, namespace: system}
stringData: {id: key}
data: {secret: c2VjcmV0}
---
apiVersion: broker.stowage.io/v1alpha1
kind: S3Backend
metadata: {name: fast}
spec:
  endpoint: HTTP://Store.example:80/
  region: eu-central-1
  adminCredentialsSecretRef: {name: admin, namespace: system, accessKeyField: id, secretKeyField: secret}
---
apiVersion: broker.stowage.io/v1alpha1
kind: S3Backend
metadata: {name: locked-out}
spec:
  endpoint: http://store.example
  adminCredentialsSecretRef: {name: other, namespace: system}
---
{apiVersion: broker.stowage.io/v1alpha1, kind: S3Backend, metadata: {name: malformed}, spec: {}}
";

    #[test]
    fn manifests_say_which_stores_there_are_and_who_may_use_them() {
        let backends = BackendStore::of_manifests(&parse("f.yaml", YAML).unwrap());
        let seen: Vec<_> = backends.iter().map(|b| (b.name.as_str(), b.endpoint.as_str(), b.keys.clone())).collect();
        let keys = ("key".to_owned(), "secret".to_owned());
        assert_eq!(seen, [("fast", "http://store.example", Some(keys)), ("locked-out", "http://store.example", None)]);
    }

    #[tokio::test]
    async fn backends_of_one_endpoint_share_its_store() {
        let backends = BackendStore::of_manifests(&parse("f.yaml", YAML).unwrap());
        let stores = stores(&backends, &Dialect::default(), &VirtualClock::new().clock());
        let regions: Vec<_> = stores.values().map(|store| store.dialect().region.clone()).collect();
        assert_eq!(regions, ["eu-central-1"]);
    }
}
