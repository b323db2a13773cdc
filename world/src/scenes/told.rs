//! Descriptions of user actions for a history. They never contain values of Secrets.

use serde_json::Value;

use super::target::{Target, TargetKind};

/// Describes an apply: `a user applies Namespace team-a, BucketClaim team-a/photos {…}`. Claims are
/// shown with their spec, other objects by name.
pub(super) fn applied(yaml: &str) -> String {
    let read = crate::read_once(yaml);
    let Ok(documents) = read.as_ref() else {
        return "a user applies what can't be read".to_owned();
    };
    let told = documents.iter().map(|document| {
        let (object, kind) = (&document.object, document.object.types.as_ref().map_or("", |types| types.kind.as_str()));
        let place = [object.metadata.namespace.as_deref(), object.metadata.name.as_deref()];
        let place = place.into_iter().flatten().collect::<Vec<_>>().join("/");
        format!("{kind} {place}{}", if kind == "BucketClaim" { wish(&object.data["spec"]) } else { String::new() })
    });
    format!("a user applies {}", told.collect::<Vec<_>>().join(", "))
}

/// Formats the spec of a claim without its backend.
fn wish(spec: &Value) -> String {
    let mut spec = spec.as_object().cloned().unwrap_or_default();
    spec.remove("backendRef");
    if spec.is_empty() { String::new() } else { format!(" {}", Value::Object(spec)) }
}

/// Describes a patch: `a user patches bucketclaim team-a/photos: {…}`. Patches of Secrets are not
/// shown.
pub(super) fn patched(target: Target, patch: &Value) -> String {
    match target.kind {
        TargetKind::Secret => format!("a user patches {target}"),
        TargetKind::Claim
        | TargetKind::Backend
        | TargetKind::Namespace
        | TargetKind::Lease
        | TargetKind::Access
        | TargetKind::Obc
        | TargetKind::ConfigMap
        | TargetKind::StorageClass
        | TargetKind::Event => {
            format!("a user patches {target}: {patch}")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_applied_is_told_without_secrets() {
        let yaml = "
{apiVersion: v1, kind: Secret, metadata: {name: admin, namespace: system}, stringData: {key: tiger}}
---
apiVersion: broker.stowage.io/v1alpha1
kind: BucketClaim
metadata: {name: photos, namespace: team-a}
spec: {backendRef: {name: main}, deletionPolicy: Delete}
";
        assert_eq!(
            applied(yaml),
            "a user applies Secret system/admin, BucketClaim team-a/photos {\"deletionPolicy\":\"Delete\"}"
        );
    }

    #[test]
    fn the_patch_of_a_secret_is_not_told() {
        let target = Target { kind: TargetKind::Secret, namespace: "system", name: "admin" };
        let told = patched(target, &json!({"stringData": {"key": "tiger"}}));
        assert_eq!(told, "a user patches secret system/admin");
    }
}
