//! CustomResourceDefinitions of other projects that a world may have: ObjectBucketClaims and
//! ObjectBuckets as found in clusters (spec §9), and storage classes.

use kube_sim::ReadDefinition;

use super::manifests;

/// Origin of the definitions of ObjectBucketClaims and ObjectBuckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Foreign {
    /// Rook's definitions, which keep all fields.
    Rook,
    /// NooBaa's definitions, which keep only the phase of a status.
    NooBaa,
    /// The chart's definitions.
    Own,
}

impl Foreign {
    /// Returns the definitions, including storage classes.
    pub(super) fn definitions(self) -> Vec<ReadDefinition> {
        let mut all = self.object_buckets();
        all.extend(read(include_str!("storageclass.yaml")));
        all
    }

    /// Returns only the definitions of ObjectBucketClaims and ObjectBuckets.
    pub fn object_buckets(self) -> Vec<ReadDefinition> {
        read(match self {
            Self::Rook => include_str!("rook.yaml"),
            Self::NooBaa => include_str!("noobaa.yaml"),
            Self::Own => include_str!("../../../charts/stowage/files/objectbucket.yaml"),
        })
    }
}

fn read(definitions: &str) -> Vec<ReadDefinition> {
    let documents = manifests::parse("foreign definitions", definitions).expect("they are YAML");
    let read = |document: manifests::Document| {
        let definition = document.object.try_parse().expect("it is a definition");
        ReadDefinition::new(&definition).expect("it is valid")
    };
    documents.into_iter().map(read).collect()
}
