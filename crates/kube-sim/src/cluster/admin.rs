//! Administrative access: changes by users and other programs in the cluster, without a client.
//!
//! [`Cluster::get`], [`Cluster::list`], [`Cluster::put`] and [`Cluster::delete`] are for test
//! harnesses and oracles. They address an object by group, version, plural, namespace and name, use
//! plain JSON, and give the answers of the API server. The other functions bypass its rules.

use std::sync::Arc;

use kube::core::{GroupVersionResource, Status};
use serde_json::Value;

use super::Cluster;
use crate::decode::{self, FieldValidation, Origin};
use crate::delete::{self, Deleted, Deletion};
use crate::kind::{Family, SharedKind};
use crate::managed;
use crate::meta;
use crate::options::{Ownership, Part, WriteOptions};
use crate::patch;
use crate::status::{self, Failure};
use crate::store::{Place, Store};
use crate::write;

/// Field manager for changes by these functions.
const MANAGER: &str = "somebody";

fn options() -> WriteOptions {
    WriteOptions::of(MANAGER)
}

/// Returns the kind of a resource name. If several groups have it, the first is returned.
fn kind(state: &Store, plural: &str) -> Option<SharedKind> {
    state.kinds().find(|kind| kind.plural == plural)
}

/// Returns the kind of a resource, if it is served.
fn served(state: &Store, resource: &GroupVersionResource) -> Result<SharedKind, Failure> {
    state.kind(&resource.group, &resource.version, &resource.resource).ok_or_else(status::no_such_resource)
}

/// Returns the kind of a resource, if it is served and writable through the API.
fn writable(state: &Store, resource: &GroupVersionResource) -> Result<SharedKind, Failure> {
    served(state, resource).and_then(|kind| match kind.family {
        Family::Definition => Err(status::method_not_allowed()),
        _ => Ok(kind),
    })
}

impl Cluster {
    /// Returns a stored object. The namespace is empty for cluster-scoped kinds.
    ///
    /// # Errors
    /// 404 if the object does not exist, or the resource is not served.
    pub fn get(&self, resource: &GroupVersionResource, namespace: &str, name: &str) -> Result<Arc<Value>, Box<Status>> {
        let state = self.lock();
        let kind = served(&state, resource)?;
        let found = state.get(&kind, &Place::new(namespace, name));
        found.map(|object| object.tree()).ok_or_else(|| status::not_found(&kind, name))
    }

    /// Returns the stored objects of a resource in order of namespace and name. An empty namespace
    /// means all.
    ///
    /// # Errors
    /// 404 if the resource is not served.
    pub fn list(&self, resource: &GroupVersionResource, namespace: &str) -> Result<Vec<Arc<Value>>, Box<Status>> {
        let state = self.lock();
        let kind = served(&state, resource)?;
        let inside = state.objects(&kind).filter(|(place, _)| namespace.is_empty() || place.namespace == namespace);
        Ok(inside.map(|(_, object)| object.tree()).collect())
    }

    /// Creates an object, or replaces the one of this name, including its status. Returns the
    /// stored object.
    ///
    /// UID and version in the given object are ignored. Type, namespace and name may be omitted. If
    /// both the status and the rest change, these are two writes, as they are through the API.
    ///
    /// # Errors
    /// Returns the answer of the API server to a PUT or POST with `fieldValidation=Strict`. 400 for
    /// an object that cannot be decoded, has unknown fields, or has another type, namespace or
    /// name. 404 if its namespace does not exist or the resource is not served. 403 in a
    /// terminating namespace. 405 for CustomResourceDefinitions, which [`Cluster::install_crd`]
    /// writes. 422 with every violated rule. If the object is rejected, nothing is written. If only
    /// its status is rejected, everything else is.
    pub fn put(
        &self,
        resource: &GroupVersionResource,
        namespace: &str,
        name: &str,
        mut object: Value,
    ) -> Result<Arc<Value>, Box<Status>> {
        let mut state = self.lock();
        let kind = writable(&state, resource)?;
        let place = Place::new(namespace, name);
        let options = WriteOptions { validation: FieldValidation::Strict, ..options() };
        let Some(fields) = object.as_object_mut() else {
            return Err(status::bad_request("the object provided is not an object"));
        };
        fields.entry("kind").or_insert_with(|| kind.kind.clone().into());
        decode::settle_envelope(&kind, namespace, &mut object)?;
        if meta::name(&object).is_empty() {
            meta::set(&mut object, "name", name.into());
        }
        decode::check_name(name, &object)?;
        meta::set(&mut object, "uid", Value::Null);
        let status = object.get("status").filter(|_| kind.status_subresource).cloned();
        let mut written = match state.get(&kind, &place).cloned() {
            Some(existing) => {
                meta::copy(&existing, &mut object, "resourceVersion");
                patch::replace(&mut state, &kind, &place, Part::Main, object, &options)?
            }
            None => {
                meta::set(&mut object, "resourceVersion", Value::Null);
                decode::shape(&kind, &mut object, options.validation, Origin::Body)?;
                write::create(&mut state, &kind, object, Ownership::Creator, &options)?
            }
        };
        if let Some(status) = status.filter(|_| state.get(&kind, &place).is_some()) {
            let mut object = Value::clone(&written.object);
            object["status"] = status;
            written = patch::replace(&mut state, &kind, &place, Part::Status, object, &options)?;
        }
        Ok(written.object.tree())
    }

