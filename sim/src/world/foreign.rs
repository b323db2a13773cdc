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
        let both = match self {
            Self::Rook => include_str!("foreign/rook.yaml"),
            Self::NooBaa => include_str!("foreign/noobaa.yaml"),
            Self::Own => include_str!("../../../charts/stowage/files/objectbucket.yaml"),
        };
        let documents = [both, include_str!("foreign/storageclass.yaml")]
            .into_iter()
            .flat_map(|text| manifests::parse("foreign definitions", text).expect("they are YAML"));
        let read = |document: manifests::Document| {
            let definition = document.object.try_parse().expect("it is a definition");
            ReadDefinition::new(&definition).expect("it is valid")
        };
        documents.map(read).collect()
    }
}
