/** People, teams, and what administrators set for them. */
import { account, errorBody, userList } from '@sandlot/shared/account/api'
import type { Mode } from '@sandlot/shared/chat/mode'
import { effectiveSettingsView, settingsAnswer, settingsView } from '@sandlot/shared/account/agent-settings'
import { team, teamList } from '@sandlot/shared/account/teams-api'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Tab, addUser, browser, makeKey, setUp, startHarness, waitFor } from '../support/harness.ts'
import type { Browser, Harness } from '../support/harness.ts'

let harness: Harness
let ann: Browser
let bob: Browser
let bobId: string

beforeEach(async () => {
  harness = await startHarness()
  ann = await setUp(harness)
  bob = await addUser(harness, ann, 'bob@example.org')
  bobId = await idOf('bob@example.org')
})

afterEach(() => harness.close())

const idOf = async (email: string): Promise<string> => {
  const { users } = userList.parse(await (await ann.get('/api/users')).json())
  return users.find((user) => user.email === email)?.id ?? ''
}
const makeTeam = async (name: string) => team.parse(await (await ann.post('/api/teams', { name })).json())
const errorOf = async (response: Response) => errorBody.parse(await response.json())

test('only administrators who are signed in may', async () => {
  const { id } = await makeTeam('Data')
  const asked = async (by: Browser): Promise<number[]> => {
    const answers = [
      await by.get('/api/teams'),
      await by.post('/api/teams', { name: 'x' }),
      await by.patch(`/api/teams/${id}`, { name: 'x' }),
      await by.put(`/api/teams/${id}/members/${bobId}`, { member: true }),
      await by.get(`/api/teams/${id}/settings`),
      await by.put(`/api/teams/${id}/settings`, { settings: {}, revision: 0 }),
      await by.delete(`/api/teams/${id}`),
      await by.patch(`/api/users/${bobId}`, { role: 'admin' }),
      await by.get(`/api/users/${bobId}/settings`),
      await by.put(`/api/users/${bobId}/settings`, { settings: {}, revision: 0 }),
      await by.get(`/api/users/${bobId}/effective`),
    ]
    return answers.map(({ status }) => status)
  }
  expect(new Set(await asked(bob))).toEqual(new Set([403]))
  const authorization = `Bearer ${await makeKey(ann)}`
  expect((await ann.get('/api/teams', { cookie: '', authorization })).status).toBe(403)
  expect(harness.agent.settings.size).toBe(0)
})

describe('a team', () => {
  test('has members and settings, of which a member reads what holds and where it comes from', async () => {
    const data = await makeTeam('Data')
    expect((await ann.post('/api/teams', { name: 'data' })).status).toBe(409)
    const tab = await Tab.of(bob, harness.service.url)
    const joined = await ann.put(`/api/teams/${data.id}/members/${bobId}`, { member: true })
    expect(team.parse(await joined.json()).members).toEqual([{ userId: bobId, source: 'admin' }])
    await waitFor(() => tab.closed !== undefined)
    expect(tab.closed?.code).toBe(4009)
    expect(harness.agent.received).toContain(`person ${bobId} member 1`)

    const settings = { modeCeiling: 'manual', models: ['small'] }
    const put = await ann.put(`/api/teams/${data.id}/settings`, { settings, revision: 0 })
    expect(settingsView.parse(await put.json())).toEqual({ settings, revision: 1 })
    const own = effectiveSettingsView.parse(await (await bob.get('/api/me/effective')).json())
    expect(own.modeCeiling).toMatchObject({ value: 'manual', from: { kind: 'teams' } })
    // Settings that apply to him where none is set for him alone; for the team, those of the
    // deployment.
    const without = async (path: string) =>
      settingsAnswer.parse(await (await ann.get(`/api/${path}/settings`)).json())
    expect(await without(`users/${bobId}`)).toMatchObject({ revision: 0, without: own })
    expect(await without(`teams/${data.id}`)).toMatchObject({
      settings,
      without: { modeCeiling: { value: 'yolo', from: { kind: 'deployment' } } },
      offered: { models: expect.arrayContaining(['small']) as unknown },
    })
    const shown = await (await ann.get(`/api/users/${bobId}/effective`)).json()
    expect(effectiveSettingsView.parse(shown)).toEqual(own)
    expect(await (await ann.get('/api/me/effective')).json()).toMatchObject({
      modeCeiling: { value: 'yolo', from: { kind: 'deployment' } },
    })

    expect((await ann.delete(`/api/teams/${data.id}`)).status).toBe(204)
    expect(harness.agent.settings.size).toBe(0)
    expect(harness.agent.received).toContain(`person ${bobId} member 0`)
  })

  test('that two administrators change is the first one’s, whose change the second reads', async () => {
    const { id } = await makeTeam('Data')
    const put = (instructions: string) =>
      ann.put(`/api/teams/${id}/settings`, { settings: { instructions }, revision: 0 })
    const [, second] = [await put('Use pandas.'), await put('Use polars.')]
    expect(second.status).toBe(409)
    expect(await second.json()).toMatchObject({
      code: 'conflict',
      current: { settings: { instructions: 'Use pandas.' }, revision: 1 },
    })
    await ann.patch(`/api/teams/${id}`, { name: 'Numbers', was: 'Data' })
    const renamed = await ann.patch(`/api/teams/${id}`, { name: 'Figures', was: 'Data' })
    expect(await renamed.json()).toMatchObject({ code: 'conflict', current: { name: 'Numbers' } })
  })

  test('of the configuration file is adopted once, with members who come later', async () => {
    harness.agent.teamSeeds = [
      { id: 't_seed', name: 'Data', members: ['bob@example.org', 'later@example.org'] },
    ]
    await makeTeam('data')
    await harness.restart()
    ann = browser(harness.service.url, ann.cookie)
    const adopted = async () =>
      teamList.parse(await (await ann.get('/api/teams')).json()).teams.find(({ id }) => id === 't_seed')
    await waitFor(() => harness.agent.teamSeeds.length === 0)
    expect(await adopted()).toMatchObject({ name: 'Data (2)', members: [{ userId: bobId }] })
    expect(harness.agent.received).toContain(`person ${bobId} member 1`)
    await addUser(harness, ann, 'later@example.org')
    expect((await adopted())?.members).toContainEqual({
      userId: await idOf('later@example.org'),
      source: 'admin',
    })
    // One that an administrator has removed does not come back.
    await ann.delete('/api/teams/t_seed')
    harness.agent.teamSeeds = [{ id: 't_seed', name: 'Data', members: [] }]
    await harness.restart()
    ann = browser(harness.service.url, ann.cookie)
    await waitFor(() => harness.agent.teamSeeds.length === 0)
    expect(await adopted()).toBeUndefined()
  })
})

