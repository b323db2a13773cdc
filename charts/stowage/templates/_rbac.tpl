{{/* What binds a part to a role: of (list $ "operator" kind roleKind namespace). */}}
{{- define "stowage.binding" -}}
{{- $root := index . 0 -}}
{{- $part := list $root (index . 1) -}}
{{- $isCluster := eq (index . 2) "ClusterRole" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "ClusterRoleBinding" "RoleBinding" $isCluster }}
metadata:
  name: {{ include "stowage.name" $part }}
  {{- if not $isCluster }}
  namespace: {{ index . 3 }}
  {{- end }}
  labels:
    {{- include "stowage.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ index . 2 }}
  name: {{ include "stowage.name" $part }}
subjects:
  - kind: ServiceAccount
    name: {{ include "stowage.serviceAccount" $part }}
    namespace: {{ $root.Release.Namespace }}
{{- end -}}

{{/* What a role of a part begins with: of (list $ "operator" kind namespace). */}}
{{- define "stowage.role" -}}
{{- $root := index . 0 -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ index . 2 }}
metadata:
  name: {{ include "stowage.name" (list $root (index . 1)) }}
  {{- if eq (index . 2) "Role" }}
  namespace: {{ index . 3 }}
  {{- end }}
  labels:
    {{- include "stowage.labels" $root | nindent 4 }}
rules:
{{- end -}}
