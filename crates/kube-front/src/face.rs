//! Conversion between the stored version of an object and the version of a request.

use kube_sim::kind::Kind;
use serde_json::Value;

use super::events;

/// The presentation of a resource's objects at one of its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Face {
    /// Unchanged: the version is the storage version.
    Same,
    /// Another version of a custom resource, with this name: only `apiVersion` differs (conversion
    /// `None`).
    Version(String),
    /// Events of the core group, which are stored as `events.k8s.io`.
    CoreEvent,
}

impl Face {
    /// Converts a client's request body, an object or a patch, to the stored version.
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

    /// Converts an answer of the store (an object, a list or a status) to the client's version.
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

    /// Returns the `apiVersion` that clients see.
    pub(super) fn api_version(&self, kind: &Kind) -> String {
        match self {
            Self::Same => kind.api_version(),
            Self::Version(version) => group_version(&kind.group, version),
            Self::CoreEvent => "v1".to_owned(),
        }
    }
}

/// Formats a group and a version as an `apiVersion`.
pub(super) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
