/** The operator's program beside the agent, over folders instead of an engine. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { lockFile } from '@sandlot/storage/database/lock'
import { openSessionStore } from '@sandlot/storage/store/open'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { LOCAL_PROCESS, nodeEnvironment } from '../../../../test/config.ts'
import { describeOnPostgres } from '../../../storage/test/support/on-postgres.ts'
import { deploymentKeys } from '@sandlot/shared/node/deployment-keys'

const program = join(import.meta.dirname, '../../src/agent/sandboxes.ts')

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-admin-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const admin = (...args: string[]): Promise<unknown> => adminWith({}, ...args)

async function adminWith(settings: Record<string, string>, ...args: string[]): Promise<unknown> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--conditions=sandlot-source', program, ...args],
    {
      env: { ...nodeEnvironment(), SANDLOT_DATA: folder, ...LOCAL_PROCESS, ...settings },
    },
  )
  return JSON.parse(stdout)
}

async function oneUserAndOneStray(): Promise<void> {
  deploymentKeys(join(folder, 'keys'))
  mkdirSync(join(folder, 'run'))
  const store = await openSessionStore(join(folder, 'sessions.db'))
  const slot = { slot: 'aaaaaaaa', uid: 30_000, volume: 'theirs', generation: 1, createdAt: 1 }
  await store.ledger.add({ ...slot, state: 'claimed', userId: 'ann', claimedAt: 1 })
  await store.close()
  for (const name of ['theirs', 'stray']) mkdirSync(join(folder, 'workspaces', name), { recursive: true })
}

test('nothing is made by asking before the first start', async () => {
  expect(await admin('list')).toEqual([])
  expect(await admin('purge')).toEqual({ containers: 0, volumes: 0 })
  expect(existsSync(join(folder, 'sessions.db'))).toBe(false)
}, 60_000)

test('lists whose a workspace is, and removes only what is nobody’s', async () => {
  await oneUserAndOneStray()
  expect(await admin('list')).toEqual([
    { volume: 'stray', slot: '', owner: 'nobody' },
    { volume: 'theirs', slot: 'aaaaaaaa', owner: 'claimed', userId: 'ann', since: 1 },
  ])
  expect(await admin('ownerless')).toEqual(['stray'])
  expect(await admin('prune', 'stray', 'theirs')).toEqual(['stray'])
  expect(existsSync(join(folder, 'workspaces', 'stray'))).toBe(false)
  expect(existsSync(join(folder, 'workspaces', 'theirs'))).toBe(true)
}, 60_000)

test('sandboxes are listed and stopped also with a configuration that no agent starts with', async () => {
  await oneUserAndOneStray()
  writeFileSync(join(folder, 'sandlot.json'), 'no JSON')
  const broken = { OPENAI_API_KEY: 'sk-without-a-model', SANDLOT_MAX_TURNS: 'many' }
  expect(await adminWith(broken, 'stop')).toEqual([])
  expect(await adminWith(broken, 'ownerless')).toEqual(['stray'])
  await expect(adminWith(broken, 'purge')).rejects.toThrow(/SANDLOT_MAX_TURNS/)
}, 60_000)

test('beside an agent what is only asked changes nothing, like a copy of a chat that is being made', async () => {
  await oneUserAndOneStray()
  const copy = { id: 'copy', userId: '', cwd: '/workspace', mode: 'manual', at: Date.now() } as const
  const store = await openSessionStore(join(folder, 'sessions.db'))
  await store.sessions.create(copy)
  for (const act of ['list', 'ownerless', 'agents']) await admin(act)
  await expect(store.sessions.create(copy)).rejects.toThrow()
  await store.close()
}, 60_000)

test('removes everything only while no agent runs', async () => {
  await oneUserAndOneStray()
  const running = lockFile(join(folder, 'run', 'agent.lock'))
  await expect(admin('purge')).rejects.toThrow(/is running/)
  expect(existsSync(join(folder, 'workspaces', 'theirs'))).toBe(true)
  running?.release()
  expect(await admin('purge')).toEqual({ containers: 0, volumes: 2 })
  expect(await admin('list')).toEqual([])
}, 60_000)

test('one of several agents keeps everything too, by its own lock', async () => {
  await oneUserAndOneStray()
  mkdirSync(join(folder, 'replicas', 'host-2', 'run'), { recursive: true })
  const running = lockFile(join(folder, 'replicas', 'host-2', 'run', 'agent.lock'))
  await expect(admin('purge')).rejects.toThrow(/is running \(host-2\)/)
  running?.release()
}, 60_000)

describeOnPostgres('with PostgreSQL', (postgres) => {
  test('agents on other hosts keep everything too, and are named', async () => {
    deploymentKeys(join(folder, 'keys'))
    mkdirSync(join(folder, 'workspaces', 'stray'), { recursive: true })
    const url = await postgres.database('elsewhere')
    const store = await openSessionStore(url)
    await store.replicas.register({ id: 'other-host', url: 'wss://other-host:7443/acp', version: '1' })
    const beating = setInterval(() => void store.replicas.heartbeat(), 1_000)
    const onPostgres = (...args: string[]) => adminWith({ DATABASE_URL: url }, ...args)
    expect(await onPostgres('agents')).toEqual(['other-host'])
    await expect(onPostgres('purge')).rejects.toThrow(/is running \(other-host\)/)
    clearInterval(beating)
    await store.replicas.unregister()
    expect(await onPostgres('purge')).toEqual({ containers: 0, volumes: 1 })
    await store.close()
  }, 60_000)
})
