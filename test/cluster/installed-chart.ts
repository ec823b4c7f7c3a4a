/** Sandlot as Helm installs it on the cluster of this test run: with PostgreSQL and backups, and a model that a test scripts. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type FakeProvider, startFakeProvider } from '../../packages/ai-agent/test/support/fake-provider.ts'
import { writeBundle } from '../../packages/cli/src/bundle/write-bundle.ts'
import { keys } from '../../packages/cli/src/commands/keys.ts'
import { parseCliConfig } from '../../packages/cli/src/config.ts'
import { createSteps } from '../../packages/cli/src/steps.ts'
import { extent } from '../campaign.ts'
import { nodeEnvironment } from '../config.ts'
import { buildWholeImage, WHOLE } from '../thin-image.ts'
import type { OwnCluster } from './cluster.ts'
import { CONTROL } from './parts.ts'

const run = promisify(execFile)
const CHART = 'deploy/helm/sandlot'

/** For what `./sandlot` does. */
const LAUNCHER = {
  config: parseCliConfig(nodeEnvironment()),
  steps: createSteps({ write: () => undefined, live: false }),
}

export interface InstalledChart {
  provider: FakeProvider
  /** The page, by whichever service is ready, as an Ingress would lead there. */
  url: string
  namespace: string
  /** The namespace of sandboxes. */
  sandboxes: string
  kubectl(...args: string[]): Promise<string>
  /** Installs or upgrades with these values on top, and waits until all is ready. */
  upgrade(values?: Values): Promise<void>
  rollback(): Promise<void>
  uninstall(): Promise<void>
  /** The address that makes the first administrator, at `url`. */
  setupUrl(): Promise<string>
}

interface Values {
  agent?: { env: Record<string, string> }
  service?: { env: Record<string, string> }
}

/** Password of the database, and passphrase of backups. */
export const PASSWORD = 'of-this-test'

/** PostgreSQL as the compose file has it, where it listens at a socket alone. */
const POSTGRES = (image: string): string => `
apiVersion: v1
kind: ConfigMap
metadata: { name: postgres }
data: { pg_hba.conf: "local all all trust\\nhost all all all scram-sha-256\\n" }
---
apiVersion: v1
kind: Pod
metadata: { name: postgres, labels: { app: postgres } }
spec:
  securityContext: { runAsUser: 10005, runAsGroup: 10005, fsGroup: 10005, runAsNonRoot: true, seccompProfile: { type: RuntimeDefault } }
  containers:
    - name: postgres
      image: ${image}
      args: [start-postgres.sh, -c, listen_addresses=*, -c, unix_socket_directories=/tmp, -c, hba_file=/hba/pg_hba.conf]
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: [ALL] } }
      readinessProbe: { exec: { command: [pg_isready, --quiet, --host=127.0.0.1] }, periodSeconds: 1, timeoutSeconds: 10 }
      volumeMounts:
        - { name: database, mountPath: /database }
        - { name: hba, mountPath: /hba }
        - { name: data, mountPath: /var/lib/postgresql }
  volumes:
    - { name: database, secret: { secretName: postgres } }
    - { name: hba, configMap: { name: postgres } }
    - { name: data, emptyDir: {} }
---
apiVersion: v1
kind: Service
metadata: { name: postgres }
spec: { selector: { app: postgres }, ports: [{ port: 5432 }] }
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: sandlot-backups }
spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }
`

/** `base`: Docker's image to build on. Everything that it makes ends with `stack`. */
export async function installChart(
  cluster: OwnCluster,
  base: string,
  stack: AsyncDisposableStack,
): Promise<InstalledChart> {
  const id = randomBytes(3).toString('hex')
  const [namespace, sandboxes] = [`sandlot-${id}`, `sandlot-${id}-sandboxes`]
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-installed-'))
  stack.defer(() => rmSync(folder, { recursive: true }))
  const provider = await startFakeProvider([], CONTROL)
  stack.defer(() => provider.close())
  const kubectl = (...args: string[]): Promise<string> => cluster.kubectl('-n', namespace, ...args)
  const image = await makeImage(cluster, base, folder, id)
  await cluster.kubectl('create', 'namespace', namespace)
  stack.defer(async () => {
    await cluster.kubectl('delete', 'namespace', namespace, sandboxes, '--ignore-not-found', '--wait=false')
  })
  // Our own Pods need no exception.
  await cluster.kubectl('label', 'namespace', namespace, 'pod-security.kubernetes.io/enforce=restricted')
  await makeSecrets(kubectl, folder)
  writeFileSync(join(folder, 'postgres.yaml'), POSTGRES(image))
  await kubectl('apply', '-f', join(folder, 'postgres.yaml'))

  const resources = { requests: { cpu: '10m', memory: '64Mi' } }
  const first = {
    images: { sandlot: image, backup: image },
    backup: { enabled: true },
    sandboxes: { namespace: sandboxes, images: [cluster.image], storageClass: 'local' },
    service: { resources, env: { SANDLOT_DEFAULT_MODE: 'yolo' } },
    agent: {
      resources,
      env: {
        OPENAI_BASE_URL: provider.baseUrl,
        OPENAI_MODEL: 'scripted',
        SANDLOT_DEFAULT_MODE: 'yolo',
        // Each is one more home of a backup.
        SANDLOT_SANDBOX_POOL: '1',
      },
      envFrom: [{ secretRef: { name: 'model' } }],
    },
  }
  writeFileSync(join(folder, 'first.json'), JSON.stringify(first))
  const helm = (...args: string[]): Promise<string> =>
    cluster.helm(...args, '-n', namespace, '--wait', `--timeout=${extent(5, 15)}m`)
  const way = await balance(kubectl)
  stack.defer(() => way.close())
  return {
    provider,
    url: way.url,
    namespace,
    sandboxes,
    kubectl,
    async upgrade(values = {}) {
      writeFileSync(join(folder, 'more.json'), JSON.stringify(values))
      const files = ['first', 'more'].flatMap((name) => ['-f', join(folder, `${name}.json`)])
      await helm('upgrade', '--install', 'sandlot', CHART, ...files)
    },
    rollback: async () => void (await helm('rollback', 'sandlot')),
    uninstall: async () => void (await helm('uninstall', 'sandlot')),
    async setupUrl() {
      const log = await kubectl('logs', '-l', 'app.kubernetes.io/component=service', '--tail=-1')
      const token = /setup\?token=\w+/.exec(log)?.[0]
      if (token === undefined) throw new Error(`no service has shown the address of the set-up:\n${log}`)
      return `${way.url}/${token}`
    },
  }
}

