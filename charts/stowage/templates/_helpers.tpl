{{/* The name that all names begin with. */}}
{{- define "stowage.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The name of a part: of (list $ "operator"). */}}
{{- define "stowage.name" -}}
{{- printf "%s-%s" (include "stowage.fullname" (index . 0)) (index . 1) -}}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "stowage.labels" -}}
app.kubernetes.io/part-of: stowage
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What the pods of a part are found by: it never changes. */}}
{{- define "stowage.selector" -}}
app.kubernetes.io/name: {{ include "stowage.name" . }}
{{- end -}}

{{/* The service account of a part: of (list $ "operator"). */}}
{{- define "stowage.serviceAccount" -}}
{{- $account := (index (index . 0).Values (index . 1)).serviceAccount -}}
{{- if $account.name -}}
{{- $account.name -}}
{{- else if $account.create -}}
{{- include "stowage.name" . -}}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{/* The image of a part: of (list $ "operator"). */}}
{{- define "stowage.image" -}}
{{- $root := index . 0 -}}
{{- $image := (index $root.Values (index . 1)).image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default $root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{/* What is the same for the pods of both parts: of (list $ "operator"). */}}
{{- define "stowage.pod" -}}
{{- $root := index . 0 -}}
{{- $part := index $root.Values (index . 1) -}}
serviceAccountName: {{ include "stowage.serviceAccount" . }}
enableServiceLinks: false
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $part.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* What no container of ours needs. */}}
{{- define "stowage.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Variables of the environment: of a list of (list name value); an empty value is left out. */}}
{{- define "stowage.env" -}}
{{- $variables := list -}}
{{- range . -}}
{{- $value := toString (index . 1) -}}
{{- if $value -}}
{{- $variables = append $variables (dict "name" (index . 0) "value" $value) -}}
{{- end -}}
{{- end -}}
{{- toYaml $variables -}}
{{- end -}}
