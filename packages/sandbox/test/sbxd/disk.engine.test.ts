import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { extent, sample } from '../../../../test/campaign.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import type { Sandbox } from '../../src/sandbox.ts'
import type { Sandboxes } from '../../src/controller/sandboxes.ts'
import { finish, newId, sh } from '../contract/harness.ts'
import { type DockerFixture, dockerFixture } from '../support/docker-fixture.ts'
import { buildHider, HIDING, HONEST } from '../support/hider.ts'
import { type OwnEngine, startOwnEngine, whyNoOwnEngine } from '../failures/own-engine.ts'

const MiB = 1024 * 1024
/** Small: the disk of the host must not notice. */
const LIMITS = {
  ...DEFAULT_LIMITS,
  memoryBytes: 256 * MiB,
  tmpBytes: 40 * MiB,
  diskBytes: 64 * MiB,
  diskEntries: 2_000,
}
const FOREVER = 90_000

describe('one sandbox', () => {
  let fixture: DockerFixture
  let sandboxes: Sandboxes
  let sandbox: Sandbox
  beforeAll(async () => {
    fixture = await dockerFixture()
    sandboxes = fixture.controller({ limits: LIMITS })
    sandbox = await sandboxes.acquire('tester')
  })
  afterAll(() => fixture.dispose())

  test('R05 a full /tmp is ENOSPC at its size, and later commands run', async () => {
    const full = await sh(sandbox, 'head -c 10G /dev/zero >/tmp/f; stat -c %s /tmp/f', { timeoutMs: FOREVER })
    expect(full.err).toContain('No space left on device')
    expect(full.out).toBe(`${LIMITS.tmpBytes}\n`)
    expect(await sh(sandbox, 'echo fine')).toMatchObject({ code: 0, out: 'fine\n' })
    expect((await sandbox.stat()).scratch.bytes).toBeGreaterThanOrEqual(LIMITS.tmpBytes)
    await sandbox.reset()
    expect((await sandbox.stat()).scratch.bytes).toBeLessThan(MiB)
  })

  test('R06 scratch full, then the heap: the OOM killer takes the command only, and reset empties it', async () => {
    const fill =
      'head -c 10G /dev/zero >/tmp/f; head -c 10G /dev/zero >/dev/shm/f; head -c 10G /dev/zero >/run/f'
    await sh(sandbox, fill, { timeoutMs: FOREVER })
    const bomb = await sh(sandbox, ['perl', '-e', '$x .= "a" x 1048576 while 1'], { timeoutMs: FOREVER })
    expect(bomb.cause).toBe('oom')
    expect(await sh(sandbox, 'echo alive')).toMatchObject({ code: 0, out: 'alive\n' })
    await sandbox.reset()
    expect(await sh(sandbox, 'ls -A /tmp /dev/shm')).toMatchObject({ out: '/dev/shm:\n\n/tmp:\n' })
  })

  test('R09 space is taken by writing it, a hole has no size beyond the limit, and no ioctl is a way round', async () => {
    const took = await sh(sandbox, 'fallocate -l 1T f')
    expect(took.cause).toBe('disk_quota')
    expect(await sh(sandbox, 'fallocate -l 50M f')).toMatchObject({ code: 1 })
    expect((await sh(sandbox, 'truncate -s 8E f')).code).not.toBe(0)
    expect(await sh(sandbox, 'truncate -s 60M hole && stat -c %s hole')).toMatchObject({
      out: `${60 * MiB}\n`,
    })
    const requests = ['0x401c5820', '0x40086602', '0x40305828', '0x4030582a', '0x40305839']
    const closed = await sh(sandbox, [
      'perl',
      '-e',
      'open my $f, ">", "g" or die; for (@ARGV) { my $b = "\\0" x 128; $! = 0; ioctl $f, hex, $b; print 0 + $!, " " }',
      ...requests,
    ])
    expect(closed.out).toBe('1 '.repeat(requests.length))
    expect((await sh(sandbox, 'rm -f f g hole')).code).toBe(0)
  })

  test('R14 writing without end stops at the budget and a little more, typed, in one file and in many', async () => {
    expect((await sh(sandbox, 'cat /dev/zero >f', { timeoutMs: FOREVER })).cause).toBe('disk_quota')
    expect((await sandbox.stat()).disk.bytes).toBeLessThanOrEqual(LIMITS.diskBytes + MiB)
    expect((await sh(sandbox, 'rm f')).code).toBe(0)

    const many = 'i=0; while :; do head -c 8M /dev/zero >f$i; i=$((i + 1)); done'
    expect((await sh(sandbox, many, { timeoutMs: FOREVER })).cause).toBe('disk_quota')
    const { disk } = await sandbox.stat()
    expect(disk.over).toBe(true)
    // Bytes written between two measurements; `docs/disk.md` has figures.
    expect(disk.bytes).toBeLessThan(LIMITS.diskBytes + 512 * MiB)
    expect((await sandboxes.status('tester')).stat?.disk).toMatchObject({ over: true })
    expect(await sh(sandbox, 'echo x >x')).toMatchObject({ cause: 'disk_quota' })
    expect(await sh(sandbox, 'rm -f f*')).toMatchObject({ cause: 'exited', code: 0 })
    expect(await sh(sandbox, 'echo x >x && cat x')).toMatchObject({ code: 0, out: 'x\n' })
  })
})

