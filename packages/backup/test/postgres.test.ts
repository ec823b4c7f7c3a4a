/** Backups of a Sandlot whose databases are on PostgreSQL, by PostgreSQL's own programs, into an empty database. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeMeta } from '@sandlot/shared/chat/event-meta'
import { type SessionEvent, textOf } from '@sandlot/shared/chat/events'
import { findPgProgram } from '@sandlot/shared/node/pg-programs'
import { openAccounts } from '@sandlot/storage/accounts/accounts'
import { openSessionReader, openSessionStore } from '@sandlot/storage/store/open'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AgentFolder } from '../../ai-agent/test/support/agent-process.ts'
import { startFakeProvider, textAnswer } from '../../ai-agent/test/support/fake-provider.ts'
import { describeOnPostgres } from '../../storage/test/support/on-postgres.ts'
import { makeBackup, type MadeBackup, type OpenWorkspaces } from '../src/backup.ts'
import { BackupError } from '../src/backup-error.ts'
import { migrate } from '../src/migrate.ts'
import { programOf } from '../src/pg-process.ts'
import { restoreBackup } from '../src/restore.ts'
import { makeDeployment } from './support/deployment.ts'
import { LOCAL_PROCESS } from '../../../test/config.ts'

const PASSPHRASE = 'correct horse battery staple'
const machine = { PATH: process.env['PATH'] ?? '' }

const message = (text: string): SessionEvent => ({
  sessionUpdate: 'agent_message_chunk',
  messageId: 'm',
  content: { type: 'text', text },
  _meta: makeMeta({}, 0),
})

const problem = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'it did not fail',
    (error: unknown) => (error instanceof BackupError ? error.code : error),
  )

describeOnPostgres('on PostgreSQL', (postgres) => {
  let folder: string
  let to: string
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sandlot-backup-'))
    to = join(folder, 'backups')
  }, 60_000)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const backup = (
    data: string,
    url: string,
    workspaces?: OpenWorkspaces,
    doing: (part: string) => void = () => undefined,
  ): Promise<MadeBackup> =>
    makeBackup({
      data,
      postgres: { url, machine },
      to,
      passphrase: PASSPHRASE,
      settings: [],
      workspaces,
      version: '0.1.0',
      doing,
    })

  const restore = (file: string, data: string, url: string | undefined, passphrase = PASSPHRASE) =>
    restoreBackup({
      file,
      data,
      postgres: url === undefined ? undefined : { url, machine },
      passphrase,
      workspaces: undefined,
      engineFolder: undefined,
      doing: () => undefined,
    })

  test('while a prompt waits and others write, both stores are of one moment; restored, the prompt goes on', async () => {
    const url = await postgres.database('lives')
    const provider = await startFakeProvider([{ steps: [], after: 'hang' }])
    await using original = new AgentFolder()
    const environment = {
      ...LOCAL_PROCESS,
      OPENAI_BASE_URL: provider.baseUrl,
      OPENAI_MODEL: 'scripted',
    }
    const agent = original.start({ ...environment, DATABASE_URL: url }, ['--stdio'])
    const ask = (id: number, method: string, params: object): void =>
      agent.send({ jsonrpc: '2.0', id, method, params })
    ask(0, 'initialize', { protocolVersion: 1, clientCapabilities: {} })
    ask(1, 'session/new', { cwd: '/workspace', mcpServers: [] })
    const sessionId = await expect
      .poll(() => /"sessionId":"([^"]+)"/.exec(agent.stdout)?.[1], { timeout: 30_000 })
      .toBeDefined()
      .then(() => /"sessionId":"([^"]+)"/.exec(agent.stdout)?.[1] ?? '')
    ask(2, 'session/prompt', { sessionId, prompt: [{ type: 'text', text: 'hi' }] })
    await expect.poll(() => provider.requests.length, { timeout: 10_000 }).toBe(1)

    const store = await openSessionStore(url)
    const accounts = await openAccounts(url, { secret: 's'.repeat(32), publicUrl: 'http://127.0.0.1' })
    await store.sessions.create({ id: 'busy', userId: 'u', cwd: '/workspace', mode: 'yolo', at: 0 })
    let written = 0
    const stop = new AbortController()
    const writer = (async () => {
      while (!stop.signal.aborted) await store.log.append('busy', [message(`line ${(written += 1)}`)])
    })()
    await expect.poll(() => written).toBeGreaterThan(5)
    const { file, at } = await backup(original.path, url)
    const after = written
    await expect.poll(() => written).toBeGreaterThan(after + 5)
    stop.abort()
    await writer
    await store.close()
    await accounts.close()
    await agent.kill()
    expect(Math.abs(Date.parse(at) - Date.now())).toBeLessThan(60_000)

    const empty = await postgres.database('restored')
    await using restored = new AgentFolder()
    expect(await problem(restore(file, restored.path, undefined))).toBe('other_database')
    expect(await problem(restore(file, restored.path, empty, 'another one'))).toBe('wrong_passphrase')
    await restore(file, restored.path, empty)
    expect(await problem(restore(file, join(folder, 'second'), empty))).toBe('not_empty')

    const reader = await openSessionReader(empty)
    const lines = (await reader.log.read('busy')).flatMap((event) =>
      event.sessionUpdate === 'agent_message_chunk' ? [textOf(event)] : [],
    )
    // Without a gap, and not those of later.
    expect(lines).toEqual(lines.map((_, place) => `line ${place + 1}`))
    expect(lines.length).toBeLessThanOrEqual(after + 1)
    expect(lines.length).toBeGreaterThan(4)

    provider.add(textAnswer('After the restore.'))
    await restored.listening({ ...environment, DATABASE_URL: empty })
    const answers = async () =>
      (await reader.log.read(sessionId)).flatMap((event) =>
        event.sessionUpdate === 'agent_message_chunk' ? [textOf(event)] : [],
      )
    await expect.poll(answers, { timeout: 20_000 }).toContain('After the restore.')
    await reader.close()
    await restored.killAll()
    await provider.close()
  }, 90_000)

  test('a later PostgreSQL than the pg_dump here, an empty database and files are refused in words', async () => {
    const data = join(folder, 'data')
    await makeDeployment(data)
    const url = await postgres.database('refused')
    expect(await problem(backup(data, url))).toBe('no_deployment')
    await (await openSessionStore(url)).close()

    const old = join(folder, 'old')
    mkdirSync(old)
    writeFileSync(join(old, 'pg_dump'), '#!/bin/sh\necho "pg_dump (PostgreSQL) 98.6"\n', { mode: 0o755 })
    expect(() => programOf('pg_dump', 99, { PATH: old })).toThrow(
      /^pg_dump of PostgreSQL 99 or later is needed, and this machine has only that of 98\.6\./,
    )

    const files = await makeBackup({
      data,
      to,
      passphrase: PASSPHRASE,
      settings: [],
      workspaces: undefined,
      version: '0.1.0',
      doing: () => undefined,
    })
    const empty = await postgres.database('for_files')
    expect(await problem(restore(files.file, join(folder, 'files'), empty))).toBe('other_database')
    expect(readdirSync(folder)).not.toContain('files')
  })

  test('two data folders of one database, as those of two Jobs, are backed up one after the other', async () => {
    const [data, other] = [join(folder, 'job'), join(folder, 'other-job')]
    for (const each of [data, other]) await makeDeployment(each)
    const url = await postgres.database('jobs')
    await (await openSessionStore(url)).close()
    let tried: unknown
    const first = backup(data, url, async () => {
      tried = await backup(other, url).catch((error: unknown) => error)
      throw new Error('it was ended here')
    })
    await expect(first).rejects.toThrow('it was ended here')
    expect(tried).toMatchObject({ code: 'running' })
    expect(await backup(other, url)).toMatchObject({ leftOut: [] })
  })

  test('a backup whose lock is lost with its connection ends, and leaves no file', async () => {
    const data = join(folder, 'unlocked')
    await makeDeployment(data)
    const url = await postgres.database('unlocked')
    await (await openSessionStore(url)).close()
    const before = readdirSync(to)
    const psql = findPgProgram('psql', 15, machine).path
    const cut =
      "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())"
    const made = backup(data, url, undefined, (part) => {
      if (part === 'keys and settings') execFileSync(psql, ['--quiet', '--command', cut, url])
    })
    await expect(made).rejects.toMatchObject({ name: 'StorageError', code: 'unreachable' })
    expect(readdirSync(to)).toEqual(before)
    expect(await backup(data, url)).toMatchObject({ leftOut: [] })
  })

  test('a database that a move has not ended in is neither backed up nor restored into', async () => {
    const data = join(folder, 'moved')
    await makeDeployment(data)
    const url = await postgres.database('half')
    const other = await postgres.database('whole')
    await (await openSessionStore(other)).close()
    const { file } = await backup(data, other)
    const moved = migrate({
      data,
      url,
      doing: (what) => {
        if (what.startsWith('sessions.')) throw new Error('it was ended here')
      },
    })
    await expect(moved).rejects.toThrow('it was ended here')
    const before = readdirSync(to)
    await expect(backup(data, url)).rejects.toMatchObject({
      code: 'cannot_open',
      message: expect.stringContaining('./sandlot migrate has not ended yet. Run it again'),
    })
    expect(readdirSync(to)).toEqual(before)
    expect(await problem(restore(file, join(folder, 'not-moved'), url))).toBe('not_empty')
  })

  test('a database that a later Sandlot has migrated is refused, and nothing is written', async () => {
    const data = join(folder, 'later')
    await makeDeployment(data)
    const url = await postgres.database('later')
    await (await openSessionStore(url)).close()
    const later = "insert into sessions.kysely_migration values ('999_later', '2030')"
    execFileSync(findPgProgram('psql', 15, machine).path, ['--quiet', '--command', later, url])
    const { file } = await backup(data, url)
    const there = join(folder, 'not-there')
    expect(await problem(restore(file, there, await postgres.database('newer')))).toBe('newer')
    expect(readdirSync(folder)).not.toContain('not-there')
  })
})
