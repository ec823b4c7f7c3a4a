/** Starts a real Kubernetes of one control plane and two nodes on this machine, in namespaces of its own. */
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { peerFolder } from '../peer-cache.ts'
import { makeCgroups } from './cgroups.ts'
import { openCluster, type OwnCluster } from './cluster.ts'
import { openClusterFolder, removeLeftClusters } from './end.ts'
import { firstObjects, writeNodeFiles } from './nodes.ts'
import { CONTROL, type Facts, netns, NODES, startNodeParts, startPart, waitUntil } from './parts.ts'
import { KUBERNETES } from './tool.ts'

/** Docker's image that Pods of sandboxes are made of. */
const IMAGE = 'sandlot/sandbox:latest'
const run = promisify(execFile)

/** Whatever is recorded of Pods, of streams into them and of homes. */
const AUDIT = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  rules: [
    {
      level: 'RequestResponse',
      resources: [{ group: '', resources: ['pods', 'pods/exec', 'persistentvolumeclaims'] }],
    },
    { level: 'None' },
  ],
}

export interface StartedCluster {
  cluster: OwnCluster
  end(): Promise<void>
}

/**
 * Starts a cluster and waits until Pods may be made. It ends by `end`, and also when this process does.
 * Rejects with the reason where it cannot start; nothing is left then.
 */
export async function startCluster(): Promise<StartedCluster> {
  await removeLeftClusters()
  const tool = peerFolder(KUBERNETES)
  if (tool === undefined) throw new Error('Kubernetes is not in the cache of programs for tests')
  const store = join(dirname(tool), 'kubernetes-images')
  await emptyStore(store)
  const { folder, id, end } = await openClusterFolder(store)
  try {
    for (const name of ['log', 'run']) mkdirSync(join(folder, name))
    makeCgroups(id)
    await makeNetwork(id)
    writeFileSync(join(folder, 'audit.json'), JSON.stringify(AUDIT))
    startPart({ folder, id, tool, image: '' }, 'etcd')
    startPart({ folder, id, tool, image: '' }, 'apiserver')
    const facts = { folder, id, tool, image: await prepareImages(folder, tool, store) }
    writeFileSync(join(folder, 'cluster.json'), JSON.stringify(facts))
    await startNodes(facts)
    const cluster = openCluster(folder)
    await startControllers(facts, cluster)
    return { cluster, end }
  } catch (error) {
    const logs = lastLines(join(folder, 'log'))
    await end()
    throw new Error(`The cluster did not start.\n${logs}`, { cause: error })
  }
}

function lastLines(logs: string): string {
  const last = (name: string): string =>
    readFileSync(join(logs, name), 'utf8').trim().split('\n').slice(-5).join('\n')
  return readdirSync(logs)
    .map((name) => `── ${name}\n${last(name)}`)
    .join('\n')
}

const MOST_IMAGES = 6

/** Removes the images of earlier runs where there are many, unless a cluster uses the store. */
async function emptyStore(store: string): Promise<void> {
  const references = join(store, 'references')
  mkdirSync(references, { recursive: true })
  if (readdirSync(references).length < MOST_IMAGES) return
  const remove = ['rm', '-rf', references, join(store, 'root')]
  await run('flock', ['--nonblock', '--conflict-exit-code=0', join(store, 'users'), ...remove])
}

async function prepareImages(folder: string, tool: string, store: string): Promise<string> {
  const roots = NODES.map((node) => join(folder, `node${node}`, 'root'))
  const script = join(import.meta.dirname, 'images.sh')
  return (await run(script, [tool, store, IMAGE, ...roots])).stdout.trim()
}

/** A bridge where the control plane is, and a cable from it to each node; Pods of node N are in 10.88.N.0/24. */
async function makeNetwork(id: string): Promise<void> {
  const control = netns(id)
  const lines = [
    `ip netns add ${control}`,
    `ip -netns ${control} link set lo up`,
    `ip -netns ${control} link add br0 type bridge`,
    // The two others are for agents, whose way can be cut without that of the test.
    ...['1', '2', '3'].map((last) => `ip -netns ${control} address add 10.77.0.${last}/24 dev br0`),
    `ip -netns ${control} link set br0 up`,
    ...NODES.flatMap((node) => {
      const name = netns(id, node)
      return [
        `ip netns add ${name}`,
        `ip link add v${node} netns ${control} type veth peer name eth0 netns ${name}`,
        `ip -netns ${control} link set v${node} master br0 up`,
        `ip -netns ${control} route add 10.88.${node}.0/24 via 10.77.0.1${node}`,
        `ip -netns ${name} link set lo up`,
        `ip -netns ${name} address add 10.77.0.1${node}/24 dev eth0`,
        `ip -netns ${name} link set eth0 up`,
        `ip -netns ${name} route add default via ${CONTROL}`,
        ...NODES.filter((other) => other !== node).map(
          (other) => `ip -netns ${name} route add 10.88.${other}.0/24 via 10.77.0.1${other}`,
        ),
      ]
    }),
    ...[control, ...NODES.map((node) => netns(id, node))].map(
      (name) => `nsenter --net=/run/netns/${name} sysctl -qw net.ipv4.ip_forward=1`,
    ),
  ]
  await run('bash', ['-euc', lines.join('\n')])
}

async function startNodes(facts: Facts): Promise<void> {
  await Promise.all(
    NODES.map(async (node) => {
      writeNodeFiles(facts, node)
      await startNodeParts(facts, node)
    }),
  )
}

async function startControllers(facts: Facts, cluster: OwnCluster): Promise<void> {
  const { folder } = facts
  const corefile = `.:53 {\n bind ${CONTROL}\n errors\n kubernetes cluster.local in-addr.arpa {\n  kubeconfig ${cluster.kubeconfig}\n }\n}\n`
  writeFileSync(join(folder, 'Corefile'), corefile)
  writeFileSync(join(folder, 'objects.json'), JSON.stringify(firstObjects(folder)))
  await waitUntil('the API server', () =>
    cluster.kubectl('get', '--raw', '/readyz').then(
      () => true,
      () => false,
    ),
  )
  for (const part of ['manager', 'scheduler', 'dns'] as const) startPart(facts, part)
  const nodes = NODES.map((node) => `node/node${node}`)
  await Promise.all([
    cluster.kubectl('create', '-f', join(folder, 'objects.json')),
    // Pods need the service account, and it is made late. One by one: kubectl gives up where two are missing.
    ...[...nodes, 'serviceaccount/default'].map((object) =>
      cluster.kubectl('wait', '--for=create', object, '--timeout=180s'),
    ),
  ])
  startPart(facts, 'volumes')
  await cluster.kubectl('wait', '--for=condition=Ready', ...nodes, '--timeout=180s')
}
