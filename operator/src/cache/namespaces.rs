//! Labels and UIDs of namespaces: for allow-lists by selector, and for who may have an access.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use parking_lot::Mutex;

use crate::api::NamespaceUid;
use crate::plan::Asker;

/// Labels and UID of every namespace.
#[derive(Default)]
pub(crate) struct NamespaceCache(Mutex<Namespaces>);

type Labels = BTreeMap<String, String>;

#[derive(Default)]
struct Namespaces {
    known: BTreeMap<String, (NamespaceUid, Labels)>,
    names: BTreeMap<NamespaceUid, String>,
    listing: Option<BTreeSet<String>>,
}

impl NamespaceCache {
    /// Takes in what the watch shows. Returns the names of namespaces whose labels changed, or that
    /// are others of their names.
    pub(crate) fn apply(&self, event: Event<PartialObjectMeta<Namespace>>) -> Vec<String> {
        let mut namespaces = self.0.lock();
        match event {
            Event::Init => {
                namespaces.listing = Some(BTreeSet::new());
                Vec::new()
            }
            Event::InitApply(namespace) | Event::Apply(namespace) => namespaces.put(&namespace),
            Event::Delete(namespace) => {
                namespaces.take(&namespace.name_any());
                Vec::new()
            }
            Event::InitDone => {
                let listed = namespaces.listing.take().unwrap_or_default();
                let gone: Vec<String> =
                    namespaces.known.keys().filter(|name| !listed.contains(*name)).cloned().collect();
                gone.iter().for_each(|name| namespaces.take(name));
                Vec::new()
            }
        }
    }

    /// Labels of a namespace, if it is known: one that the watch has not shown yet may have any.
    pub(crate) fn labels(&self, namespace: &str) -> Option<Labels> {
        self.0.lock().known.get(namespace).map(|(_, labels)| labels.clone())
    }

    /// The namespace of this name, if it is known.
    pub(crate) fn get(&self, namespace: &str) -> Option<Asker> {
        let namespaces = self.0.lock();
        namespaces.known.get(namespace).map(|(uid, labels)| asker(namespace, uid, labels))
    }

    /// The namespace of this UID, if it is known.
    pub(crate) fn of_uid(&self, uid: &NamespaceUid) -> Option<Asker> {
        let namespaces = self.0.lock();
        let name = namespaces.names.get(uid)?;
        namespaces.known.get(name).map(|(uid, labels)| asker(name, uid, labels))
    }
}

fn asker(namespace: &str, uid: &NamespaceUid, labels: &Labels) -> Asker {
    Asker { namespace: namespace.to_owned(), uid: uid.clone(), labels: labels.clone() }
}

impl Namespaces {
    fn put(&mut self, namespace: &PartialObjectMeta<Namespace>) -> Vec<String> {
        let name = namespace.name_any();
        if let Some(listing) = &mut self.listing {
            listing.insert(name.clone());
        }
        let now = (NamespaceUid::new(namespace.uid().unwrap_or_default()), namespace.labels().clone());
        if self.known.get(&name) == Some(&now) {
            return Vec::new();
        }
        self.take(&name);
        self.names.insert(now.0.clone(), name.clone());
        self.known.insert(name.clone(), now);
        vec![name]
    }

    fn take(&mut self, name: &str) {
        if let Some((uid, _)) = self.known.remove(name) {
            self.names.remove(&uid);
        }
    }
}
