//! A cache of the catalog of served resources. It is rebuilt after the served resources change.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use kube_sim::Cluster;
use kube_sim::json::json_text;
use parking_lot::Mutex;
use serde_json::Value;

use super::catalog::Catalog;
use super::openapi;

/// A catalog, and the documents built from it on first use.
pub(super) struct Known {
    revision: u64,
    pub(super) catalog: Catalog,
    documents: OnceLock<Documents>,
}

/// The OpenAPI index, and each document with its hash by its path.
pub(super) struct Documents {
    pub(super) index: Value,
    pub(super) by_path: BTreeMap<String, (String, Bytes)>,
}

impl Known {
    /// Returns the OpenAPI documents.
    pub(super) fn documents(&self, server_version: &str) -> &Documents {
        self.documents.get_or_init(|| {
            let by_path: BTreeMap<String, (String, Bytes)> = openapi::documents(&self.catalog, server_version)
                .into_iter()
                .map(|(path, document)| {
                    let text = json_text(&document);
                    (path, (openapi::hash(&text), text))
                })
                .collect();
            let index = openapi::index(by_path.iter().map(|(path, (hash, _))| (path.as_str(), hash.as_str())));
            Documents { index, by_path }
        })
    }
}

/// Keeps the catalog that was built last.
#[derive(Default)]
pub(super) struct Knowledge {
    last: Mutex<Option<Arc<Known>>>,
}

impl Knowledge {
    /// Returns the catalog of the resources that a cluster serves now.
    pub(super) fn of(&self, cluster: &Cluster) -> Arc<Known> {
        let mut last = self.last.lock();
        let state = cluster.read();
        if let Some(known) = last.as_ref().filter(|known| known.revision == state.revision()) {
            return known.clone();
        }
        let known = Known { revision: state.revision(), catalog: Catalog::read(&state), documents: OnceLock::new() };
        let known = Arc::new(known);
        *last = Some(known.clone());
        known
    }
}
