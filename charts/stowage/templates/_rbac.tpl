{{/* The name of a role of a part: the part's own, and what the role is for where it has several in namespaces. */}}
{{- define "stowage.roleName" -}}
{{- include "stowage.name" (list (index . 0) (index . 1)) -}}
{{- if gt (len .) 4 -}}-{{ index . 4 }}{{- end -}}
{{- end -}}

{{/* What binds a part to a role: of (list $ "operator" kind namespace role), role as of stowage.roleName. */}}
{{- define "stowage.binding" -}}
{{- $root := index . 0 -}}
{{- $part := list $root (index . 1) -}}
{{- $isCluster := eq (index . 2) "ClusterRole" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "ClusterRoleBinding" "RoleBinding" $isCluster }}
metadata:
  name: {{ include "stowage.roleName" . }}
  {{- if not $isCluster }}
  namespace: {{ index . 3 }}
  {{- end }}
  labels:
    {{- include "stowage.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ index . 2 }}
  name: {{ include "stowage.roleName" . }}
subjects:
  - kind: ServiceAccount
    name: {{ include "stowage.serviceAccount" $part }}
    namespace: {{ $root.Release.Namespace }}
{{- end -}}

{{/* What a role of a part begins with: of (list $ "operator" kind namespace role), role as of stowage.roleName. */}}
{{- define "stowage.role" -}}
{{- $root := index . 0 -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ index . 2 }}
metadata:
  name: {{ include "stowage.roleName" . }}
  {{- if eq (index . 2) "Role" }}
  namespace: {{ index . 3 }}
  {{- end }}
  labels:
    {{- include "stowage.labels" $root | nindent 4 }}
rules:
{{- end -}}


{{/* What the operator may do in the namespaces of claims: in all, or in each of those that it serves. */}}
{{- define "stowage.rightsInNamespaces" -}}
- apiGroups: [broker.stowage.io]
  resources: [bucketclaims, bucketaccesses]
  verbs: [get, list, watch, patch]
- apiGroups: [broker.stowage.io]
  resources: [bucketclaims/status, bucketaccesses/status]
  verbs: [patch]
# Asked for by clusters that check who may set blockOwnerDeletion; no call of its own.
- apiGroups: [broker.stowage.io]
  resources: [bucketclaims/finalizers, bucketaccesses/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}
