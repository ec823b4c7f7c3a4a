/** Death of the API server of a test cluster, and the streams to its sandboxes afterwards. */
import { get } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'

import type { OwnCluster } from '../../../../test/cluster/cluster.ts'
import { readAccess } from '../../src/backends/kubernetes/access.ts'
import type { Sandboxes } from '../../src/controller/sandboxes.ts'
import { SandboxError } from '../../src/errors.ts'

/** Kills the API server and starts it. Resolves at its first `readyz`. */
export async function restartApiServer(cluster: OwnCluster): Promise<void> {
  await cluster.signal('apiserver', 'SIGKILL')
  const started = cluster.start('apiserver')
  const { server } = await readAccess({ namespace: '', kubeconfig: cluster.kubeconfig, environment: {} })
  while (!(await isReady(server))) await sleep(10)
  // It waits for the same by another program, later.
  void Promise.allSettled([started])
}

function isReady(server: URL): Promise<boolean> {
  return new Promise((resolve) => {
    get(new URL('/readyz', server), { rejectUnauthorized: false }, (answer) => {
      answer.resume()
      resolve(answer.statusCode === 200)
    }).on('error', () => resolve(false))
  })
}

/** The boot of the sandbox, as soon as it answers. */
export async function bootOf(controller: Sandboxes, person: string): Promise<string> {
  for (;;) {
    try {
      const sandbox = await controller.acquire(person)
      await sandbox.commands()
      return sandbox.bootId
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error
      await sleep(20)
    }
  }
}
