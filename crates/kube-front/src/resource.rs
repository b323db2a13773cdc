//! A resource as clients are told of it: discovery, OpenAPI and tables are made of these.

use std::sync::Arc;

use kube_sim::kind::{Names, SharedKind};
use serde_json::Value;

use super::face::Face;

/// A question about callers and what they may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Review {
    /// Who the caller is.
    SelfSubject,
    /// Whose a token is.
    Token,
    /// Whether the caller may do something.
    SelfSubjectAccess,
    /// What the caller may do in a namespace.
    SelfSubjectRules,
    /// Whether somebody may do something.
    SubjectAccess,
    /// The same within a namespace.
    LocalSubjectAccess,
}

/// A column that a definition asks for (`additionalPrinterColumns`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub(super) column_type: String,
    pub(super) format: String,
    /// Empty for none.
    pub(super) description: String,
    /// Above 0 for what only wide tables show.
    pub(super) priority: i64,
    pub(super) json_path: String,
}

/// Where an object has the numbers that `/scale` shows, as paths such as `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScalePaths {
    pub(super) spec: String,
    pub(super) status: String,
    /// Empty where there is none.
    pub(super) selector: String,
}

/// A part of an object that has a path of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subresource {
    pub(super) name: &'static str,
    /// Group, version and kind of what is read and written there.
    pub(super) kind: (String, String, String),
    pub(super) verbs: &'static [&'static str],
}

/// What answers requests for a resource.
#[derive(Clone, Debug)]
pub(super) enum Backing {
    /// Stored objects of this kind, shown as the face has them.
    Stored(SharedKind, Face),
    /// Questions that are answered and kept nowhere.
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
    /// `None` where the kind has columns of its own.
    pub(super) columns: Option<Vec<Column>>,
    pub(super) scale: Option<ScalePaths>,
    pub(super) content: Content,
    pub(super) backing: Backing,
}

/// What objects of a resource may hold.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Anything,
    /// What the schema of a built-in kind says.
    Kind(SharedKind),
    /// The same of the events of the core group.
    CoreEvent,
    /// What a definition says of its version of this number.
    Definition(Arc<Value>, usize),
}

impl Resource {
    /// Whether a definition made it.
    pub(super) fn is_custom(&self) -> bool {
        matches!(&self.backing, Backing::Stored(kind, _) if kind.is_custom())
    }
}
