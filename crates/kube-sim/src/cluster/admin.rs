//! The admin handle: hands of people and other programs in the cluster, without a client.
//!
//! [`Cluster::get`], [`Cluster::list`], [`Cluster::put`] and [`Cluster::delete`] are what harnesses
//! and oracles need: an object by group, version, plural, namespace and name, as plain JSON, with
//! the answers that the API server would give. The others go around its rules.

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

/// Field manager of what is done by hand.
const MANAGER: &str = "somebody";

fn options() -> WriteOptions {
    WriteOptions::of(MANAGER)
}

/// Of several groups with such a resource, the first.
fn kind(state: &Store, plural: &str) -> Option<SharedKind> {
    state.kinds().find(|kind| kind.plural == plural)
}

/// The served kind of a resource.
fn served(state: &Store, resource: &GroupVersionResource) -> Result<SharedKind, Failure> {
    state.kind(&resource.group, &resource.version, &resource.resource).ok_or_else(status::no_such_resource)
}

/// The same, where the API can write it.
fn writable(state: &Store, resource: &GroupVersionResource) -> Result<SharedKind, Failure> {
    served(state, resource).and_then(|kind| match kind.family {
        Family::Definition => Err(status::method_not_allowed()),
        _ => Ok(kind),
    })
}

impl Cluster {
    /// A stored object. The namespace is empty for what lives in none.
    ///
    /// # Errors
    /// 404 if there is none, or the resource isn't served.
    pub fn get(&self, resource: &GroupVersionResource, namespace: &str, name: &str) -> Result<Arc<Value>, Box<Status>> {
        let state = self.lock();
        let kind = served(&state, resource)?;
        let found = state.get(&kind, &Place::new(namespace, name));
        found.map(|object| object.tree()).ok_or_else(|| status::not_found(&kind, name))
    }

    /// The stored objects of a resource in order of namespace and name; of an empty namespace those
    /// of all.
    ///
    /// # Errors
    /// 404 if the resource isn't served.
    pub fn list(&self, resource: &GroupVersionResource, namespace: &str) -> Result<Vec<Arc<Value>>, Box<Status>> {
        let state = self.lock();
        let kind = served(&state, resource)?;
        let inside = state.objects(&kind).filter(|(place, _)| namespace.is_empty() || place.namespace == namespace);
        Ok(inside.map(|(_, object)| object.tree()).collect())
    }

    /// Makes an object or replaces the one of its name, its status included, whatever UID and
    /// version the given one states. Where both its status and the rest change these are two
    /// writes, as they are through the API. Type, namespace and name may be left out. Returns the
    /// object as it is stored.
    ///
    /// # Errors
    /// What the API server answers to a PUT or POST with `fieldValidation=Strict`: 400 for what
    /// doesn't decode, has unknown fields, or states another type, namespace or name; 404 without
    /// its namespace or if the resource isn't served, 403 in a terminating namespace, 405 for
    /// CustomResourceDefinitions, which [`Cluster::install_crd`] writes, 422 with every broken
    /// rule. Nothing is written of an object that is refused; of one whose status is, all but that.
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

    /// Deletes an object as the API server does: one with finalizers is marked and waits for them,
    /// and what it owns is left to [`Cluster::collect_garbage`]. Returns its last state.
    ///
    /// # Errors
    /// 404 if there is none, or the resource isn't served; 403 for a namespace of the system; 405
    /// for CustomResourceDefinitions.
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

    /// A stored object, of the first group that has a resource of this name.
    pub fn object(&self, plural: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let state = self.lock();
        let kind = kind(&state, plural)?;
        state.get(&kind, &Place::new(namespace, name)).map(|object| object.tree())
    }

    /// Goes on as if there had been so many writes more: the versions between belong to nothing.
    pub fn pass_over_versions(&self, writes: u64) {
        self.lock().pass_over(writes);
    }

    /// Makes an object, in its complete form and with its namespace. `false` if the API server
    /// would refuse it.
    pub fn create(&self, object: Value) -> bool {
        let mut state = self.lock();
        let types = (object["apiVersion"].as_str().unwrap_or_default(), object["kind"].as_str().unwrap_or_default());
        let Some(kind) = state.kind_named(types.0, types.1) else { return false };
        write::create(&mut state, &kind, object, Ownership::Creator, &options()).is_ok()
    }

    /// Changes an object but for its status. `false` if there is none, or the API server would
    /// refuse the new one.
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

    /// Removes an object at once, finalizers or not; its last state if there was one.
    pub fn remove(&self, plural: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let mut state = self.lock();
        let kind = kind(&state, plural)?;
        state.remove(&kind, &Place::new(namespace, name)).map(|last| last.tree())
    }

    /// Makes an object of this name anew, as it was but for its status: another UID, nobody's
    /// finalizers and owners. `false` if there is none.
    pub fn recreate(&self, plural: &str, namespace: &str, name: &str) -> bool {
        let Some(last) = self.remove(plural, namespace, name) else { return false };
        let mut object = (*last).clone();
        for field in ["finalizers", "ownerReferences", "managedFields", "resourceVersion"] {
            meta::set(&mut object, field, Value::Null);
        }
        self.create(object)
    }
}