/** A fifth of them in one directory. */
const FILES = extent(20_000, 1_000_000)
const MAKE_FILES = `
import os
def some(where, n):
    os.mkdir(where)
    for i in range(n): os.close(os.open(f"{where}/{i}", os.O_CREAT))
some("flat", ${FILES / 5})
for d in range(${(FILES / 5) * 4} // 1000): some(f"d{d}", 1000)
`

test(
  `${FILES} files: STAT answers while they are counted, the budget holds, a list has an end, and stop, start and remove work`,
  async () => {
    const fixture = await dockerFixture()
    try {
      const sandboxes = fixture.controller({ limits: { ...DEFAULT_LIMITS, diskEntries: FILES + 2_000 } })
      const sandbox = await sandboxes.acquire('tester')
      const state = { made: false }
      const making = sh(sandbox, ['python3', '-c', MAKE_FILES], { timeoutMs: 20 * FOREVER })
      void making.finally(() => (state.made = true))
      let asked = 0
      for (; !state.made; asked += 1) expect((await sandbox.stat()).disk.over).toBe(false)
      expect(await making).toMatchObject({ cause: 'exited', code: 0, err: '' })
      expect(asked).toBeGreaterThan(1)
      // Counting costs at most a part of the CPU, so of so many it is not counted at once.
      const counted = async (): Promise<number> => (await sandbox.stat()).disk.entries
      await expect.poll(counted, { timeout: FOREVER }).toBeGreaterThanOrEqual(FILES)

      if (FILES / 5 > 100_000)
        await expect(sandbox.files.list('flat')).rejects.toThrow('more than 100000 entries')
      else expect(await sandbox.files.list('flat')).toHaveLength(FILES / 5)
      const more = 'mkdir more; i=0; while :; do : >more/$((i++)); done'
      expect((await sh(sandbox, more, { timeoutMs: FOREVER })).cause).toBe('disk_quota')
      expect(await sh(sandbox, 'echo x >x')).toMatchObject({ cause: 'disk_quota' })
      expect(await sh(sandbox, 'rm -r more d? d??')).toMatchObject({ cause: 'exited', code: 0 })
      await expect.poll(async () => (await sandbox.stat()).disk.over, { timeout: FOREVER }).toBe(false)
      expect(await sh(sandbox, 'echo x >x')).toMatchObject({ cause: 'exited', code: 0 })

      await sandboxes.stop('tester')
      const again = await sandboxes.acquire('tester')
      await again.files.remove('flat', { recursive: true })
      expect(await sh(again, 'ls -d flat x 2>/dev/null')).toMatchObject({ out: 'x\n' })
    } finally {
      await fixture.dispose()
    }
  },
  extent(120_000, 1_800_000),
)

