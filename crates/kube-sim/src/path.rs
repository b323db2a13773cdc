//! The [`FieldPath`] type: the path of a value in an object, formatted as in the API server's
//! errors.

use std::fmt;

/// A path such as `spec.rules[2].name`.
///
/// Each level of a validation adds its part to the borrowed path of its parent. Only an error
/// formats the whole, because nearly every value of nearly every object is valid.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FieldPath<'a> {
    /// Start of the path; empty for a whole object.
    Start(&'a str),
    /// A field of an object.
    Field(&'a FieldPath<'a>, &'a str),
    /// An entry of a map, written in brackets.
    Entry(&'a FieldPath<'a>, &'a str),
    /// An item of a list.
    Item(&'a FieldPath<'a>, usize),
}

impl FieldPath<'_> {
    /// Path of a whole object.
    pub(crate) const ROOT: Self = Self::Start("");

    pub(crate) fn is_root(&self) -> bool {
        matches!(self, Self::Start(""))
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(path) => f.write_str(path),
            Self::Field(base, name) if base.is_root() => f.write_str(name),
            Self::Field(base, name) => write!(f, "{base}.{name}"),
            Self::Entry(base, name) => write!(f, "{base}[{name}]"),
            Self::Item(base, index) => write!(f, "{base}[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FieldPath;

    #[test]
    fn a_path_reads_as_a_server_writes_it() {
        let rules = FieldPath::Field(&FieldPath::Start("spec"), "rules");
        let labels = FieldPath::Field(&FieldPath::Item(&rules, 2), "labels");
        assert_eq!(FieldPath::Entry(&labels, "a/b").to_string(), "spec.rules[2].labels[a/b]");
        assert_eq!(FieldPath::Field(&FieldPath::ROOT, "spec").to_string(), "spec");
        assert_eq!(FieldPath::ROOT.to_string(), "");
    }
}
