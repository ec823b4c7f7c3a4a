/** A program that wants a terminal: keys go in, the screen comes out, the size may change. */
import { randomBytes } from 'node:crypto'

import { folderFromArguments, openSandboxes } from './open.ts'

const sandboxes = openSandboxes(folderFromArguments())
const sandbox = await sandboxes.acquire('ann')
const python = await sandbox.run({
  id: randomBytes(16).toString('hex'),
  command: ['python3', '-q'],
  terminal: { columns: 80, rows: 24 },
  autoAcknowledge: true,
})
let screen = ''
const shown = (async () => {
  for await (const { data } of python.output) screen += Buffer.from(data).toString()
})()
await python.resize({ columns: 100, rows: 30 })
await python.writeStdin(Buffer.from('import os; print("columns", os.get_terminal_size().columns)\nexit()\n'))
await python.exit
await shown
console.log(screen.split('\r\n').find((line) => line.startsWith('columns ')))
await sandboxes.close()
