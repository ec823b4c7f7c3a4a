/** Files without a shell: atomic writes, ranges, and nothing outside the workspace. */
import { SandboxError } from '@sandlot/sandbox/errors'

import { folderFromArguments, openSandboxes } from './open.ts'

const sandboxes = openSandboxes(folderFromArguments())
const { files } = await sandboxes.acquire('ann')
await files.write('notes/today.txt', Buffer.from('one\ntwo\nthree\n'))
const line = await files.read('notes/today.txt', { offset: 4, length: 3 })
console.log(`second line: ${Buffer.from(line).toString()}`)
for (const { path, size } of await files.list('notes')) console.log(`listed: ${path} (${size} bytes)`)
try {
  await files.read('../etc/passwd')
} catch (error) {
  if (!(error instanceof SandboxError)) throw error
  console.log(`outside: ${error.code}`)
}
await sandboxes.close()
