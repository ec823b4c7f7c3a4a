/**
 * A PostgreSQL with a full disk: writes are refused whole with an error, and work again after space
 * was made.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { textOf } from '@sandlot/shared/chat/events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openSessionStore } from '../../src/store/open.ts'
import { message } from '../support/contract.ts'
import { describeOnPostgres } from '../support/on-postgres.ts'

const MiB = 1024 * 1024
const isRoot = process.getuid?.() === 0
if (!isRoot) process.stderr.write('full-disk: left out, mounting a small disk needs root\n')

describe.skipIf(!isRoot)('a small disk', () => {
  describeOnPostgres('of PostgreSQL', (postgres) => {
    let folder: string
    let disk: string
    let url: string
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'sandlot-full-'))
      disk = join(folder, 'disk')
      mkdirSync(disk)
      chmodSync(folder, 0o755)
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=48m,uid=65534,gid=65534', 'sandlot-test', disk])
      const empty = await postgres.database('empty')
      await (await openSessionStore(empty)).close()
      await postgres.rows('postgres', `create tablespace small location '${disk}'`)
      await postgres.rows('postgres', 'create database full_one template empty tablespace small')
      url = empty.replace('/empty?', '/full_one?')
    }, 60_000)
    afterAll(async () => {
      await postgres.end('SIGINT')
      execFileSync('umount', ['-l', disk])
      rmSync(folder, { recursive: true })
    })

    test('refuses whole what it has no space for, says so until there is some, and has all that it took', async () => {
      const store = await openSessionStore(url)
      await store.sessions.create({ id: 's', userId: 'ann', cwd: '/workspace', mode: 'manual', at: 1 })
      const taken: string[] = []
      const append = async (text: string): Promise<void> => {
        const asked = { toolCallId: text, askedAt: 1, expiresAt: 2 }
        const long = 'x'.repeat(MiB / 8) + Math.random()
        await store.log.append('s', [message(text), message(long)], { approvalAsked: asked })
        taken.push(text)
      }
      await append('before')
      await store.outputs.append('s', 'c', 0, new Uint8Array(MiB))

      const ballast = join(disk, 'ballast')
      const { bavail, bsize } = statfsSync(disk)
      writeFileSync(ballast, new Uint8Array(bavail * bsize))
      const full = {
        name: 'StorageError',
        code: 'full',
        message: expect.stringContaining('there is no space left on its disk; make room'),
      }
      // Pages that were there have some room.
      const fill = async (): Promise<never> => {
        for (let n = 0; ; n += 1) await append(`while full ${n}`)
      }
      await expect(fill()).rejects.toMatchObject(full)
      const output = store.outputs.append('s', 'c', MiB, crypto.getRandomValues(new Uint8Array(65_536)))
      await expect(output).rejects.toMatchObject(full)
      expect(await store.problem()).toMatchObject({ code: 'full' })
      expect(await store.problem()).toMatchObject({ code: 'full' })

      rmSync(ballast)
      expect(await store.problem()).toBeUndefined()
      await append('after')
      await store.outputs.append('s', 'c', MiB, new Uint8Array(MiB))
      expect(await store.outputs.get('s', 'c')).toMatchObject({ storedBytes: 2 * MiB, totalBytes: 2 * MiB })
      expect(await store.outputs.read('s', 'c', 0, 3 * MiB)).toHaveLength(2 * MiB)
      const events = await store.log.read('s')
      const texts = events.flatMap((event) =>
        event.sessionUpdate === 'agent_message_chunk' ? [textOf(event)] : [],
      )
      expect(texts.filter((_, place) => place % 2 === 0)).toEqual(taken)
      expect(texts).toHaveLength(2 * taken.length)
      const asked = await postgres.rows<{ id: string }>('full_one', ASKED)
      expect(asked.map(({ id }) => id)).toEqual(taken)
      await store.close()
    }, 60_000)
  })
})

const ASKED = 'select tool_call_id as id from sessions.approvals order by ctid'
