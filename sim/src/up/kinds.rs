//! The kinds that a simulator serves besides those of every cluster: the operator's own and, if
//! enabled, ObjectBucketClaims with a storage class (spec §9).

use kube::ResourceExt;
use kube_sim::{Cluster, ReadDefinition};
use stowage_world::{Document, Foreign, PROVISIONER, parse};

/// Name of the default backend.
pub(super) const BACKEND: &str = "main";

/// The set of additional kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kinds {
    /// The operator's own.
    Own,
    /// ObjectBucketClaims and ObjectBuckets too.
    WithObjectBuckets,
}

impl Kinds {
    /// Makes a cluster serve these kinds.
    pub(super) fn serve(self, cluster: &Cluster) {
        let serve = |definition: &ReadDefinition| cluster.serve(definition).expect("these definitions are valid");
        stowage_world::definitions().iter().for_each(serve);
        if self == Self::WithObjectBuckets {
            Foreign::Own.object_buckets().iter().for_each(serve);
        }
    }

    /// Returns the operator's provisioner name in storage classes, if ObjectBucketClaims are
    /// served.
    pub(super) fn provisioner(self) -> Option<String> {
        (self == Self::WithObjectBuckets).then(|| PROVISIONER.to_owned())
    }

    /// Returns the manifests to apply at each start besides the given ones: a storage class for the
    /// first backend, unless there is one.
    ///
    /// # Errors
    /// Returns an error message if the manifest of the class can't be parsed.
    pub(super) fn class(self, given: &[Document]) -> Result<Vec<Document>, String> {
        let of = |wanted: &'static str| given.iter().filter(move |it| is_a(it, wanted));
        if self == Self::Own || of("StorageClass").next().is_some() {
            return Ok(Vec::new());
        }
        let backend = of("S3Backend").next().map_or_else(|| BACKEND.to_owned(), |it| it.object.name_any());
        let text = include_str!("storageclass.yaml").replace("BACKEND", &backend).replace("PROVISIONER", PROVISIONER);
        parse("the storage class", &text).map_err(|error| error.to_string())
    }
}

/// Returns true if a document is of this kind.
pub(super) fn is_a(document: &Document, kind: &str) -> bool {
    document.object.types.as_ref().is_some_and(|types| types.kind == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend_of(given: &str) -> Option<String> {
        let given = parse("given", given).expect("it is YAML");
        let class = Kinds::WithObjectBuckets.class(&given).expect("it is YAML").pop()?;
        Some(class.object.data["parameters"]["backend"].as_str().expect("a text").to_owned())
    }

    #[test]
    fn the_storage_class_leads_to_the_first_backend_unless_one_is_given() {
        let backend = "apiVersion: broker.stowage.io/v1alpha1\nkind: S3Backend\nmetadata: {name: fast}\n";
        let class = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: mine}\n";
        assert_eq!(backend_of("").as_deref(), Some(BACKEND));
        assert_eq!(backend_of(backend).as_deref(), Some("fast"));
        assert_eq!(backend_of(&format!("{backend}---\n{class}")), None);
        assert!(Kinds::Own.class(&[]).expect("nothing to read").is_empty());
    }
}
