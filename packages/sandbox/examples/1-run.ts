/** A command in somebody's own sandbox: output as it comes, then how it ended. */
import { randomBytes } from 'node:crypto'

import { folderFromArguments, openSandboxes } from './open.ts'

const sandboxes = openSandboxes(folderFromArguments())
const sandbox = await sandboxes.acquire('ann')
const command = await sandbox.run({
  id: randomBytes(16).toString('hex'),
  command: 'echo "I am $(whoami)"; ls /nowhere; exit 3',
  timeoutMs: 10_000,
  autoAcknowledge: true,
})
for await (const { stream, data } of command.output)
  process.stdout.write(`${stream}: ${Buffer.from(data).toString()}`)
const { cause, code, bytes } = await command.exit
console.log(`${cause} with ${code}, ${bytes.stdout} bytes printed`)
await sandboxes.close() // the container and its files stay; the next acquire finds them
