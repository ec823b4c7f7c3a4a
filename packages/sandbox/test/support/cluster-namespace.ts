/** A namespace of the test cluster that one test file has for itself. */
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'

import { parse, stringify } from 'yaml'

import { testCluster } from '../../../../test/cluster/cluster.ts'
import { type ClusterAccess, readAccess } from '../../src/backends/kubernetes/access.ts'
import type { Pod } from '../../src/backends/kubernetes/objects.ts'

export interface TestNamespace extends AsyncDisposable {
  readonly name: string
  /** Access for the administrator of the cluster, by its own address or by `server`. */
  access(server?: string): Promise<ClusterAccess>
  /** Access for the user of this entry of a kubeconfig, which is written to `path`. */
  accessAs(user: Record<string, string>, path: string): Promise<ClusterAccess>
}

export async function makeNamespace(): Promise<TestNamespace> {
  const cluster = testCluster()
  const name = `test-${randomBytes(4).toString('hex')}`
  await cluster.kubectl('create', 'namespace', name)
  // Without it no Pod is admitted; after a start of the API server it comes late.
  await cluster.kubectl('wait', 'serviceaccount/default', '-n', name, '--for=create', '--timeout=60s')
  const admin = (): Promise<ClusterAccess> =>
    readAccess({ namespace: name, kubeconfig: cluster.kubeconfig, environment: {} })
  return {
    name,
    async access(server) {
      const access = await admin()
      return server === undefined ? access : { ...access, server: new URL(server) }
    },
    async accessAs(user, path) {
      const config = parse(await readFile(cluster.kubeconfig, 'utf8')) as { users: { user: unknown }[] }
      for (const entry of config.users) entry.user = user
      await writeFile(path, stringify(config))
      return readAccess({ namespace: name, kubeconfig: path, environment: {} })
    },
    async [Symbol.asyncDispose]() {
      await cluster.kubectl('delete', 'namespace', name, '--wait=false')
    },
  }
}

/** A Pod that no node gets, so that it is made and gone at once. */
export function gatedPod(name: string, labels: Record<string, string> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels },
    spec: {
      containers: [{ name: 'main', image: 'none' }],
      schedulingGates: [{ name: 'sandlot.dev/open' }],
    },
  }
}
