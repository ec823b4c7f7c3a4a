/** The operator's program beside the agent, over folders instead of an engine. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { lockFile } from '@sandlot/storage/lock'
import { openSessionStore } from '@sandlot/storage/sessions/open'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nodeEnvironment } from '../../../../test/config.ts'
import { deploymentKeys } from '../../src/secrets/keys.ts'

const program = join(import.meta.dirname, '../../src/admin/sandboxes.ts')

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-admin-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

async function admin(...args: string[]): Promise<unknown> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--conditions=sandlot-source', program, ...args],
    {
      env: { ...nodeEnvironment(), SANDLOT_DATA: folder, SANDLOT_SANDBOX: 'local-process' },
    },
  )
  return JSON.parse(stdout)
}

async function oneUserAndOneStray(): Promise<void> {
  deploymentKeys(folder)
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

test('removes everything only while no agent runs', async () => {
  await oneUserAndOneStray()
  const running = lockFile(join(folder, 'run', 'agent.lock'))
  await expect(admin('purge')).rejects.toThrow(/is running/)
  expect(existsSync(join(folder, 'workspaces', 'theirs'))).toBe(true)
  running?.release()
  expect(await admin('purge')).toEqual({ containers: 0, volumes: 2 })
  expect(await admin('list')).toEqual([])
}, 60_000)
