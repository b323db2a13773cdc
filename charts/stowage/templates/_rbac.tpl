{{/* Returns the name of a role of a part: the name of the part, with the role's purpose as a suffix if given. Arguments: (list $
"operator" kind namespace role). */}}
{{- define "stowage.roleName" -}}
{{- include "stowage.name" (list (index . 0) (index . 1)) -}}
{{- if gt (len .) 4 -}}-{{ index . 4 }}{{- end -}}
{{- end -}}

{{/* Returns the binding of a part to a role. Arguments: (list $ "operator" kind namespace role), as for stowage.roleName. */}}
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

{{/* Returns the beginning of a role of a part, up to its rules. Arguments: (list $ "operator" kind namespace role), as for
stowage.roleName. */}}
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


{{/* Returns the rules of the operator for the namespaces of claims: all namespaces, or each of those that it serves. */}}
{{- define "stowage.rightsInNamespaces" -}}
- apiGroups: [broker.stowage.io]
  resources: [bucketclaims, bucketaccesses]
  verbs: [get, list, watch, patch]
- apiGroups: [broker.stowage.io]
  resources: [bucketclaims/status, bucketaccesses/status]
  verbs: [patch]
# Required on clusters that restrict blockOwnerDeletion. The operator never calls this subresource.
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
