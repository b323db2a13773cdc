//! Manifests that worlds begin with: tenants' namespaces, admin credentials, a backend, and claims
//! on it. Scenarios and tests share them.

/// Manifests of the tenants' namespaces `team-a` and `team-b`, the admin Secret, opted in for every
/// endpoint that the administrator of a world may give a backend, and the backend `main` of
/// [`BackendStore::main`].
///
/// [`BackendStore::main`]: super::BackendStore::main
pub const BASE: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: team-b}}
---
apiVersion: v1
kind: Secret
metadata:
  name: s3-admin
  namespace: stowage-system
  labels: {broker.stowage.io/backend-credentials: 'true'}
  annotations: {broker.stowage.io/endpoints: 'http://s3.example:9000 http://second.example:9000 http://new.example:9000
    http://ailing.example:9000 http://third.example http://nowhere.example'}
stringData: {AWS_ACCESS_KEY_ID: STOWAGEADMIN, AWS_SECRET_ACCESS_KEY: stowage-admin-secret-key-for-demonstration}
---
apiVersion: broker.stowage.io/v1alpha1
kind: S3Backend
metadata: {name: main}
spec:
  endpoint: http://s3.example:9000
  adminCredentialsSecretRef: {name: s3-admin, namespace: stowage-system}
";

/// Returns the labels and annotations with which the owner of a Secret lets backends use it at
/// these endpoints, as fields of a flow mapping.
pub fn opted_in(endpoints: &str) -> String {
    format!(
        "labels: {{broker.stowage.io/backend-credentials: 'true'}}, \
         annotations: {{broker.stowage.io/endpoints: '{endpoints}'}}"
    )
}

/// Returns [`BASE`] with these fields in the spec of its backend, such as `adoptionPolicy: Any`.
pub fn base_with(spec: &str) -> String {
    BASE.replace("  adminCredentials", &format!("  {spec}\n  adminCredentials"))
}

/// Returns another backend with the same admin credentials and these additional spec fields, in
/// flow mapping form.
pub fn backend(name: &str, endpoint: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: broker.stowage.io/v1alpha1, kind: S3Backend, metadata: {{name: {name}}}, \
         spec: {{endpoint: '{endpoint}', {spec}{comma}\
         adminCredentialsSecretRef: {{name: s3-admin, namespace: stowage-system}}}}}}",
        comma = if spec.is_empty() { "" } else { ", " }
    )
}

/// Returns a claim on the backend `main`.
pub fn claim(namespace: &str, name: &str) -> String {
    claim_with(namespace, name, "")
}

/// Returns a claim on the backend `main` with these additional spec fields in flow mapping form,
/// such as `bucketName: x`.
pub fn claim_with(namespace: &str, name: &str, spec: &str) -> String {
    claim_on("main", namespace, name, spec)
}

/// Returns a claim on any backend, with these additional spec fields.
pub fn claim_on(backend: &str, namespace: &str, name: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: broker.stowage.io/v1alpha1, kind: BucketClaim, metadata: {{name: {name}, namespace: {namespace}}}, \
         spec: {{backendRef: {{name: {backend}}}, {spec}}}}}"
    )
}

/// Returns an access with these spec fields in flow mapping form.
pub fn access_with(namespace: &str, name: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: broker.stowage.io/v1alpha1, kind: BucketAccess, metadata: {{name: {name}, namespace: {namespace}}}, \
         spec: {{writeConnectionSecretToRef: {{name: {name}-key}}, {spec}}}}}"
    )
}

#[cfg(test)]
mod tests {
    use super::super::{ADMIN_ACCESS_KEY, ADMIN_SECRET_KEY, BackendStore, STORE_ENDPOINT, parse};
    use super::*;

    #[test]
    fn backends_are_given_the_keys_of_the_worlds_store() {
        let yaml = format!("{}\n---\n{}", base_with("adoptionPolicy: Any"), backend("twin", STORE_ENDPOINT, ""));
        let backends = BackendStore::of_manifests(&parse("base", &yaml).unwrap());
        let seen: Vec<_> =
            backends.iter().map(|it| (it.name.as_str(), it.endpoint.as_str(), it.keys.clone())).collect();
        let keys = Some((ADMIN_ACCESS_KEY.to_owned(), ADMIN_SECRET_KEY.to_owned()));
        assert_eq!(seen, [("main", STORE_ENDPOINT, keys.clone()), ("twin", STORE_ENDPOINT, keys)]);
    }

    #[test]
    fn a_claim_names_its_backend_and_what_it_asks_for() {
        let claims = parse("claims", &claim_on("second", "team-b", "late", "bucketName: x")).unwrap();
        let spec = serde_json::json!({"backendRef": {"name": "second"}, "bucketName": "x"});
        assert_eq!(claims[0].object.data["spec"], spec);
    }
}
