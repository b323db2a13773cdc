//! Scripts that run before a page and between its commands, for the steps that its reader has taken
//! before.

pub(super) const NAMESPACES: &str = "kubectl create namespace team-a
kubectl create namespace team-b";

pub(super) const CLAIM: &str = "kubectl apply -f - <<EOF
apiVersion: broker.stowage.io/v1alpha1
kind: BucketClaim
metadata: {name: photos, namespace: team-a}
spec: {backendRef: {name: main}}
EOF
kubectl wait -n team-a --for=condition=Ready bucketclaim/photos --timeout=30s";

/// Without CRDs, because the simulator has installed them.
pub(super) const RELEASE: &str = "helm install stowage charts/stowage --namespace stowage-system \
    --set crds.install=false --set gateway.endpoint=https://s3.example.org";

pub(super) const NOTHING_INSTALLED: &str = "kubectl delete namespace stowage-system
kubectl delete crd bucketaccesses.broker.stowage.io bucketclaims.broker.stowage.io s3backends.broker.stowage.io";

/// The CRDs of the Prometheus operator, with only the parts that are needed here.
pub(super) const OF_PROMETHEUS: &str = "for kind in ServiceMonitor PrometheusRule; do
    kubectl apply -f - <<EOF
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ${kind,,}s.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: $kind, plural: ${kind,,}s}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
EOF
done
kubectl wait --for=condition=Established --all crd --timeout=30s";

/// The Lease, which a single operator like the simulator's doesn't create.
pub(super) const LEASE: &str = "kubectl apply -f - <<EOF
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: stowage-operator, namespace: stowage-system}
spec: {holderIdentity: stowage-operator-0, leaseDurationSeconds: 45}
EOF";

/// The backend that the page edits, as in the examples.
pub(super) const OTHER_BACKEND: &str = "kubectl apply -f examples/10-backend.yaml
kubectl wait s3backend/main --for=jsonpath='{.status.observedGeneration}'=2 --timeout=30s";

/// Applies the page's claim and access again. An access may use renewed consent only after a
/// minute.
pub(super) const SHARED_AGAIN: &str = "stowage-sim clock advance 2m
kubectl apply -f manifest-1.yaml -f manifest-2.yaml
kubectl wait -n team-b bucketaccess/thumbnails --for=condition=Ready --timeout=30s";

/// An access without its owner's consent.
pub(super) const READER: &str = "kubectl apply -f - <<EOF
apiVersion: broker.stowage.io/v1alpha1
kind: BucketAccess
metadata: {name: reader, namespace: team-b}
spec:
  buckets: [{claimRef: {namespace: team-a, name: photos}, mode: ReadOnly}]
  writeConnectionSecretToRef: {name: reader}
EOF";

pub(super) const PLANNED: &str = "mkdir -p ~/.local/bin
kubectl create namespace team-c
kubectl apply -f - <<EOF
apiVersion: broker.stowage.io/v1alpha1
kind: BucketClaim
metadata: {name: reports, namespace: team-a}
spec: {backendRef: {name: main}}
---
apiVersion: objectbucket.io/v1alpha1
kind: ObjectBucketClaim
metadata: {name: charts, namespace: team-c}
spec: {storageClassName: buckets, generateBucketName: charts}
EOF
kubectl wait -n team-a --for=condition=Ready bucketclaim/reports --timeout=30s";

/// Installs the kubectl plugin as the page about it says.
pub(super) const PLUGIN: &str = "mkdir -p ~/.local/bin
ln -s \"$(command -v stowage-operator)\" ~/.local/bin/kubectl-stowage";

pub(super) const OBC: &str = "kubectl apply -f - <<EOF
apiVersion: objectbucket.io/v1alpha1
kind: ObjectBucketClaim
metadata: {name: photos, namespace: team-a}
spec: {storageClassName: buckets, generateBucketName: photos}
EOF";

pub(super) const BOUND: &str = "kubectl wait -n team-a obc/photos --for=jsonpath='{.status.phase}'=Bound --timeout=30s";

pub(super) const ACCESS_OF_OBC: &str = "kubectl apply -f - <<EOF
apiVersion: broker.stowage.io/v1alpha1
kind: BucketAccess
metadata: {name: obc-photos, namespace: team-a}
spec:
  buckets: [{bucketRef: {backend: main, name: archive}, mode: ReadOnly}]
  writeConnectionSecretToRef: {name: archive}
EOF";

pub(super) const CLAIM_TO_APPLY: &str = "cat > claims.yaml <<EOF
apiVersion: broker.stowage.io/v1alpha1
kind: BucketClaim
metadata: {name: photos, namespace: default}
spec: {backendRef: {name: main}}
EOF";

/// An installation by kustomize, as the page about the chart describes it.
pub(super) const BY_KUSTOMIZE: &str = "helm uninstall stowage --namespace stowage-system --wait
kubectl apply -k kind-config/usage
kubectl apply -k kind-config/operator
kubectl apply -k kind-config/gateway";

/// An access to the claim, with its owner's consent.
pub(super) const SHARED_READER: &str = "kubectl patch bucketclaim photos -n team-a --type merge \
    -p '{\"spec\":{\"sharing\":[{\"maxMode\":\"ReadOnly\",\"namespaces\":{\"names\":[\"team-b\"]}}]}}'
kubectl apply -f - <<EOF
apiVersion: broker.stowage.io/v1alpha1
kind: BucketAccess
metadata: {name: reader, namespace: team-b}
spec:
  buckets: [{claimRef: {namespace: team-a, name: photos}, mode: ReadOnly}]
  writeConnectionSecretToRef: {name: reader}
EOF
kubectl wait -n team-b bucketaccess/reader --for=condition=Ready --timeout=30s";

/// Waits until claim and access have new keys. A claim that was revoked before waits a minute. The
/// access is revoked by two commands, which count as one within the same second.
pub(super) const ALL_REVOKED: &str = "stowage-sim clock advance 2m
asked=\"$(kubectl get -n team-a bucketclaim photos -o jsonpath='{.metadata.annotations.broker\\.stowage\\.io/revoke}')\"
kubectl wait -n team-a bucketclaim/photos --for=jsonpath='{.status.handledRevokeRequest}'=\"$asked\" --timeout=30s
timeout 30 sh -c 'until test \"$(kubectl get -n team-b bucketaccess reader -o jsonpath={.status.rotationGeneration})\" -ge 2; do sleep 0.5; done'";

/// A claim without an operator: it has the finalizer and belongs to another operator.
pub(super) const LEFT_BEHIND: &str = "kubectl apply --server-side -f crds/
kubectl wait --for=condition=Established --all crd --timeout=30s
kubectl apply -f - <<EOF
apiVersion: broker.stowage.io/v1alpha1
kind: BucketClaim
metadata:
  name: films
  namespace: team-a
  annotations: {broker.stowage.io/served-by: gone/gone}
  finalizers: [broker.stowage.io/bucketclaim-protection]
spec: {backendRef: {name: main}}
EOF
kubectl delete bucketclaim films -n team-a --wait=false";
