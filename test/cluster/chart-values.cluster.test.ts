/** The chart with the values of four operators: what Helm makes of it, asked of a real API server, and typing mistakes. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sample } from '../campaign.ts'
import { type Cluster, noCluster, noOwnCluster, ownCluster, testCluster } from './cluster.ts'

const CHART = 'deploy/helm/sandlot'
const id = randomBytes(3).toString('hex')
/** The namespace that the objects would have. */
const namespace = `chart-${id}`
const sandboxes = {
  namespace: `${namespace}-sandboxes`,
  images: [`sandlot/sandbox@sha256:${'0'.repeat(64)}`],
}

/** Values by their operator, and the kinds that they get. */
const OPERATORS: Record<string, { values: object; kinds: string[]; without: string[] }> = {
  'small: one of each, by port-forward': {
    values: { sandboxes, service: { replicas: 1 }, agent: { replicas: 1 } },
    kinds: ['Deployment', 'StatefulSet', 'Service', 'PodDisruptionBudget', 'Namespace'],
    without: ['Ingress', 'HTTPRoute', 'CronJob', 'ServiceMonitor'],
  },
  'several behind an Ingress, with backups and metrics': {
    values: {
      sandboxes,
      publicUrl: 'https://chat.example.org:8443',
      previewHost: 'preview.example.net',
      images: { pullSecrets: ['registry'] },
      service: { replicas: 3, trustedProxies: ['10.42.0.0/16'], env: { SANDLOT_LOCAL_SIGN_IN: 'admins' } },
      agent: {
        replicas: 3,
        envFrom: [{ secretRef: { name: 'model' } }],
        config: { tools: { glob: { enabled: false } } },
      },
      ingress: { enabled: true, className: 'public', tlsSecret: 'chat', previewTlsSecret: 'previews' },
      backup: { enabled: true },
      metrics: { tokenSecret: 'metrics', serviceMonitor: true, labels: { release: 'monitoring' } },
    },
    kinds: ['Ingress', 'CronJob', 'ServiceMonitor'],
    without: ['HTTPRoute'],
  },
  'a Gateway, and a namespace of sandboxes at restricted': {
    values: {
      sandboxes: { ...sandboxes, networkDown: false, limits: { memory: '3Gi', cpu: '1500m' } },
      publicUrl: 'https://chat.example.org',
      previewHost: 'preview.example.net',
      gateway: {
        enabled: true,
        parentRefs: [{ name: 'public', namespace: 'gateways' }],
        sessionPersistence: { sessionName: 'sandlot-service', type: 'Cookie' },
      },
    },
    kinds: ['HTTPRoute', 'Namespace'],
    without: ['Ingress'],
  },
  'sandboxes alone, for agents outside of the cluster': {
    values: { sandboxes, service: { enabled: false }, agent: { enabled: false } },
    kinds: ['Namespace', 'Role', 'ValidatingAdmissionPolicy', 'NetworkPolicy', 'PriorityClass'],
    without: ['Deployment', 'StatefulSet', 'Service', 'ConfigMap', 'CronJob'],
  },
}

describe.skipIf(noCluster)('the chart', () => {
  let cluster: Cluster
  let folder: string
  beforeAll(async () => {
    cluster = testCluster()
    folder = mkdtempSync(join(tmpdir(), 'sandlot-chart-'))
    for (const name of [namespace, sandboxes.namespace]) await cluster.kubectl('create', 'namespace', name)
    // Marked as made by this release: Helm takes over no namespace of others.
    const own = ['namespace', sandboxes.namespace]
    await cluster.kubectl('label', ...own, 'app.kubernetes.io/managed-by=Helm')
    const release = ['name=sandlot', `namespace=${namespace}`].map((part) => `meta.helm.sh/release-${part}`)
    await cluster.kubectl('annotate', ...own, ...release)
    if (noOwnCluster !== undefined) return
    const definitions = join(ownCluster().facts.tool, 'definitions')
    await cluster.kubectl('apply', '--server-side', '-f', definitions)
    await cluster.kubectl('wait', '--for=condition=Established', '-f', definitions)
  })
  afterAll(async () => {
    await cluster.kubectl('delete', 'namespace', namespace, sandboxes.namespace, '--wait=false')
    rmSync(folder, { recursive: true })
  })

  function valuesFile(values: object): string {
    const file = join(folder, 'values.json')
    writeFileSync(file, JSON.stringify(values))
    return file
  }
  const render = (values: object): Promise<string> =>
    cluster.helm('template', 'sandlot', CHART, '-n', namespace, '--validate', '-f', valuesFile(values))

  const drawn = sample('operators of the chart', Object.entries(OPERATORS), 2)
  test.each(drawn)('%s', async (_name, { values, kinds, without }) => {
    expect(await cluster.helm('lint', '--strict', CHART, '-f', valuesFile(values))).toContain(
      '0 chart(s) failed',
    )
    const rendered = join(folder, 'rendered.yaml')
    writeFileSync(rendered, await render(values))
    const apply = ['apply', '--server-side', '--dry-run=server', '--validate=strict', '--output=json']
    const answer = await cluster.kubectl(...apply, '-f', rendered)
    const { items } = JSON.parse(answer) as { items: { kind: string }[] }
    const made = new Set(items.map(({ kind }) => kind))
    for (const kind of kinds) expect(made).toContain(kind)
    for (const kind of without) expect(made).not.toContain(kind)
  })

  test.each([
    ['an unknown value', { sandboxes, agent: { replica: 2 } }, /replica/],
    ['an unknown section', { sandboxes, ingres: { enabled: true } }, /ingres/],
    [
      'a number where a setting is text',
      { sandboxes, agent: { env: { SANDLOT_MAX_TURNS: 10 } } },
      /SANDLOT_MAX_TURNS/,
    ],
    [
      'a setting that the chart gives',
      { sandboxes, agent: { env: { SANDLOT_REPLICA: 'a' } } },
      /SANDLOT_REPLICA/,
    ],
    ['no image of sandboxes', { sandboxes: { images: [] } }, /sandboxes.images/],
    [
      'a limit that the agent cannot have',
      { sandboxes: { ...sandboxes, limits: { memory: '2G' } } },
      /memory': '2G'/,
    ],
    ['no agent at all', { sandboxes, agent: { replicas: 0 } }, /replicas/],
    ['an address with a path', { sandboxes, publicUrl: 'https://example.org/chat' }, /publicUrl/],
    ['an Ingress without an address', { sandboxes, ingress: { enabled: true } }, /publicUrl/],
    [
      'a Gateway without its name',
      { sandboxes, publicUrl: 'https://a.example', gateway: { enabled: true } },
      /parentRefs/,
    ],
    ['a monitor without a token', { sandboxes, metrics: { serviceMonitor: true } }, /tokenSecret/],
  ])('%s is refused and named', async (_name, values, named) => {
    await expect(render(values)).rejects.toThrow(named)
  })
})
