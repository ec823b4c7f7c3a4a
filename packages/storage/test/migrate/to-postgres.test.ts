/** Files of SQLite that are moved into PostgreSQL: all of it is there, and they are as they were. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { searchQuery } from '@sandlot/shared/search/search'
import Database from 'better-sqlite3'
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { campaign, extent, randomFrom } from '../../../../test/campaign.ts'
import { nodeEnvironment } from '../../../../test/config.ts'
import { openAccounts } from '../../src/accounts/accounts.ts'
import { connectPostgres } from '../../src/database/postgres.ts'
import { moveToPostgres } from '../../src/migrate/to-postgres.ts'
import { openSessionReader, openSessionStore } from '../../src/store/open.ts'
import { describeOnPostgres } from '../support/on-postgres.ts'

const CHILD = join(import.meta.dirname, '../support/move-child.ts')
const OPTIONS = { secret: 'x'.repeat(40), publicUrl: 'http://127.0.0.1:8002' }
const ANN = { name: 'Ann', email: 'ann@example.org', password: 'correct horse', role: 'admin' as const }

const message = (text: string): SessionEvent => ({
  sessionUpdate: 'agent_message_chunk',
  messageId: 'm',
  content: { type: 'text', text },
  _meta: makeMeta({}, 1),
})

describeOnPostgres('on PostgreSQL', (postgres) => {
  let made = 0
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandlot-move-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  const empty = (): Promise<string> => postgres.database(`moved_${++made}`)
  const files = () => ({ sessions: join(folder, 'sessions.db'), accounts: join(folder, 'accounts.db') })
  const move = (url: string) =>
    moveToPostgres({ files: files(), folder: join(folder, 'moving'), url, doing: () => undefined })
  /** Bytes by file of the folder. */
  const bytes = () =>
    new Map(
      readdirSync(folder)
        .filter((name) => name.includes('.db'))
        .map((name) => [name, readFileSync(join(folder, name)).toString('base64')]),
    )

  async function fill(chats = 3): Promise<void> {
    const store = await openSessionStore(files().sessions)
    for (let n = 0; n < chats; n++) {
      const id = `s${n}`
      await store.sessions.create({ id, userId: 'ann', cwd: '/workspace', mode: 'manual', at: 1_000 + n })
      await store.log.append(
        id,
        Array.from({ length: 120 }, (_, at) => message(`chat ${n}: walrus ${at} \0 \u{1f600} é`)),
        {
          usage: {
            promptId: 'p',
            model: 'm',
            input: 1,
            output: 2,
            cached: 0,
            reasoning: 0,
            cost: 0.1 + 0.2,
            at: 5,
          },
          notifications: [{ userId: 'ann', kind: 'shared', ref: 'r' }],
        },
      )
      await store.outputs.append(id, 'c', 0, Buffer.alloc(700_000, n))
    }
    await store.admin.audit.write({ who: { id: 'ann', name: 'Ann' }, what: 'secret_set' })
    await store.close()
    const accounts = await openAccounts(files().accounts, OPTIONS)
    await accounts.users.create(ANN)
    await accounts.audit.write({ who: { id: 'ann', name: 'Ann' }, what: 'secret_set' })
    await accounts.close()
  }

  function byHand(file: 'sessions' | 'accounts', statement: string): void {
    const database = new Database(files()[file])
    database.exec(statement)
    database.close()
  }

  test('every row is there, searches find it, and it goes on; the files are as they were', async () => {
    await fill()
    // An earlier version stored fractions of milliseconds.
    byHand('sessions', "update sessions set updated_at = 1000.4 where id = 's1'")
    const before = bytes()
    const url = await empty()
    const moved = await move(url)
    expect(bytes()).toEqual(before)
    const rows = new Map(moved.map((table) => [table.name, table.rows]))
    expect(rows.get('sessions.events')).toBe(360)
    expect(rows.get('sessions.output_chunks')).toBe(9)
    expect(rows.get('accounts.auth_user')).toBe(1)

    const store = await openSessionStore(url)
    const file = await openSessionReader(files().sessions)
    expect(await store.log.read('s1')).toEqual(await file.log.read('s1'))
    await file.close()
    expect(Buffer.from(await store.outputs.read('s2', 'c', 0, 700_000))).toEqual(Buffer.alloc(700_000, 2))
    const { hits } = await store.sessions.search({ id: 'ann' }, searchQuery.parse({ q: '"walrus 119"' }))
    expect(hits.map(({ sessionId }) => sessionId).toSorted()).toEqual(['s0', 's1', 's2'])
    await store.log.append('s0', [message('walrus 120')])
    expect(await store.admin.audit.check()).toMatchObject({ lines: 1, problems: [] })
    await store.close()
    const accounts = await openAccounts(url, OPTIONS)
    expect(await accounts.signIns.signIn(ANN, {})).toMatchObject({ account: { email: ANN.email } })
    expect(await accounts.audit.check()).toMatchObject({ lines: 1, problems: [] })
    await accounts.close()
    await expect(move(url)).rejects.toMatchObject({ name: 'StorageError', code: 'not_empty' })
  }, 60_000)

  test.each(['746e6ed', '0c626b5e'])(
    'data of the earlier version %s, as it is',
    async (commit) => {
      const archive = join(import.meta.dirname, `../../../../test/fixtures/older-data/${commit}.tar.gz`)
      execFileSync('tar', ['-C', folder, '-xzf', archive])
      const before = bytes()
      const url = await empty()
      await move(url)
      expect(bytes()).toEqual(before)
      const { db, close } = connectPostgres(url)
      const { rows } = await sql<{
        id: string
      }>`select distinct user_id as id from sessions.sessions`.execute(db)
      await close()
      const reader = await openSessionReader(url)
      const { hits } = await reader.sessions.search(
        { id: rows[0]?.id ?? '' },
        searchQuery.parse({ q: 'hello' }),
      )
      expect(hits.length).toBeGreaterThan(0)
      await reader.close()
    },
    60_000,
  )

  test(`killed anywhere it goes on, with the same files only, and no Sandlot opens a half (seed ${campaign.seed})`, async () => {
    await fill(2)
    const random = randomFrom('move')
    for (let run = 0; run < extent(1, 20); run++) {
      const url = await empty()
      let kills = 0
      for (;;) {
        const child = spawn(process.execPath, ['--conditions=sandlot-source', CHILD, folder, url], {
          env: nodeEnvironment(),
          stdio: ['ignore', 'pipe', 'inherit'],
        })
        const lines = kills < 3 ? 1 + Math.floor(random() * 30) : Number.POSITIVE_INFINITY
        let said = ''
        child.stdout.setEncoding('utf8').on('data', (text: string) => {
          said += text
          if (said.split('\n').length > lines) child.kill('SIGKILL')
        })
        const [code] = (await once(child, 'close')) as [number | null]
        if (code === 0) break
        expect(code).toBeNull()
        kills += 1
        if (kills !== 1 || !said.includes('rows')) continue
        await expect(openSessionStore(url)).rejects.toMatchObject({
          code: 'cannot_open',
          message: expect.stringContaining('migrate has not ended'),
        })
        const before = bytes()
        byHand('accounts', "update auth_user set name = 'Other'")
        await expect(move(url)).rejects.toMatchObject({ code: 'other_source' })
        for (const [name, content] of before)
          execFileSync('tee', [join(folder, name)], {
            input: Buffer.from(content, 'base64'),
            stdio: ['pipe', 'ignore', 'inherit'],
          })
      }
      const store = await openSessionStore(url)
      expect(await store.log.read('s1')).toHaveLength(120)
      expect(
        (await store.sessions.search({ id: 'ann' }, searchQuery.parse({ q: '"walrus 7"' }))).hits,
      ).toHaveLength(2)
      await store.close()
    }
  }, 120_000)

  test('U+0000 in any text is left out and counted, and keys that only it keeps apart stay two', async () => {
    await fill(1)
    byHand(
      'sessions',
      `insert into projects (id, user_id, name, folder, instructions)
         values ('p', 'ann', 'a' || char(0) || 'b', '', char(0) || 'be' || char(0));
       insert into instructions (user_id, text, updated_at) values ('ann', 'a' || char(0), 1);
       insert into submissions (session_id, user_id, request_id, prompt_id)
         values ('s0', 'ann', 'ab', 'p1'), ('s0', 'ann', 'a' || char(0) || 'b', 'p2');
       insert into outcomes (session_id, call_id, tool, status, run_ms, wait_ms)
         values ('s0', 'c', 'a' || char(0) || 'b', 'completed', 1, 1);`,
    )
    const url = await empty()
    const moved = await move(url)
    expect(moved.filter(({ leftOut }) => leftOut > 0).map(({ name, leftOut }) => [name, leftOut])).toEqual([
      ['sessions.instructions', 1],
      ['sessions.outcomes', 1],
      ['sessions.projects', 3],
      ['sessions.submissions', 1],
    ])
    const store = await openSessionStore(url)
    expect(await store.chats.projects('ann')).toMatchObject([{ name: 'ab', instructions: 'be' }])
    expect(await store.log.findSubmission('ann', 'ab')).toMatchObject({ promptId: 'p1' })
    expect(await store.log.findSubmission('ann', 'a\uFFFDb')).toMatchObject({ promptId: 'p2' })
    await store.close()
  }, 60_000)

  test('a damaged row is named, and a newer version, another login and no database are refused', async () => {
    await fill(1)
    byHand('sessions', "update events set at = 'yesterday' where seq = 7")
    await expect(move(await empty())).rejects.toMatchObject({
      code: 'corrupt',
      message: expect.stringMatching(/^A row of sessions\.events \(.*seq 7.*is damaged: at: it is text/),
    })
    byHand('sessions', 'update events set at = 1 where seq = 7')
    const url = await empty()
    await expect(move(url.replace('sandlot@', 'stranger@'))).rejects.toMatchObject({ code: 'cannot_open' })
    byHand('sessions', "insert into kysely_migration (name, timestamp) values ('999_later', '')")
    await expect(move(url)).rejects.toMatchObject({ code: 'newer_schema' })
    byHand('sessions', "delete from kysely_migration where name = '999_later'")
    rmSync(files().accounts)
    await expect(move(url)).rejects.toMatchObject({ code: 'cannot_open' })
  }, 60_000)
})
