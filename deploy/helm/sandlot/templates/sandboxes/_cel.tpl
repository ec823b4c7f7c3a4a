{{/* A value as CEL, whose literals have one type each: dyn() keeps mixed ones apart. A text after "=" is an expression. */}}
{{- define "sandlot.cel" -}}
{{- if kindIs "map" . -}}
{{- $members := list -}}
{{- range $key, $value := . -}}
{{- $members = append $members (printf "%s: %s" (toJson $key) (include "sandlot.cel" $value)) -}}
{{- end -}}
dyn({ {{- join ", " $members -}} })
{{- else if kindIs "slice" . -}}
{{- $members := list -}}
{{- range . -}}{{- $members = append $members (include "sandlot.cel" .) -}}{{- end -}}
dyn([ {{- join ", " $members -}} ])
{{- else if and (kindIs "string" .) (hasPrefix "=" .) -}}
dyn({{ trimPrefix "=" . }})
{{- else -}}
dyn({{ toJson . }})
{{- end -}}
{{- end }}

{{/* Users that are agents, as JSON and so as CEL. */}}
{{- define "sandlot.agents" -}}
{{- with .Values.sandboxes -}}
{{- prepend .users (printf "system:serviceaccount:%s:%s" $.Release.Namespace .serviceAccount) | toJson -}}
{{- end -}}
{{- end }}

{{/* The same for users that make and restore backups. */}}
{{- define "sandlot.backups" -}}
{{- with .Values.sandboxes -}}
{{- prepend .backupUsers (printf "system:serviceaccount:%s:%s" $.Release.Namespace .backupServiceAccount) | toJson -}}
{{- end -}}
{{- end }}

{{/* As in packages/sandbox/src/backends/kubernetes/copies.ts. */}}
{{- define "sandlot.copyCommands" -}}
{{- $read := "read -r word; if [ -e /volume/home ]; then tar -C /volume/home --numeric-owner --format=posix -cf - .; else tar -cf - -T /dev/null; fi; [ $? -le 1 ] && printf %s \"$word\" && read -r word" -}}
{{- $write := "read -r word; tar -C /volume/home --numeric-owner -xpf - && printf %s \"$word\" && sleep 5" -}}
[["/bin/sh", "-c", {{ mustToRawJson $read }}], ["/bin/sh", "-c", {{ mustToRawJson $write }}]]
{{- end }}

{{- define "sandlot.subjects" -}}
- kind: ServiceAccount
  name: {{ .Values.sandboxes.serviceAccount }}
  namespace: {{ .Release.Namespace }}
{{- range .Values.sandboxes.users }}
- kind: User
  apiGroup: rbac.authorization.k8s.io
  name: {{ . | quote }}
{{- end }}
{{- end }}

{{/* Metadata that a Pod and a claim have at their creation: variables.meta. */}}
{{- define "sandlot.metadataVariables" -}}
- name: meta
  expression: dyn(object.metadata)
- name: labels
  expression: 'has(variables.meta.labels) ? variables.meta.labels : {}'
- name: home
  expression: "'sbx-' + ['deployment', 'slot'].map(k, 'sandlot.dev/' + k in variables.labels ? variables.labels['sandlot.dev/' + k] : '').join('-')"
{{- end }}

{{- define "sandlot.metadataRules" -}}
- message: 'sandlot: a label is missing, or not one of a sandbox'
  expression: >-
    ['app.kubernetes.io/name', 'sandlot.dev/role', 'sandlot.dev/schema', 'sandlot.dev/deployment', 'sandlot.dev/slot', 'sandlot.dev/uid', 'sandlot.dev/spec', 'sandlot.dev/generation'].all(k, k in variables.labels)
    && variables.labels.all(k, k == 'app.kubernetes.io/name' || k.matches('^sandlot[.]dev/[a-z]{1,32}$'))
    && variables.labels['app.kubernetes.io/name'] == 'sandlot-sandbox'
    && variables.labels['sandlot.dev/role'] == 'sandbox'
    && variables.labels['sandlot.dev/schema'] == '1'
    && variables.labels['sandlot.dev/deployment'].matches('^[a-z0-9][a-z0-9-]{0,39}$')
    && variables.labels['sandlot.dev/slot'].matches('^[a-z0-9]{8}$')
    && variables.labels['sandlot.dev/uid'].matches('^[345][0-9]{4}$')
    && variables.labels['sandlot.dev/spec'].matches('^[0-9a-f]{32}$')
    && ('sandlot.dev/owner' in variables.labels
    ? variables.labels['sandlot.dev/owner'].matches('^[0-9a-f]{16}$') && variables.labels['sandlot.dev/generation'].matches('^[1-9][0-9]{0,9}$')
    : variables.labels['sandlot.dev/generation'] == '0')
    && (!('sandlot.dev/profile' in variables.labels){{ if .Values.sandboxes.debug }} || variables.labels['sandlot.dev/profile'] == 'debug'{{ end }})
{{- end }}

{{- define "sandlot.changeVariables" -}}
- name: meta
  expression: dyn(object.metadata)
- name: oldMeta
  expression: dyn(oldObject.metadata)
- name: labels
  expression: 'has(variables.meta.labels) ? variables.meta.labels : {}'
- name: oldLabels
  expression: 'has(variables.oldMeta.labels) ? variables.oldMeta.labels : {}'
- name: notes
  expression: 'has(variables.meta.annotations) ? variables.meta.annotations : {}'
- name: oldNotes
  expression: 'has(variables.oldMeta.annotations) ? variables.oldMeta.annotations : {}'
{{- end }}

{{/* Labels of a sandbox stay: an owner comes once, with a generation; those in .free may change. */}}
{{- define "sandlot.changeRules" -}}
- message: 'sandlot: the labels of a sandbox do not change; its owner is set once'
  expression: >-
    variables.labels.all(k, k in {{ toJson .free }} || (k in variables.oldLabels
    ? variables.labels[k] == variables.oldLabels[k] || (k == 'sandlot.dev/generation' && !('sandlot.dev/owner' in variables.oldLabels))
    : k == 'sandlot.dev/owner'))
    && variables.oldLabels.all(k, k in variables.labels || k in {{ without .free "sandlot.dev/generation" | toJson }})
- message: 'sandlot: the owner, generation, fingerprint or profile is not one'
  expression: >-
    !('sandlot.dev/slot' in variables.labels)
    || (('sandlot.dev/owner' in variables.labels
    ? variables.labels['sandlot.dev/owner'].matches('^[0-9a-f]{16}$') && variables.labels['sandlot.dev/generation'].matches('^[1-9][0-9]{0,9}$')
    : variables.labels['sandlot.dev/generation'] == '0')
    && variables.labels['sandlot.dev/spec'].matches('^[0-9a-f]{32}$')
    && (!('sandlot.dev/profile' in variables.labels){{ if .root.Values.sandboxes.debug }} || variables.labels['sandlot.dev/profile'] == 'debug'{{ end }}))
{{- end }}
