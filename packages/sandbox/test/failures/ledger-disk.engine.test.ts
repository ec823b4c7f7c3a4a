/** The disk that the ledger is on fills up. On a small file system of the test's own. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { openSessionStore } from '../../../storage/src/store/open.ts'
import { createFileLedger } from '../../src/controller/file-ledger.ts'
import { dockerFixture, type DockerFixture, shell } from '../support/docker-fixture.ts'
import { fillDisk } from './own-engine.ts'
import { usable } from './say.ts'

const run = promisify(execFile)
const reason = process.getuid?.() === 0 ? undefined : 'mounting a small disk needs root'

describe.skipIf(reason !== undefined)(`the ledger’s disk is full${reason ? ` (${reason})` : ''}`, () => {
  let fixture: DockerFixture
  let disk: string
  const stores: { close(): Promise<void> }[] = []
  beforeEach(async () => {
    fixture = await dockerFixture()
    disk = await mkdtemp(join(tmpdir(), 'sandlot-ledger-'))
    await run('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'sandlot-test', disk])
  })
  afterEach(async () => {
    await fixture.dispose()
    for (const store of stores.splice(0)) await store.close()
    await run('umount', ['-l', disk])
    await rm(disk, { recursive: true, force: true })
  })

  /** The library's own, and the product's. */
  const ledgers = {
    'a file': async () => ({ ledger: createFileLedger(join(disk, 'ledger.json')), close: async () => {} }),
    SQLite: () => openSessionStore(join(disk, 'sessions.db')),
  }
  test.each(Object.entries(ledgers))(
    '%s: who has a sandbox keeps it, who has none gets a typed error, and one when there is space',
    async (_, open) => {
      const store = await open()
      stores.push(store)
      const sandboxes = fixture.controller({ ledger: store.ledger })
      const ann = await sandboxes.acquire('ann')
      const free = await fillDisk(disk)
      expect((await shell(ann, 'echo works')).output).toBe('works\n')
      await expect(sandboxes.acquire('bob')).rejects.toMatchObject({ code: 'ledger' })
      expect(await fixture.containers()).toEqual([ann.id])
      await free()
      await usable(sandboxes, 'bob')
      expect(await sandboxes.acquire('ann')).toBe(ann)
      expect(await fixture.containers()).toHaveLength(2)
      expect(await fixture.volumes()).toHaveLength(2)
    },
  )
})
