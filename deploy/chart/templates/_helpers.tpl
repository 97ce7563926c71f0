{{/* The prefix of all names. */}}
{{- define "qontract.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $chart := default .Chart.Name .Values.nameOverride -}}
{{- if contains $chart .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $chart | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The name of a component. Arguments: root, component. */}}
{{- define "qontract.component" -}}
{{- printf "%s-%s" (include "qontract.name" .root) .component -}}
{{- end -}}

{{/* Labels by which a component is selected. Arguments: root, component. */}}
{{- define "qontract.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* All labels of an object. Arguments: root, component. */}}
{{- define "qontract.labels" -}}
{{ include "qontract.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "qontract.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The name of the ServiceAccount of a component. Arguments: root, component, account. */}}
{{- define "qontract.serviceAccount" -}}
{{- if .account.create -}}
{{- default (include "qontract.component" .) .account.name -}}
{{- else -}}
{{- default "default" .account.name -}}
{{- end -}}
{{- end -}}

{{/* The security context of a pod: not root, and no system call that the runtime does not allow by default. */}}
{{- define "qontract.podSecurity" -}}
runAsNonRoot: true
{{- with .root.Values.runAsUser }}
runAsUser: {{ . | int }}
runAsGroup: {{ . | int }}
fsGroup: {{ . | int }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "qontract.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Fields that the pods of all components share. Arguments: root, component, values. */}}
{{- define "qontract.podFields" -}}
enableServiceLinks: false
securityContext:
  {{- include "qontract.podSecurity" . | nindent 2 }}
terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Environment variables of all components. */}}
{{- define "qontract.commonEnv" -}}
- name: QONTRACT_LOG_FORMAT
  value: {{ .Values.log.format }}
# The root file system is read-only.
- name: HOME
  value: /tmp
{{- if .Values.caBundle.configMap }}
- name: SSL_CERT_FILE
  value: /etc/qontract/ca/{{ .Values.caBundle.key }}
{{- end }}
{{- end -}}

{{- define "qontract.commonMounts" -}}
- name: tmp
  mountPath: /tmp
{{- if .Values.caBundle.configMap }}
- name: ca
  mountPath: /etc/qontract/ca
  readOnly: true
{{- end }}
{{- end -}}

{{- define "qontract.commonVolumes" -}}
- name: tmp
  emptyDir: {}
{{- with .Values.caBundle.configMap }}
- name: ca
  configMap:
    name: {{ . }}
{{- end }}
{{- end -}}

{{/* Namespaces in which the manager deploys shards, as a JSON object with the key `names`. */}}
{{- define "qontract.shardNamespaces" -}}
{{- $names := .Values.manager.rbac.namespaces | default (list .Release.Namespace) -}}
{{- dict "names" ($names | uniq | sortAlpha) | toJson -}}
{{- end -}}

{{/*
`policy/v1` exists since Kubernetes 1.21. The version is compared, too, because rendering without a cluster assumes
the API versions of the newest Kubernetes.
*/}}
{{- define "qontract.disruptionApi" -}}
{{- $isNew := semverCompare ">=1.21-0" .Capabilities.KubeVersion.Version -}}
{{- if and $isNew (.Capabilities.APIVersions.Has "policy/v1") -}}policy/v1{{- else -}}policy/v1beta1{{- end -}}
{{- end -}}

{{/* `true` if objects of the Prometheus Operator are created. Arguments: root, enabled (auto, always, never). */}}
{{- define "qontract.monitored" -}}
{{- if eq .enabled "always" -}}
true
{{- else if and (eq .enabled "auto") (.root.Capabilities.APIVersions.Has "monitoring.coreos.com/v1") -}}
true
{{- end -}}
{{- end -}}
