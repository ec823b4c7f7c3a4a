/** `./sandlot people`, as the process that it starts. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { accountsMigrations } from '@sandlot/storage/accounts/migrations'
import { openWriter } from '@sandlot/storage/database/database'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ANN, addUser, browser, setUp, startHarness, waitFor } from './support/harness.ts'
import type { Browser, Harness } from './support/harness.ts'

const PROGRAM = fileURLToPath(new URL('../src/people/people-admin.ts', import.meta.url))
let harness: Harness
let ann: Browser

beforeEach(async () => {
  harness = await startHarness()
  ann = await setUp(harness)
  await addUser(harness, ann, 'bob@example.org')
})

afterEach(async () => {
  await harness.close()
})

async function admin(args: string[], folder = harness.folder): Promise<unknown> {
  const env = { PATH: process.env['PATH'], SANDLOT_DATA: folder }
  const ran = promisify(execFile)(process.execPath, ['--conditions=sandlot-source', PROGRAM, ...args], {
    env,
  })
  const { stdout } = await ran.catch((error: { code: number; stdout: string }) => {
    if (error.code === 3) return error
    throw error
  })
  return JSON.parse(stdout)
}

const users = async () => ((await admin(['list'])) as { users: { id: string }[] }).users

test('while the service runs all accounts are listed, and nothing is changed', async () => {
  expect(await admin(['list'])).toMatchObject({
    did: 'list',
    users: [{ email: ANN.email, role: 'admin' }, { email: 'bob@example.org' }],
    removed: [],
  })
  for (const args of [
    ['password', ANN.email],
    ['remove', 'bob@example.org', 'purge'],
  ])
    expect(await admin(args)).toMatchObject({ did: 'nothing', reason: 'running' })
})

test('says what holds for a person beside a running service, and changes a role where none runs', async () => {
  await ann.put(`/api/users/${(await users())[1]?.id}/settings`, {
    settings: { modeCeiling: 'manual' },
    revision: 0,
  })
  expect(await admin(['show', 'BOB@example.org'])).toMatchObject({
    did: 'show',
    person: { email: 'bob@example.org' },
    effective: { modeCeiling: { value: 'manual', from: { kind: 'person' } } },
  })
  expect(await admin(['show', 'nobody'])).toMatchObject({ did: 'nothing', reason: 'no_such_person' })
  await harness.agent.drop()
  expect(await admin(['show', 'bob@example.org'])).toMatchObject({ did: 'nothing', reason: 'not_running' })
  await harness.service.close()
  expect(await admin(['role', 'bob@example.org', 'guest'])).toMatchObject({ person: { role: 'guest' } })
  expect(await admin(['role', ANN.email, 'member'])).toMatchObject({ did: 'nothing', reason: 'refused' })
  expect((await users())[1]).toMatchObject({ role: 'guest' })
})

test('sets a password for a locked-out user, and ends an account; the next start does the rest', async () => {
  await harness.service.close()
  const { password } = (await admin(['password', 'ANN@example.org'])) as { password: string }
  expect(await admin(['remove', ANN.email, 'keep'])).toMatchObject({ did: 'nothing', reason: 'refused' })
  expect(await admin(['remove', 'nobody', 'keep'])).toMatchObject({ reason: 'no_such_person' })
  const removed = await admin(['remove', 'bob@example.org', 'purge'])
  expect(removed).toMatchObject({ did: 'remove', removal: { name: 'Bob', data: 'purge', done: false } })
  await harness.restart()
  const { url } = harness.service
  expect((await browser(url, ann.cookie).get('/api/me')).status).toBe(401)
  const signIn = (secret: string) =>
    browser(url, '').post('/api/sign-in', { email: ANN.email, password: secret })
  expect((await signIn(ANN.password)).status).toBe(401)
  expect((await signIn(password)).status).toBe(200)
  const { id } = (removed as { removal: { id: string } }).removal
  await waitFor(() => harness.agent.received.includes(`remove ${id} purge`))
})

test('keeping the files of a user who is being purged is refused as too late', async () => {
  const id = (removed: unknown) => (removed as { removal: { id: string } }).removal.id
  harness.agent.beforeRemoval = () => new Promise(() => undefined)
  await harness.service.close()
  const bob = id(await admin(['remove', 'bob@example.org', 'purge']))
  expect(await admin(['remove', bob, 'keep'])).toMatchObject({
    reason: 'refused',
    message: expect.stringContaining('are being deleted already'),
  })
  await harness.restart()
  await waitFor(() => harness.agent.received.includes(`remove ${bob} purge`))
})

test('an older version’s accounts are listed after the next start, and until then refused with a reason', async () => {
  await harness.service.close()
  const path = join(harness.folder, 'accounts.db')
  const older = Object.fromEntries(Object.entries(accountsMigrations).slice(0, -1))
  await rm(path)
  await (await openWriter(path, older)).close()
  expect(await admin(['list'])).toMatchObject({
    did: 'nothing',
    reason: 'other_version',
    message: expect.stringContaining('has not been started since. Start it once'),
  })
  await rm(path)
  const newer = { ...accountsMigrations, '999_tomorrow': async () => undefined }
  await (await openWriter(path, newer)).close()
  expect(await admin(['list'])).toMatchObject({
    reason: 'other_version',
    message: expect.stringContaining('written by a newer version of Sandlot'),
  })
  await rm(path)
  await harness.restart()
  expect(await admin(['list'])).toMatchObject({ did: 'list', users: [] })
})

test('in a folder that is no Sandlot’s it makes nothing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-nobodys-'))
  try {
    expect(await admin(['password', ANN.email], folder)).toMatchObject({ reason: 'no_deployment' })
    expect(await readdir(folder)).toEqual([])
  } finally {
    await rm(folder, { recursive: true })
  }
})
