//! Types of the table.

use serde::Deserialize;
use serde_json::Value;

/// Kind of a case's object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Kind {
    /// `BucketClaim`, in a namespace.
    BucketClaim,
    /// `S3Backend`, cluster-scoped.
    S3Backend,
    /// `BucketAccess`, in a namespace.
    BucketAccess,
}

impl Kind {
    /// Returns the kind as in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BucketClaim => "BucketClaim",
            Self::S3Backend => "S3Backend",
            Self::BucketAccess => "BucketAccess",
        }
    }

    /// Returns the resource name in paths.
    pub fn plural(self) -> &'static str {
        match self {
            Self::BucketClaim => "bucketclaims",
            Self::S3Backend => "s3backends",
            Self::BucketAccess => "bucketaccesses",
        }
    }

    /// Returns true if its objects are in namespaces.
    pub fn is_namespaced(self) -> bool {
        match self {
            Self::BucketClaim | Self::BucketAccess => true,
            Self::S3Backend => false,
        }
    }
}

/// The `fieldValidation` parameter of a case's requests: how the server treats fields that the
/// schema does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum FieldValidation {
    /// Refuse the request.
    #[default]
    Strict,
    /// Drop the fields with a warning.
    Warn,
    /// Drop the fields silently.
    Ignore,
}

impl FieldValidation {
    /// Returns the value of the query parameter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "Strict",
            Self::Warn => "Warn",
            Self::Ignore => "Ignore",
        }
    }
}

/// The two writes of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// The POST.
    Create,
    /// The PUT or PATCH after it.
    Update,
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Update => "update",
        })
    }
}

/// Second request of a case, after the POST.
#[derive(Clone, Debug, PartialEq)]
pub enum SecondWrite {
    /// No request.
    Nothing,
    /// A PUT of this whole object.
    Put(Value),
    /// A JSON merge patch.
    MergePatch(Value),
}

/// CustomResourceDefinitions that the server has. The project's own have better messages for some
/// refusals than the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// Definitions generated from this project's types.
    Project,
    /// Handwritten definitions that the project's must agree with.
    Reference,
}

/// Expected answer to the last request of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// The request succeeds.
    Accepted {
        /// Part of the object in the answer. `{}` in it means an empty object; lists must be equal.
        stored: Value,
        /// Paths that are absent in the answer's object, such as `spec.quota`.
        absent: Vec<String>,
        /// One substring per warning, in any order.
        warnings: Vec<String>,
    },
    /// The request is refused.
    Refused {
        /// The request.
        on: Request,
        /// HTTP status: 422 (schema, CEL) or 400 (not decodable, unknown fields).
        code: u16,
        /// 422: field of one of the causes. 400: text by which the message names the field.
        field: String,
        /// Messages with [`Rules::Project`].
        project: Refusal,
        /// Messages with [`Rules::Reference`].
        reference: Refusal,
    },
}

/// Messages of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The essential part of the message.
    pub message: String,
    /// Fields of all other causes, in any order.
    pub also: Vec<String>,
}

/// A case: one or two writes and the expected answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Row")]
pub struct Case {
    /// Description of the case, in a sentence.
    pub name: String,
    /// Kind of the object.
    pub kind: Kind,
    /// The object to POST; `apiVersion`, `kind`, name and namespace are filled in where absent.
    pub create: Value,
    /// True to DELETE the object after its creation (its finalizer keeps it).
    pub deleting: bool,
    /// The second write.
    pub then: SecondWrite,
    /// Field validation of both writes.
    pub field_validation: FieldValidation,
    /// Expected answer to the last write.
    pub expected: Expected,
}

impl Case {
    /// Returns true if these definitions have the kind.
    pub fn is_about(&self, rules: Rules) -> bool {
        match rules {
            Rules::Project => true,
            Rules::Reference => self.kind != Kind::BucketAccess,
        }
    }

    /// Returns the request that the expectation is about, if all before it succeed.
    pub fn last(&self) -> Request {
        if self.then == SecondWrite::Nothing { Request::Create } else { Request::Update }
    }
}

