/** A process with a limited heap, as `up` starts it, whose threads have smaller limits. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const PROGRAM = `
import { getHeapStatistics } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { keepThreadLimits } from '@sandlot/shared/node/thread-limits'
const limits = []
const read = () => new Promise((resolve) => {
  const code = "import v8 from 'node:v8'; import { parentPort } from 'node:worker_threads'; parentPort.postMessage(v8.getHeapStatistics().heap_size_limit)"
  new Worker(code, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 } }).on('message', resolve)
})
limits.push(await read())
keepThreadLimits()
limits.push(await read(), getHeapStatistics().heap_size_limit)
console.log(JSON.stringify(limits.map((bytes) => bytes / 2 ** 20)))
`

test('flags for the heap of a process leave its threads their own limits', async () => {
  const flags = ['--max-old-space-size=512', '--max-semi-space-size=16', '--conditions=sandlot-source']
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...flags, '--input-type=module', '-e', PROGRAM],
    { cwd: import.meta.dirname },
  )
  const [before = 0, thread = 0, own = 0] = JSON.parse(stdout) as number[]
  expect(before).toBeGreaterThan(500)
  expect(thread).toBeLessThan(32)
  expect(own).toBeGreaterThan(500)
})
