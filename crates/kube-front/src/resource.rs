//! A resource as clients see it. Discovery, OpenAPI and tables are built from these.

use std::sync::Arc;

use kube_sim::kind::{Names, SharedKind};
use serde_json::Value;

use super::face::Face;

/// A kind of review: a question about callers and their permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Review {
    /// The identity of the caller.
    SelfSubject,
    /// The user of a token.
    Token,
    /// The caller's permission to do something.
    SelfSubjectAccess,
    /// The caller's rules in a namespace.
    SelfSubjectRules,
    /// A user's permission to do something.
    SubjectAccess,
    /// A user's permission to do something in a namespace.
    LocalSubjectAccess,
}

/// A printer column of a definition (`additionalPrinterColumns`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub(super) column_type: String,
    pub(super) format: String,
    /// Empty if there is none.
    pub(super) description: String,
    /// Above 0 for columns that only wide tables show.
    pub(super) priority: i64,
    pub(super) json_path: String,
}

/// The fields of an object with the values of `/scale`, as paths such as `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScalePaths {
    pub(super) spec: String,
    pub(super) status: String,
    /// Empty if there is none.
    pub(super) selector: String,
}

/// A part of an object with a separate path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subresource {
    pub(super) name: &'static str,
    /// Group, version and kind of the objects that are read and written at the path.
    pub(super) kind: (String, String, String),
    pub(super) verbs: &'static [&'static str],
}

/// The implementation behind a resource's requests.
#[derive(Clone, Debug)]
pub(super) enum Backing {
    /// Stored objects of this kind, converted by the face.
    Stored(SharedKind, Face),
    /// Reviews, which are answered and not stored.
    Review(Review),
}

/// One resource at one version.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    /// Empty for the core group.
    pub(super) group: String,
    pub(super) version: String,
    pub(super) plural: String,
    pub(super) kind: String,
    pub(super) names: Names,
    pub(super) namespaced: bool,
    pub(super) verbs: &'static [&'static str],
    pub(super) subresources: Vec<Subresource>,
    /// `None` if the kind has built-in columns.
    pub(super) columns: Option<Vec<Column>>,
    pub(super) scale: Option<ScalePaths>,
    pub(super) content: Content,
    pub(super) backing: Backing,
}

/// The schema of a resource's objects.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Anything,
    /// The schema of a built-in kind.
    Kind(SharedKind),
    /// The schema of events of the core group.
    CoreEvent,
    /// The schema of the version at this index of a definition.
    Definition(Arc<Value>, usize),
}

impl Resource {
    /// Returns true if the resource comes from a definition.
    pub(super) fn is_custom(&self) -> bool {
        matches!(&self.backing, Backing::Stored(kind, _) if kind.is_custom())
    }
}