/** Keeps the layers of the last image, on which the next one is built. */
const LAST = 'sandlot/chart-test:latest'

/** One image of all our processes and PostgreSQL, on the nodes by its digest: by a bundle, as where there is no network. */
async function makeImage(cluster: OwnCluster, base: string, folder: string, id: string): Promise<string> {
  const own = `sandlot/chart-${id}:test`
  const docker = (...args: string[]) => run('docker', args, { maxBuffer: 2 ** 26 })
  try {
    const options = ['--network', 'host', '--build-arg', `BASE=${base}`]
    await docker('build', ...options, '-t', 'sandlot/postgres:latest', 'docker/postgres')
    const context = join(folder, 'image')
    mkdirSync(context)
    await buildWholeImage(own, context)
    rmSync(context, { recursive: true })
    await docker('tag', own, LAST)
    await docker('image', 'prune', '--force', '--filter', `label=${WHOLE}`)
    const file = join(folder, 'bundle.tar')
    const [reference = ''] = await writeBundle(file, [own], LAUNCHER)
    await cluster.loadImages(file)
    rmSync(file)
    return reference
  } finally {
    await docker('rmi', '--force', own)
  }
}

/** The Secrets that an operator makes before, two of them by the commands that the launcher prints. */
async function makeSecrets(kubectl: InstalledChart['kubectl'], folder: string): Promise<void> {
  const secret = (name: string, ...data: string[]): Promise<string> =>
    kubectl('create', 'secret', 'generic', name, ...data)
  await secret('postgres', `--from-literal=password=${PASSWORD}`)
  await secret('sandlot-database', `--from-literal=url=postgres://sandlot:${PASSWORD}@postgres/sandlot`)
  await secret('sandlot-backup-passphrase', `--from-literal=passphrase=${PASSWORD}`)
  await secret('model', '--from-literal=OPENAI_API_KEY=sk-test-canary')
  const printed: string[] = []
  const args = ['new', join(folder, 'keys')]
  await keys({ ...LAUNCHER, args, print: (line) => void printed.push(line) })
  for (const line of printed) {
    const [, name = '', from = ''] = / generic (\S+) --from-file='(.*)'$/.exec(line) ?? []
    await secret(name, `--from-file=${from}`)
  }
}

/** A way to the ready services, at an address of this machine alone. */
async function balance(kubectl: InstalledChart['kubectl']): Promise<{ url: string; close(): Promise<void> }> {
  const sockets = new Set<Socket>()
  const addresses = async (): Promise<string[]> => {
    const label = 'kubernetes.io/service-name=sandlot-service'
    const { items } = JSON.parse(await kubectl('get', 'endpointslices', '-l', label, '-o', 'json')) as {
      items: { endpoints: { addresses: string[]; conditions: { ready?: boolean } }[] | null }[]
    }
    const all = items.flatMap(({ endpoints }) => endpoints ?? [])
    return all.flatMap(({ addresses: own, conditions }) => (conditions.ready === true ? own : []))
  }
  let known: string[] = []
  let next = 0
  const ended = new AbortController()
  const watching = (async () => {
    while (!ended.signal.aborted) {
      known = await addresses().catch(() => known)
      await sleep(500, undefined, { signal: ended.signal }).catch(() => undefined)
    }
  })()
  const server = createServer({ pauseOnConnect: true }, (client) => {
    const [address] = known.slice(next++ % Math.max(1, known.length))
    if (address === undefined) return void client.destroy()
    const far = connect(8002, address)
    for (const socket of [client, far]) {
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    }
    client.on('close', () => far.destroy())
    far.on('close', () => client.destroy())
    client.pipe(far).pipe(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      ended.abort()
      for (const socket of sockets) socket.destroy()
      server.close()
      await watching
    },
  }
}
