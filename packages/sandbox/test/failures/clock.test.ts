/**
 * The wall clock jumps; nothing that waits may notice. The host's clock is never touched: sbxd gets
 * another one.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'

import { createLocalProcessBackend } from '../../src/backends/local-process.ts'
import { createFileLedger } from '../../src/controller/file-ledger.ts'
import { createSandboxes, type Sandboxes } from '../../src/controller/sandboxes.ts'
import { shell } from '../support/docker-fixture.ts'

const run = promisify(execFile)
const sources = fileURLToPath(new URL('../../../../docker/sandbox/src', import.meta.url))

/** Every look at the wall clock finds it an hour further, or an hour back. */
const JUMPING_CLOCK = `
#include <sys/time.h>
#include <time.h>
int __real_clock_gettime(clockid_t clock, struct timespec *at);
static long jump(void) { static int turn; return ++turn % 2 ? 3600 : -3600; }
int __wrap_clock_gettime(clockid_t clock, struct timespec *at) {
    int result = __real_clock_gettime(clock, at);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) at->tv_sec += jump();
    return result;
}
time_t __wrap_time(time_t *at) {
    struct timespec now;
    __wrap_clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
int __wrap_gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    (void)zone;
    __wrap_clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec, at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
`

let folder: string
let sandboxes: Sandboxes
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandlot-clock-'))
  await writeFile(join(folder, 'clock.c'), JUMPING_CLOCK)
  const files = (await readdir(sources, { recursive: true }))
    .filter((name) => name.endsWith('.c'))
    .map((name) => join(sources, name))
  const wrapped = ['clock_gettime', 'time', 'gettimeofday'].map((name) => `-Wl,--wrap=${name}`)
  const flags = ['-std=gnu11', '-O1', '-static', '-pthread', ...wrapped]
  await run('gcc', [...flags, '-o', join(folder, 'sbxd'), ...files, join(folder, 'clock.c')])
  const backend = createLocalProcessBackend({
    sbxd: join(folder, 'sbxd'),
    directory: join(folder, 'volumes'),
  })
  sandboxes = createSandboxes({
    backend,
    ledger: createFileLedger(join(folder, 'ledger.json')),
    deploymentId: 'test-clock',
    deploymentKey: Buffer.alloc(32, 7),
    image: 'none',
  })
}, 60_000)
afterAll(async () => {
  await sandboxes.stopAll()
  await sandboxes.close()
  await rm(folder, { recursive: true, force: true })
})
afterEach(() => vi.useRealTimers())

const id = (digit: string): string => digit.repeat(32)

test('inside: a timeout of a command is neither early nor late', async () => {
  const sandbox = await sandboxes.acquire('ann')
  const fast = await sandbox.run({ id: id('1'), command: 'sleep 0.5; echo done', timeoutMs: 15_000 })
  expect(await fast.exit).toMatchObject({ cause: 'exited', code: 0 })
  const slow = await sandbox.run({ id: id('2'), command: 'sleep 300', timeoutMs: 300 })
  const exit = await slow.exit
  expect(exit).toMatchObject({ cause: 'timeout' })
  // It counts from the START, the duration from the fork behind it; the clock jumps by hours.
  expect(exit.durationMs).toBeGreaterThan(250)
  expect(exit.durationMs).toBeLessThan(15_000)
})

test.each([3_600_000, -3_600_000])(
  'in the controller, by %i ms: nothing is lost, everything works',
  async (jump) => {
    const before = await sandboxes.acquire('ann')
    const running = await before.run({ id: id(jump > 0 ? '3' : '4'), command: 'sleep 0.5; echo done' })
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + jump })
    expect(await running.exit).toMatchObject({ cause: 'exited', code: 0 })
    expect(await sandboxes.acquire('ann')).toBe(before)
    expect((await shell(before, 'echo works')).output).toBe('works\n')
    const user = `new${jump}`
    expect((await shell(await sandboxes.acquire(user), 'echo works')).output).toBe('works\n')
  },
)
