{{/* Sets each missing value to its default. `helm upgrade --reuse-values` uses the values of the installed release, which lack
those that were added later. Each template begins with this. */}}
{{- define "stowage.defaults" -}}
{{- include "stowage.fill" (list .Values (.Files.Get "files/values.yaml" | fromYaml)) -}}
{{- end -}}

{{/* Fills in values from defaults. Arguments: (list values defaults). `merge` can't be used, because it treats false and 0 as
missing. A map that the user sets as a whole, in which null removes an entry, is not changed. */}}
{{- define "stowage.fill" -}}
{{- $values := index . 0 -}}
{{- range $name, $default := index . 1 -}}
{{- if not (hasKey $values $name) -}}
{{- $_ := set $values $name $default -}}
{{- else if and (kindIs "map" $default) (kindIs "map" (index $values $name)) (not (has $name (list "resources" "labels"))) -}}
{{- include "stowage.fill" (list (index $values $name) $default) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Returns the prefix of all names. */}}
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

{{/* Returns the name of a part. Arguments: (list $ "operator"). */}}
{{- define "stowage.name" -}}
{{- printf "%s-%s" (include "stowage.fullname" (index . 0)) (index . 1) -}}
{{- end -}}

{{/* Returns the labels of every object. */}}
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

{{/* Returns the selector label of a part's pods, which must never change. */}}
{{- define "stowage.selector" -}}
app.kubernetes.io/name: {{ include "stowage.name" . }}
{{- end -}}

{{/* Returns the name of a part's service account. Arguments: (list $ "operator"). */}}
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

{{/* Returns the image of a part. Arguments: (list $ "operator"). */}}
{{- define "stowage.image" -}}
{{- $root := index . 0 -}}
{{- $image := (index $root.Values (index . 1)).image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default $root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Returns the fields that the pods of both parts have in common. Arguments: (list $ "operator"). */}}
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

{{/* Returns the securityContext of every container, which removes the privileges that none of them needs. */}}
{{- define "stowage.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Returns environment variables from a list of (list name value). Empty values are left out. */}}
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

{{/* Returns the namespace of records, keys and admin Secrets. */}}
{{- define "stowage.stateNamespace" -}}
{{- default .Release.Namespace .Values.namespaces.state -}}
{{- end -}}

{{/* Returns the namespace that gateways write to. It must not contain anything else. */}}
{{- define "stowage.usageNamespace" -}}
{{- $state := include "stowage.stateNamespace" . -}}
{{- $usage := default (printf "%s-usage" ($state | trunc 57 | trimSuffix "-")) .Values.namespaces.usage -}}
{{- if has $usage (concat (list .Release.Namespace $state) .Values.operator.trustedSecretNamespaces) -}}
{{- fail (printf "namespaces.usage has to be a namespace of its own: gateways may write all ConfigMaps and Leases of %s" $usage) -}}
{{- end -}}
{{- $usage -}}
{{- end -}}

{{/* Returns the selector of the namespaces whose claims and accesses are validated: those that the operator serves. */}}
{{- define "stowage.servedNamespaces" -}}
{{- with .Values.operator.watchNamespaces -}}
namespaceSelector:
  matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: {{ toJson . }}}]
{{- else -}}
namespaceSelector: {}
{{- end -}}
{{- end -}}
