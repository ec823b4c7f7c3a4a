{{/* Name of an object of this release: "sandlot-service" for the release "sandlot". The name of an agent is also its id, of at most 40 characters. */}}
{{- define "sandlot.name" -}}
{{- if gt (len .root.Release.Name) 30 -}}
{{- fail (printf "The release's name %s is too long; it may have 30 characters." .root.Release.Name) -}}
{{- end -}}
{{ .root.Release.Name }}-{{ .part }}
{{- end }}

{{- define "sandlot.selector" -}}
app.kubernetes.io/name: sandlot
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "sandlot.labels" -}}
{{ include "sandlot.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* Settings of a Pod; .uid is the user of its processes. */}}
{{- define "sandlot.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.images.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .uid }}
  runAsGroup: {{ .uid }}
  fsGroup: {{ .uid }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "sandlot.container" -}}
imagePullPolicy: {{ .root.Values.images.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* Pods of one part on different nodes, where there are several. */}}
{{- define "sandlot.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "sandlot.selector" . | nindent 8 }}
{{- end }}

{{/* Environment of a process: .defaults, what every part has, and what the values set for this one, which wins. */}}
{{- define "sandlot.env" -}}
{{- $every := dict "SANDLOT_KEYS_DIR" "/keys" "DATABASE_URL_FILE" "/database/url" "NODE_USE_ENV_PROXY" "1" "SANDLOT_PUBLIC_URL" .root.Values.publicUrl -}}
{{- range $name, $value := merge (deepCopy .env) .defaults $every }}
{{- if ne $value "" }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Environment that leads agents, and backups, to the sandboxes: what the policies of the namespace let through. */}}
{{- define "sandlot.sandboxEnv" -}}
{{- with .Values.sandboxes }}
SANDLOT_SANDBOX: kubernetes
SANDLOT_SANDBOX_IMAGE: {{ first .images | required "sandboxes.images: name the image of sandboxes by its digest, like registry.example.org/sandlot/sandbox@sha256:…" }}
SANDLOT_SANDBOX_RUNTIME: {{ .runtimeClass | quote }}
SANDLOT_SANDBOX_MEMORY_MB: {{ include "sandlot.mebibytes" .limits.memory | quote }}
SANDLOT_SANDBOX_CPUS: {{ hasSuffix "m" .limits.cpu | ternary (trimSuffix "m" .limits.cpu | float64 | mulf 0.001) .limits.cpu | toString | quote }}
SANDLOT_SANDBOX_TMP_MB: {{ include "sandlot.mebibytes" .limits.tmp | quote }}
SANDLOT_SANDBOX_DISK_MB: {{ include "sandlot.mebibytes" .limits.disk | quote }}
SANDLOT_KUBERNETES_NAMESPACE: {{ .namespace }}
SANDLOT_KUBERNETES_STORAGE_CLASS: {{ .storageClass | quote }}
SANDLOT_KUBERNETES_PULL_SECRET: {{ .pullSecret | quote }}
SANDLOT_KUBERNETES_USER_NAMESPACES: {{ .userNamespaces | quote }}
SANDLOT_KUBERNETES_NETWORK_DOWN: {{ .networkDown | quote }}
{{- end }}
{{- end }}

{{/* Whole mebibytes of a quantity in Mi, Gi or Ti, which the schema asks for. */}}
{{- define "sandlot.mebibytes" -}}
{{- $unit := regexFind "[A-Za-z]+$" . -}}
{{- $factor := get (dict "Mi" 1 "Gi" 1024 "Ti" 1048576) $unit -}}
{{- mul (trimSuffix $unit . | int64) $factor -}}
{{- end }}

{{- define "sandlot.databaseVolume" -}}
- name: database
  secret:
    secretName: {{ .root.Values.database.secret }}
    defaultMode: 0440
    items:
      - key: {{ .root.Values.database.key }}
        path: url
{{- end }}

{{/* A token of one hour, which the kubelet renews, in place of the one that would be mounted. */}}
{{- define "sandlot.tokenVolume" -}}
- name: token
  projected:
    defaultMode: 0440
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3600
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                fieldPath: metadata.namespace
{{- end }}
