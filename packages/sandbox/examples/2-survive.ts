/**
 * A command that outlives the program which started it: the next program finds it, and every byte
 * of its output.
 */
import { createHash } from 'node:crypto'

import { folderFromArguments, openSandboxes } from './open.ts'

const folder = folderFromArguments()
/** Chosen by us, so that whoever comes later knows it: a command runs at most once under its id. */
const id = createHash('sha256').update('the build of Monday').digest('hex').slice(0, 32)

const first = openSandboxes(folder)
const before = await first.acquire('ann')
await before.run({ id, command: 'for step in 1 2 3; do echo "step $step"; sleep 0.3; done' })
await first.close() // as a crash would, but tidier

const second = openSandboxes(folder)
const after = await second.acquire('ann')
const command = await after.attach(id, {}, { autoAcknowledge: true })
if (!command) throw new Error('the sandbox was restarted meanwhile')
for await (const { data } of command.output) process.stdout.write(data)
console.log(`ended: ${(await command.exit).cause}`)
await second.close()
