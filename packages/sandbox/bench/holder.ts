/**
 * A controller to be killed: one sandbox and one command in it for each of many users, then a word
 * that all of them run. Started by `goals/reattach.ts`: `holder.ts <deployment> <key in hex>
 * <folder of the ledger> <users>`.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'

import { createDockerBackend } from '../src/backends/docker/backend.ts'
import { createFileLedger } from '../src/controller/file-ledger.ts'
import { createSandboxes } from '../src/controller/sandboxes.ts'
import { testConfig } from '../test/support/config.ts'

export const userOf = (user: number): string => `held-${user}`
export const commandOf = (user: number): string =>
  createHash('sha256').update(userOf(user)).digest('hex').slice(0, 32)

const [deployment, key, folder, users] = process.argv.slice(2)
if (import.meta.main && deployment && key && folder) {
  const sandboxes = createSandboxes({
    backend: createDockerBackend({ deployment }),
    ledger: createFileLedger(join(folder, 'ledger.json')),
    deploymentKey: Buffer.from(key, 'hex'),
    deploymentId: deployment,
    image: testConfig.image,
  })
  await Promise.all(
    Array.from({ length: Number(users) }, async (_, user) => {
      const sandbox = await sandboxes.acquire(userOf(user))
      // Half of it now, half of it after whoever started it is gone.
      const command = 'seq 1000; sleep 3; seq 1001 2000'
      await sandbox.run({ id: commandOf(user), command })
    }),
  )
  console.log('all of them run')
}
