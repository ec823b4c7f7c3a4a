import { expect, test } from 'vitest'
import { JobTooSlowError, WorkerPool } from '../../src/tools/worker-pool.ts'

const scriptOf = (code: string): URL =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`import { parentPort } from 'node:worker_threads'\n${code}`)}`,
  )
const poolOf = (code: string, threads = 1): WorkerPool<string, string> =>
  new WorkerPool<string, string>({ script: scriptOf(code), threads, maxHeapMb: 64 })
const OBEYS = `
const does = {
  exit: () => process.exit(3),
  throw: () => { throw new Error('of the job') },
  fill: () => { for (const all = []; ;) all.push(Array(1e5).fill(all.length)) },
  loop: () => { for (;;); },
}
parentPort.on('message', (job) => parentPort.postMessage(does[job]?.() ?? job))
parentPort.postMessage('loaded')`

test.each(['exit', 'throw', 'fill'])('a thread that ends by itself rejects its own job: %s', async (job) => {
  const pool = poolOf(OBEYS)
  const ended = await Promise.allSettled(['a', job, 'b'].map((each) => pool.run(each, {})))
  expect(ended).toMatchObject([
    { value: { answer: 'a' } },
    { status: 'rejected' },
    { value: { answer: 'b' } },
  ])
  await pool.close()
})

test('a job that takes too long, or is not wanted any more, ends its thread alone', async () => {
  const pool = poolOf(OBEYS, 2)
  const stop = new AbortController()
  const slow = pool.run('loop', { cpuMs: 50 })
  const unwanted = pool.run('loop', { signal: stop.signal })
  await expect(slow).rejects.toBeInstanceOf(JobTooSlowError)
  stop.abort('stopped')
  await expect(unwanted).rejects.toBe('stopped')
  expect(await pool.run('a', { cpuMs: 10_000 })).toMatchObject({ answer: 'a' })
  await pool.close()
})

test('a thread that never loads rejects what waits for it', async () => {
  const pool = poolOf('process.exit(0)')
  await expect(pool.run('a', {})).rejects.toThrow('its thread ended')
  await expect(pool.run('b', {})).rejects.toThrow('its thread ended')
})
