/**
 * The controller of a server: a warm sandbox for whoever comes next, pauses and stops for whoever
 * has gone, a way out for package managers only, and errors that say what to do.
 */
import { randomBytes } from 'node:crypto'

import { SandboxError } from '@sandlot/sandbox/errors'

import { folderFromArguments, openSandboxes } from './open.ts'

const sandboxes = openSandboxes(folderFromArguments(), {
  pool: { size: 1, delayMs: 0 },
  idle: { pauseAfterMs: 60_000, stopAfterMs: 30 * 60_000 },
  network: { egress: { allow: ['package-registries'] } },
  log: (message, details) => console.error(message, details),
})
await sandboxes.maintain()
await sandboxes.poolFilled()

const sandbox = await sandboxes.acquire('ann') // from the pool: no container is made now
const command = await sandbox.run({
  id: randomBytes(16).toString('hex'),
  command: 'yes | head -c 1000000',
  policy: { kind: 'cut', head: 4, tail: 4 },
  autoAcknowledge: true,
})
for await (const { offset, data } of command.output)
  console.log(`${data.length} bytes from ${offset}: ${JSON.stringify(Buffer.from(data).toString())}`)
console.log(`printed in all: ${(await command.exit).bytes.stdout}`)

try {
  await sandbox.run({ id: 'not an id', command: 'true' })
} catch (error) {
  if (!(error instanceof SandboxError)) throw error
  console.log(`refused: ${error.code}`)
}
await sandboxes.close()