    /// Deletes an object like the API server, and returns its last state.
    ///
    /// An object with finalizers is marked and waits for them. Dependants are left to
    /// [`Cluster::collect_garbage`].
    ///
    /// # Errors
    /// 404 if the object does not exist, or the resource is not served; 403 for a system namespace;
    /// 405 for CustomResourceDefinitions.
    pub fn delete(
        &self,
        resource: &GroupVersionResource,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Value>, Box<Status>> {
        let mut state = self.lock();
        let kind = writable(&state, resource)?;
        match delete::delete(&mut state, &kind, &Place::new(namespace, name), &Deletion::default())? {
            Deleted::Gone(last) => Ok(Arc::new(last)),
            Deleted::Marked(object) => Ok(object.tree()),
        }
    }

    /// Returns a stored object. If several groups have a resource of this name, the first is used.
    pub fn object(&self, plural: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let state = self.lock();
        let kind = kind(&state, plural)?;
        state.get(&kind, &Place::new(namespace, name)).map(|object| object.tree())
    }

    /// Advances the version by `writes`. The versions between belong to no object.
    pub fn pass_over_versions(&self, writes: u64) {
        self.lock().pass_over(writes);
    }

    /// Creates an object, given in complete form with its namespace. Returns `false` if the API
    /// server would reject it.
    pub fn create(&self, object: Value) -> bool {
        let mut state = self.lock();
        let types = (object["apiVersion"].as_str().unwrap_or_default(), object["kind"].as_str().unwrap_or_default());
        let Some(kind) = state.kind_named(types.0, types.1) else { return false };
        write::create(&mut state, &kind, object, Ownership::Creator, &options()).is_ok()
    }

    /// Changes an object except for its status. Returns `false` if it does not exist, or if the API
    /// server would reject the result.
    pub fn change(&self, plural: &str, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) -> bool {
        let mut state = self.lock();
        let Some(kind) = kind(&state, plural) else { return false };
        let Some(existing) = state.get(&kind, &Place::new(namespace, name)).cloned() else { return false };
        let mut object = Value::clone(&existing);
        change(&mut object);
        let now = state.now();
        managed::record_update(&kind, &existing, &mut object, MANAGER, "", &now);
        write::update(&mut state, &kind, &existing, object, Part::Main, &options()).is_ok()
    }

    /// Removes an object immediately, even if it has finalizers. Returns its last state if it
    /// existed.
    pub fn remove(&self, plural: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let mut state = self.lock();
        let kind = kind(&state, plural)?;
        state.remove(&kind, &Place::new(namespace, name)).map(|last| last.tree())
    }

    /// Replaces an object by a new one with the same name and content, except for the status. It
    /// has another UID, and no finalizers or owners. Returns `false` if there is no such object.
    pub fn recreate(&self, plural: &str, namespace: &str, name: &str) -> bool {
        let Some(last) = self.remove(plural, namespace, name) else { return false };
        let mut object = (*last).clone();
        for field in ["finalizers", "ownerReferences", "managedFields", "resourceVersion"] {
            meta::set(&mut object, field, Value::Null);
        }
        self.create(object)
    }
}