const reason = whyNoOwnEngine()
describe.skipIf(reason !== undefined)(`a host that runs out of disk${reason ? ` (${reason})` : ''}`, () => {
  let engine: OwnEngine
  let fixture: DockerFixture
  beforeAll(async () => {
    // Room below the floors for what is written until somebody looks: here a disk is as fast as
    // memory.
    engine = await startOwnEngine({ bytes: 1024 * MiB })
    fixture = await dockerFixture({ host: engine.host })
  })
  afterAll(async () => {
    await fixture.dispose()
    await engine.dispose()
  })

  test.each(sample('hiding', Object.entries(HIDING), 2))(
    'below the floor nobody goes on writing unseen: %s',
    async (_, script) => {
      const floor = 640 * MiB
      const sandboxes = fixture.controller({
        limits: { ...DEFAULT_LIMITS, diskBytes: 2048 * MiB },
        host: { diskFloor: { bytes: floor, files: 0 }, lookEveryMs: 100 },
      })
      const [hider, honest, agent] = await Promise.all(
        ['hider', 'honest', 'agent'].map((user) => sandboxes.acquire(user)),
      )
      if (!hider || !honest || !agent) throw new Error('three were asked for')
      const program = await buildHider(fixture.folder)
      await Promise.all([hider, agent].map((sandbox) => sandbox.files.write('hider', program)))
      const sleeping = await agent.run({
        id: newId(),
        command: `chmod 755 hider; exec ${HONEST}`,
        stdin: true,
      })
      // Nobody waits for the dead, and there is always somebody who has just begun: neither hides.
      const others = '(sleep 0 & exec sleep 1000) & (while :; do /bin/true; done) &'
      const command = `${others} read x; echo $x`
      const reading = await honest.run({ id: newId(), command, stdin: true })
      const end = await sh(hider, `chmod 755 hider; ${script}`, { timeoutMs: FOREVER })
      expect(end).toMatchObject({ cause: 'disk_quota', err: '' })
      // Ended, it holds nothing any more.
      await expect.poll(() => sandboxes.hostDisk().open, { timeout: 30_000 }).toBe(false)
      await reading.writeStdin(Buffer.from('not me\n'))
      expect((await finish(reading)).out).toBe('not me\n')
      await sleeping.writeStdin(Buffer.from('?'))
      expect(await finish(sleeping)).toMatchObject({ cause: 'exited', out: 'on\nstill on\n' })
    },
  )

  test('R16 many write below their quota: all are stopped above the floor, and go on when there is space', async () => {
    const users = Array.from({ length: extent(4, 50) }, (_, n) => `user-${n}`)
    const floor = 384 * MiB
    const sandboxes = fixture.controller({
      limits: { ...DEFAULT_LIMITS, diskBytes: 2048 * MiB },
      host: { diskFloor: { bytes: floor, files: 0 }, lookEveryMs: 100 },
    })
    const all = await Promise.all(users.map((user) => sandboxes.acquire(user)))
    const write = 'i=0; while :; do head -c 1M /dev/zero >f$i; i=$((i + 1)); done'
    const ends = await Promise.all(all.map((sandbox) => sh(sandbox, write, { timeoutMs: FOREVER })))
    expect(new Set(ends.map(({ cause }) => cause))).toEqual(new Set(['disk_quota']))
    await expect.poll(() => sandboxes.hostDisk().open, { timeout: 30_000 }).toBe(true)
    expect((await fixture.backend.inventory.hostDisk?.())?.bytes).toBeGreaterThan(0)
    await expect(sandboxes.acquire('newcomer')).rejects.toMatchObject({ code: 'host_disk_low' })
    expect(await engine.docker('version', '--format', '{{.Server.Version}}')).not.toBe('')

    const cleaned = await Promise.all(all.map((sandbox) => sh(sandbox, 'find . -name "f*" -delete')))
    expect(new Set(cleaned.map(({ code }) => code))).toEqual(new Set([0]))
    await expect.poll(() => sandboxes.hostDisk().open, { timeout: 30_000 }).toBe(false)
    const again = await Promise.all(
      users.map(async (user) => sh(await sandboxes.acquire(user), 'echo x >x && cat x')),
    )
    expect(new Set(again.map(({ out }) => out))).toEqual(new Set(['x\n']))
  })
})