describe('a person', () => {
  test('gets another role at once; the last administrator keeps theirs', async () => {
    const guest = await ann.patch(`/api/users/${bobId}`, { role: 'guest', was: { role: 'member' } })
    expect(account.parse(await guest.json())).toMatchObject({ id: bobId, role: 'guest' })
    expect(harness.agent.received).toContain(`person ${bobId} guest 0`)
    const again = await ann.patch(`/api/users/${bobId}`, { name: 'Robert', was: { role: 'member' } })
    expect(again.status).toBe(409)
    expect(await again.json()).toMatchObject({ code: 'conflict', current: { role: 'guest' } })
    const last = await ann.patch(`/api/users/${await idOf('ann@example.org')}`, { role: 'member' })
    expect(await errorOf(last)).toMatchObject({ code: 'conflict' })
    expect((await ann.patch('/api/users/nobody', { role: 'admin' })).status).toBe(404)
  })

  test('sees only the models that are for them', async () => {
    const settings = { models: ['small'] }
    await ann.put(`/api/users/${bobId}/settings`, { settings, revision: 0 })
    harness.agent.status.models = [
      { name: 'scripted', thoughtLevels: [], images: false },
      { name: 'small', thoughtLevels: [], images: true },
    ]
    expect(await (await bob.get('/api/me')).json()).toMatchObject({
      model: { name: 'small' },
      models: [{ name: 'small' }],
    })
    expect(await (await ann.get('/api/me')).json()).toMatchObject({
      models: [{ name: 'scripted' }, { name: 'small' }],
    })
  })
})

test('a team’s ceiling is the mode of a member’s new chat, and said to their page', async () => {
  const { id } = await makeTeam('Careful')
  await ann.put(`/api/teams/${id}/members/${bobId}`, { member: true })
  const set = async (modeCeiling: Mode, revision: number) =>
    ann.put(`/api/teams/${id}/settings`, { settings: { modeCeiling }, revision })
  expect((await set('manual', 0)).status).toBe(200)
  expect(await (await bob.get('/api/me')).json()).toMatchObject({
    defaultMode: 'manual',
    modeCeiling: 'manual',
  })
  expect(await (await ann.get('/api/me')).json()).toMatchObject({
    defaultMode: 'auto-edit',
    modeCeiling: 'yolo',
  })
  await set('auto', 1)
  expect(await (await bob.get('/api/me')).json()).toMatchObject({
    defaultMode: 'auto-edit',
    modeCeiling: 'auto',
  })
})

test('without the agent nothing is half changed, and the answer says why', async () => {
  const { id } = await makeTeam('Data')
  await ann.put(`/api/teams/${id}/members/${bobId}`, { member: true })
  await harness.agent.drop()
  for (const tried of [
    await ann.delete(`/api/teams/${id}`),
    await ann.patch(`/api/teams/${id}`, { name: 'Numbers' }),
    await ann.put(`/api/teams/${id}/settings`, { settings: {}, revision: 0 }),
    await ann.get(`/api/users/${bobId}/effective`),
  ])
    expect((await errorOf(tried)).code).toBe('agent_unavailable')
  const { teams } = teamList.parse(await (await ann.get('/api/teams')).json())
  expect(teams).toEqual([{ id, name: 'Data', members: [{ userId: bobId, source: 'admin' }] }])
  // Roles and membership are the accounts’ alone.
  expect((await ann.patch(`/api/users/${bobId}`, { role: 'guest' })).status).toBe(200)
})
