import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { createLocalProcessBackend } from '../../src/backends/local-process.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { buildSbxd } from '../support/build-sbxd.ts'
import { Bench, sh } from '../contract/harness.ts'

const run = promisify(execFile)
const MiB = 1024 * 1024
const SIZE = 24 * MiB

let folder: string
let volume: string
/** Why the file system of the test's own cannot be had here. */
let missing: string | undefined

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandlot-wall-'))
  volume = join(folder, 'volumes', 'wall')
  await mkdir(volume, { recursive: true })
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}`, 'sandlot-test', volume])
  } catch (error) {
    missing = String(error)
  }
}, 60_000)

afterAll(async () => {
  if (missing === undefined) await run('umount', ['-l', volume])
  await rm(folder, { recursive: true, force: true })
}, 60_000)

test('a workspace that is a file system of its own: the kernel counts and is the wall, and a full one is disk_quota', async ({
  skip,
}) => {
  skip(missing !== undefined, `no file system of its own here: ${missing}`)
  const backend = createLocalProcessBackend({
    sbxd: await buildSbxd(folder),
    directory: join(folder, 'volumes'),
  })
  const spec = {
    name: 'wall',
    slot: 'abcdefgh',
    uid: 30_000,
    volume: 'wall',
    image: 'none',
    limits: DEFAULT_LIMITS,
    labels: {},
  }
  try {
    const { sandbox } = await Bench.start({
      backend,
      spec: () => spec,
      dispose: () => backend.inventory.close(),
    })
    // The floor of the host is not this file system's.
    await sandbox.setDiskBudget({
      bytes: SIZE,
      entries: 0,
      hostFloor: { bytes: 2 ** 50, files: 0 },
    })
    await sandbox.files.write('first', new Uint8Array(10))
    const full = await sh(sandbox, 'cat /dev/zero >full', { timeoutMs: 60_000 })
    expect(full.cause).toBe('disk_quota')
    expect(full.err).toContain('No space left on device')
    const { disk } = await sandbox.stat()
    expect(disk).toMatchObject({ countedBy: 'file_system', over: false, hostLow: false })
    expect(disk.bytes).toBeLessThanOrEqual(SIZE)
    expect(await sh(sandbox, 'rm full; echo x >x; cat x')).toMatchObject({ cause: 'exited', out: 'x\n' })
  } finally {
    await backend.inventory.close()
  }
}, 120_000)