/// Returns the table of this project.
///
/// # Panics
/// Never: the table is part of this crate, and a test parses it.
pub fn cases() -> Vec<Case> {
    parse(include_str!("table.yaml")).expect("the table of this crate is well formed")
}

/// Parses a table.
///
/// # Errors
/// Returns an error with the location if the text is no YAML, or if a case is incomplete or
/// contradicts itself.
pub fn parse(text: &str) -> Result<Vec<Case>, String> {
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}

/// A case as written in the table.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Row {
    name: String,
    kind: Kind,
    create: Value,
    #[serde(default)]
    deleting: bool,
    update: Option<Value>,
    patch: Option<Value>,
    #[serde(default)]
    field_validation: FieldValidation,
    #[serde(default)]
    accepted: bool,
    #[serde(default)]
    stored: Value,
    #[serde(default)]
    absent: Vec<String>,
    #[serde(default)]
    warnings: Vec<String>,
    refused: Option<RefusedRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RefusedRow {
    on: Request,
    code: u16,
    field: String,
    message: String,
    #[serde(default)]
    also: Vec<String>,
    reference: Option<ReferenceRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReferenceRow {
    message: String,
    #[serde(default)]
    also: Vec<String>,
}

impl TryFrom<Row> for Case {
    type Error = String;

    fn try_from(row: Row) -> Result<Self, String> {
        let then = match (row.update, row.patch) {
            (None, None) => SecondWrite::Nothing,
            (Some(object), None) => SecondWrite::Put(object),
            (None, Some(patch)) => SecondWrite::MergePatch(patch),
            (Some(_), Some(_)) => return Err(format!("{:?} has both update and patch", row.name)),
        };
        let last = if then == SecondWrite::Nothing { Request::Create } else { Request::Update };
        let expected = match row.refused {
            None if row.accepted => {
                Expected::Accepted { stored: row.stored, absent: row.absent, warnings: row.warnings }
            }
            Some(refused) if !row.accepted && refused.on == last => refused.into(),
            Some(refused) if !row.accepted => {
                return Err(format!("{:?} is refused on {}, which is not its last request", row.name, refused.on));
            }
            _ => return Err(format!("{:?} must be either accepted or refused", row.name)),
        };
        let Row { name, kind, create, deleting, field_validation, .. } = row;
        Ok(Self { name, kind, create, deleting, then, field_validation, expected })
    }
}

impl From<RefusedRow> for Expected {
    fn from(row: RefusedRow) -> Self {
        let project = Refusal { message: row.message, also: row.also };
        let reference = match row.reference {
            Some(other) => Refusal { message: other.message, also: other.also },
            None => project.clone(),
        };
        Self::Refused { on: row.on, code: row.code, field: row.field, project, reference }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_is_well_formed_and_names_each_case_once() {
        let cases = cases();
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len());
        for kind in [Kind::BucketClaim, Kind::S3Backend, Kind::BucketAccess] {
            for last in [Request::Create, Request::Update] {
                let refused = |case: &&Case| matches!(case.expected, Expected::Refused { .. });
                let of = || cases.iter().filter(|case| case.kind == kind && case.last() == last);
                assert!(of().any(|case| refused(&case)), "no bad {} on {last}", kind.as_str());
                assert!(of().any(|case| !refused(&case)), "no good {} on {last}", kind.as_str());
            }
        }
    }

    #[test]
    fn a_case_that_expects_nothing_or_twice_is_refused() {
        let error = |case: &str| parse(&format!("- {{name: x, kind: S3Backend, create: {{}}, {case}}}")).unwrap_err();
        assert!(error("deleting: false").contains("either accepted or refused"));
        assert!(error("accepted: true, update: {}, patch: {}").contains("both update and patch"));
        let refused = "refused: {on: update, code: 422, field: spec, message: m}";
        assert!(error(refused).contains("not its last request"));
        assert!(error("acepted: true").contains("acepted"));
    }
}
