//! What an object looks like at another version than it is stored at, and how a request at that
//! version is put to the store.

use kube_sim::kind::Kind;
use serde_json::Value;

use super::events;

/// How the objects of a resource are shown at one of its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Face {
    /// As they are stored.
    Same,
    /// At another version of a custom resource, of this name: with another `apiVersion`
    /// (conversion `None`).
    Version(String),
    /// As events of the core group, of what is stored as `events.k8s.io`.
    CoreEvent,
}

impl Face {
    /// A body that a client sent, an object or a patch, in the form of what is stored.
    pub(super) fn inward(&self, kind: &Kind, body: &mut Value) {
        match self {
            Self::Same => {}
            Self::Version(_) if body["apiVersion"] == self.api_version(kind).as_str() => {
                body["apiVersion"] = kind.api_version().into();
            }
            Self::Version(_) => {}
            Self::CoreEvent => events::inward(body),
        }
    }

    /// What the store answers, an object, a list or a status, as the client is to see it.
    pub(super) fn outward(&self, kind: &Kind, answer: &mut Value) {
        if *self == Self::Same || answer["kind"] == "Status" {
            return;
        }
        let is_list =
            answer["kind"] == format!("{}List", kind.kind).as_str() || answer["kind"] == kind.names.list.as_str();
        match answer.get_mut("items").and_then(Value::as_array_mut) {
            Some(items) if is_list => items.iter_mut().for_each(|item| self.show(kind, item)),
            _ => {}
        }
        self.show(kind, answer);
    }

    fn show(&self, kind: &Kind, object: &mut Value) {
        match self {
            Self::Same => {}
            Self::Version(_) => {
                if object["apiVersion"] == kind.api_version().as_str() {
                    object["apiVersion"] = self.api_version(kind).into();
                }
            }
            Self::CoreEvent => events::outward(object),
        }
    }

    /// The `apiVersion` that clients see.
    pub(super) fn api_version(&self, kind: &Kind) -> String {
        match self {
            Self::Same => kind.api_version(),
            Self::Version(version) => group_version(&kind.group, version),
            Self::CoreEvent => "v1".to_owned(),
        }
    }
}

/// A group and a version as `apiVersion` has them.
pub(super) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
