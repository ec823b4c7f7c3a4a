/** The test cluster itself: what other tests on it rely on. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { oneRunOfThree, onlyInFullRun } from '../campaign.ts'
import { noCluster, noOwnCluster, ownCluster, testCluster } from './cluster.ts'
import { removeLeftClusters } from './end.ts'
import { waitUntil } from './parts.ts'

const because = (reason: string | undefined): string => (reason === undefined ? '' : ` (${reason})`)

/** A Pod that sleeps on a node, with a home of its own of which the group is 30000. */
function podWithHome(name: string, node: string): object[] {
  const metadata = { name }
  return [
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata,
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata,
      spec: {
        nodeSelector: { 'kubernetes.io/hostname': node },
        terminationGracePeriodSeconds: 1,
        securityContext: { runAsUser: 30_000, runAsGroup: 30_000, fsGroup: 30_000 },
        containers: [
          {
            name: 'main',
            image: testCluster().image,
            command: ['sleep', '900'],
            volumeMounts: [{ name: 'home', mountPath: '/workspace' }],
          },
        ],
        volumes: [{ name: 'home', persistentVolumeClaim: { claimName: name } }],
      },
    },
  ]
}

async function create(objects: object[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-objects-'))
  try {
    const file = join(folder, 'objects.json')
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
    await testCluster().kubectl('create', '-f', file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe.skipIf(noCluster !== undefined)(`a cluster${because(noCluster)}`, () => {
  test('gives a Pod the names of services, and an account a token', async () => {
    const { kubectl, token, image } = testCluster()
    const pod = `names-${process.pid}`
    await kubectl('run', pod, `--image=${image}`, '--restart=Never', '--command', '--', 'sleep', '300')
    try {
      await kubectl('wait', '--for=condition=Ready', `pod/${pod}`, '--timeout=90s')
      const host = await kubectl('exec', pod, '--', 'getent', 'hosts', 'kubernetes.default.svc')
      expect(host).toMatch(/^\S+\s+kubernetes\.default\.svc/)
      expect((await token('default', 'default')).split('.')).toHaveLength(3)
    } finally {
      await kubectl('delete', 'pod', pod, '--grace-period=1')
    }
  })
})

describe.skipIf(noOwnCluster !== undefined)(`a cluster of our own${because(noOwnCluster)}`, () => {
  test('has homes on both nodes, which are empty for the next claim', async () => {
    const { kubectl, facts } = ownCluster()
    const names = ['home-1', 'home-2']
    await create(names.flatMap((name, at) => podWithHome(name, `node${at + 1}`)))
    await kubectl('wait', '--for=condition=Ready', ...names.map((name) => `pod/${name}`), '--timeout=90s')
    const volumes = await Promise.all(
      names.map(async (name) => {
        await kubectl('exec', name, '--', 'sh', '-c', 'echo mine > /workspace/file')
        return kubectl('get', 'pvc', name, '-o', 'jsonpath={.spec.volumeName}')
      }),
    )
    for (const name of volumes) expect(readdirSync(join(facts.folder, 'volumes', name))).toEqual(['file'])
    await kubectl('delete', ...names.flatMap((name) => [`pod/${name}`, `pvc/${name}`]))
    for (const name of volumes) {
      await kubectl('wait', '--for=jsonpath={.status.phase}=Available', `pv/${name}`, '--timeout=60s')
      expect(readdirSync(join(facts.folder, 'volumes', name))).toEqual([])
    }
  })

  test('loses its API server and gets it back, while a Pod runs through', async () => {
    const { kubectl, signal, start, image } = ownCluster()
    await kubectl('run', 'through', `--image=${image}`, '--command', '--', 'sleep', '900')
    await kubectl('wait', '--for=condition=Ready', 'pod/through', '--timeout=90s')
    await signal('apiserver', 'SIGKILL')
    await expect(kubectl('get', 'pods')).rejects.toThrow(/refused/)
    await start('apiserver')
    expect(await kubectl('exec', 'through', '--', 'echo', 'still here')).toBe('still here\n')
    await kubectl('delete', 'pod', 'through', '--grace-period=1')
  })

  test('cuts one agent from the API server, and no one else', async () => {
    const { kubectl, agentServer, cutAgent } = ownCluster()
    const asked = (agent: 1 | 2) =>
      kubectl('get', '--raw', '/version', `--server=${agentServer(agent)}`, '--request-timeout=2s')
    await cutAgent(1, true)
    try {
      await expect(asked(1)).rejects.toThrow()
      expect(await asked(2)).toContain('v1.')
    } finally {
      await cutAgent(1, false)
    }
    expect(await asked(1)).toContain('v1.')
  })

  test('knows a lost node, whether cut or without power, and takes it back', async ({ skip }) => {
    onlyInFullRun(skip)
    const cluster = ownCluster()
    const ready = (status: string) =>
      cluster.kubectl('wait', `--for=condition=Ready=${status}`, 'node/node2', '--timeout=90s')
    await cluster.cutNode(2, true)
    await ready('Unknown')
    await cluster.cutNode(2, false)
    await ready('True')
    await cluster.killNode(2)
    await ready('Unknown')
    await cluster.startNode(2)
    await ready('True')
  })

  test('leaves nothing of another one, whose owner and sentinel were killed', async ({ skip }) => {
    oneRunOfThree('the end of a cluster', skip)
    const program = ['--conditions=sandlot-source', join(import.meta.dirname, 'run.ts'), '--', 'sleep', '900']
    for (const withSentinel of [false, true]) {
      const owner = spawn(process.execPath, program, { stdio: ['ignore', 'pipe', 'inherit'] })
      const [line] = (await once(owner.stdout.setEncoding('utf8'), 'data')) as [string]
      const folder = /\S+sandlot-cluster-\S+/.exec(line)?.[0] ?? ''
      expect(leftOf(folder)).not.toEqual([])
      const { pid } = JSON.parse(readFileSync(join(folder, 'sentinel.json'), 'utf8')) as { pid: number }
      if (withSentinel) process.kill(pid, 'SIGKILL')
      owner.kill('SIGKILL')
      if (withSentinel) await removeLeftClusters()
      await waitUntil('the end', () => leftOf(folder).length === 0)
    }
  })
})

/** Folders, network namespaces, cgroups, mounts and processes of a cluster. */
function leftOf(folder: string): string[] {
  const id = basename(folder)
  const processes = globSync('/proc/[0-9]*/cmdline').filter((file) => {
    try {
      return readFileSync(file, 'utf8').includes(id)
    } catch {
      return false // it has ended
    }
  })
  return [
    ...globSync(folder),
    ...globSync(`/run/netns/${id}*`),
    ...globSync(`/sys/fs/cgroup/*/${id}`),
    ...readFileSync('/proc/self/mounts', 'utf8')
      .split('\n')
      .filter((mount) => mount.includes(id)),
    ...processes,
  ]
}
