/**
 * The disk below one workspace answers nobody any more: a small file system of the test's own,
 * frozen.
 */
import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { Sandboxes } from '../../src/controller/sandboxes.ts'
import { dockerFixture, type DockerFixture, shell } from '../support/docker-fixture.ts'
import { findProgram, type OwnEngine, startOwnEngine, whyNoOwnEngine } from './own-engine.ts'
import { say, usable } from './say.ts'

const run = promisify(execFile)
const MiB = 1024 * 1024
/** Whatever becomes of the test, nothing stays frozen longer. */
const THAW_AFTER_S = 100

/** Why this machine cannot freeze a disk of a test's own; undefined when it can. */
function whyNoFrozenDisk(): string | undefined {
  const missing = ['mkfs.ext4', 'losetup', 'fsfreeze'].filter((program) => !findProgram(program))
  return whyNoOwnEngine() ?? (missing.length > 0 ? `${missing.join(', ')} not installed here` : undefined)
}

/**
 * Nothing is written to the file system at `path` until the function that is returned was called,
 * or the time is over.
 */
async function freeze(path: string): Promise<() => Promise<void>> {
  // Before it freezes, and a process of its own: it thaws even when this one is killed.
  const guard = spawn('sh', ['-c', `sleep ${THAW_AFTER_S}; fsfreeze --unfreeze "$0"`, path], {
    detached: true,
    stdio: 'ignore',
  })
  await run('fsfreeze', ['--freeze', path])
  return async () => {
    // Fails when the guard was first: then something waited for the disk.
    await run('fsfreeze', ['--unfreeze', path])
    if (guard.pid !== undefined) process.kill(-guard.pid)
  }
}

const reason = whyNoFrozenDisk()
describe.skipIf(reason !== undefined)(`a disk that hangs${reason ? ` (${reason})` : ''}`, () => {
  let engine: OwnEngine
  let fixture: DockerFixture
  let sandboxes: Sandboxes
  let disk: string
  let mounted = false
  beforeAll(async () => {
    engine = await startOwnEngine()
    const circuit = { askAfterMs: 500, answerMs: 1_500, retryMs: 200 }
    fixture = await dockerFixture({ host: engine.host, circuit })
    sandboxes = fixture.controller()
    await Promise.all([sandboxes.acquire('ann'), sandboxes.acquire('bob')])
    await sandboxes.stop('ann')
    const volume = (await fixture.ledger.find('ann'))?.volume ?? ''
    disk = await engine.docker('volume', 'inspect', '--format', '{{.Mountpoint}}', volume)
    const image = join(engine.folder, 'disk.img')
    await writeFile(image, '')
    await truncate(image, 16 * MiB)
    await run('mkfs.ext4', ['-q', image])
    await run('mount', ['-o', 'loop', image, disk])
    mounted = true
    await chmod(disk, 0o1777)
  })
  afterAll(async () => {
    try {
      if (mounted) await run('umount', ['-l', disk])
    } finally {
      try {
        await fixture?.dispose()
      } finally {
        await engine?.dispose()
      }
    }
  })

  test('a stop has an end, no other user waits, and with the disk everything is back', async () => {
    const ann = await sandboxes.acquire('ann')
    expect((await shell(ann, 'echo kept >file; stat -f -c %T .')).output).toBe('ext2/ext3\n')
    const thaw = await freeze(disk)
    try {
      // One that the kernel lets nobody end, and words that cannot be written.
      const id = (): string => randomBytes(16).toString('hex')
      await ann.run({ id: id(), command: 'echo lost >other', background: true })
      const session = await ann.run({ id: id(), command: 'export WORD=new', session: 'one' })
      expect(await session.exit).toMatchObject({ code: 0 })
      // The kernel keeps whoever writes, but process 1 is dead, which is what an engine calls
      // stopped.
      await sandboxes.stop('ann')
      expect(await sandboxes.status('ann')).toMatchObject({ state: 'stopped', connected: false })
      expect(await say(sandboxes, 'echo works', 'bob')).toBe('works')
    } finally {
      await thaw()
    }
    await usable(sandboxes)
    expect(await say(sandboxes, 'cat file')).toBe('kept')
    expect(await fixture.containers()).toHaveLength(2)
    expect(await fixture.volumes()).toHaveLength(2)
  }, 240_000)
})
