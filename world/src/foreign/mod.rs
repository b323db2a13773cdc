//! Kinds of others that a world may have besides: ObjectBucketClaims and ObjectBuckets as there are
//! in clusters (spec §9), and storage classes.

use kube_sim::ReadDefinition;

use super::manifests;

/// Whose definitions of ObjectBucketClaims and ObjectBuckets there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Foreign {
    /// Those of Rook: everything is kept.
    Rook,
    /// Those of NooBaa: of a status the phase alone.
    NooBaa,
    /// Those of the chart.
    Own,
}

impl Foreign {
    /// The definitions, with that of storage classes.
    pub(super) fn definitions(self) -> Vec<ReadDefinition> {
        let mut all = self.object_buckets();
        all.extend(read(include_str!("storageclass.yaml")));
        all
    }

    /// The definitions of ObjectBucketClaims and ObjectBuckets alone.
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
