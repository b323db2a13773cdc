//! Labels of namespaces, for allow-lists by selector.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use parking_lot::Mutex;

/// Labels of every namespace.
#[derive(Default)]
pub(crate) struct NamespaceCache(Mutex<Namespaces>);

type Labels = BTreeMap<String, String>;

#[derive(Default)]
struct Namespaces {
    labels: BTreeMap<String, Labels>,
    listing: Option<BTreeSet<String>>,
}

impl NamespaceCache {
    /// Takes in what the watch shows. Returns the names of namespaces whose labels changed.
    pub(crate) fn apply(&self, event: Event<PartialObjectMeta<Namespace>>) -> Vec<String> {
        let mut namespaces = self.0.lock();
        match event {
            Event::Init => {
                namespaces.listing = Some(BTreeSet::new());
                Vec::new()
            }
            Event::InitApply(namespace) | Event::Apply(namespace) => namespaces.put(&namespace),
            Event::Delete(namespace) => {
                namespaces.labels.remove(&namespace.name_any());
                Vec::new()
            }
            Event::InitDone => {
                let listed = namespaces.listing.take().unwrap_or_default();
                namespaces.labels.retain(|name, _| listed.contains(name));
                Vec::new()
            }
        }
    }

    /// Labels of a namespace, if it is known: one that the watch has not shown yet may have any.
    pub(crate) fn labels(&self, namespace: &str) -> Option<Labels> {
        let namespaces = self.0.lock();
        namespaces.labels.get(namespace).cloned()
    }
}

impl Namespaces {
    fn put(&mut self, namespace: &PartialObjectMeta<Namespace>) -> Vec<String> {
        let name = namespace.name_any();
        if let Some(listing) = &mut self.listing {
            listing.insert(name.clone());
        }
        let labels = namespace.labels().clone();
        let before = self.labels.insert(name.clone(), labels.clone());
        if before.as_ref() == Some(&labels) { Vec::new() } else { vec![name] }
    }
}
