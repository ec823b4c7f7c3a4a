/** Usage: one's own, and everybody's for administrators. */
import { errorBody, userList } from '@sandlot/shared/account/api'
import { makeSandlotEvent } from '@sandlot/shared/chat/events'
import { type Budget, adminUsageView, usageView } from '@sandlot/shared/admin/usage'
import { team } from '@sandlot/shared/account/teams-api'
import type { Effects } from '@sandlot/storage/tables/records'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Browser, type Harness, addUser, setUp, startHarness, waitFor } from '../support/harness.ts'

const DAY = 86_400_000
const FIRST = Date.UTC(2026, 10, 1)
const NOVEMBER = 'from=2026-11-01&to=2026-11-30'
const NONE = { calls: 0, cached: 0, cachedShare: 0, reasoning: 0 }

let harness: Harness
let ann: Browser
let bob: Browser
let ids: Map<string, string>

beforeAll(async () => {
  harness = await startHarness()
  ann = await setUp(harness)
  bob = await addUser(harness, ann, 'bob@example.org')
  const { users } = userList.parse(await (await ann.get('/api/users')).json())
  ids = new Map(users.map(({ email, id }) => [email, id]))
  const bobId = ids.get('bob@example.org') ?? ''
  await ann.patch(`/api/users/${bobId}`, { name: '=cmd|"/c calc"!A1' })
  const data = team.parse(await (await ann.post('/api/teams', { name: 'Data, and more' })).json())
  await ann.put(`/api/teams/${data.id}/members/${bobId}`, { member: true })
  const { store } = harness.agent
  await store.people.known.put(bobId, { teams: [data.id] })
  const annId = ids.get('ann@example.org') ?? ''
  await store.sessions.create({ id: 's_a', userId: annId, cwd: '/workspace', mode: 'manual', at: FIRST })
  await store.sessions.create({ id: 's_b', userId: bobId, cwd: '/workspace', mode: 'manual', at: FIRST })
  const append = (id: string, effects: Effects) =>
    store.log.append(id, [makeSandlotEvent({ type: 'stop_asked' }, {}, FIRST)], effects)
  const answer = { promptId: 'p', model: 'gpt-5', input: 100, output: 20, cached: 0, reasoning: 0 }
  await append('s_a', { usage: { ...answer, cost: 0.25, at: FIRST } })
  await append('s_a', { usage: { ...answer, model: 'home-made', at: FIRST + DAY } })
  await append('s_b', { usage: { ...answer, input: 1_000, cost: 1, at: FIRST + DAY + 5 } })
  const outcome = {
    promptId: 'p',
    tool: 'run_shell_command',
    status: 'completed',
    runMs: 9,
    waitMs: 1,
  } as const
  await append('s_b', { outcome: { ...outcome, callId: 'c', outputBytes: 77, at: FIRST } })
})

afterAll(() => harness.close())

const read = async (by: Browser, path: string): Promise<unknown> => (await by.get(path)).json()
const problem = async (path: string) => {
  const answer = await ann.get(path)
  return [answer.status, errorBody.parse(await answer.json()).message]
}

describe('one’s own', () => {
  test('by day and model, with what limits one; unknown cost is unknown', async () => {
    const budget: Budget = {
      of: 'you',
      name: null,
      period: 'month',
      what: 'cost',
      limit: 5,
      used: 1,
      startsAgainAt: FIRST + 30 * DAY,
      warns: false,
    }
    harness.agent.budgets = [budget]
    const own = usageView.parse(await read(ann, `/api/usage?${NOVEMBER}`))
    const priced = { answers: 1, input: 100, output: 20, ...NONE, cost: 0.25, unpriced: 0 }
    const unpriced = { ...priced, cost: null, unpriced: 1 }
    expect(own).toEqual({
      from: '2026-11-01',
      to: '2026-11-30',
      total: { answers: 2, input: 200, output: 40, ...NONE, cost: 0.25, unpriced: 1 },
      days: [
        { day: '2026-11-01', ...priced },
        { day: '2026-11-02', ...unpriced },
      ],
      models: [
        { model: 'gpt-5', ...priced },
        { model: 'home-made', ...unpriced },
      ],
      budgets: [budget],
    })
    expect(await read(ann, '/api/usage/budgets')).toEqual({ budgets: [budget] })
    const one = usageView.parse(await read(ann, `/api/usage?${NOVEMBER}&model=home-made`))
    expect([one.total, one.days.length, one.models.length]).toEqual([unpriced, 1, 2])
  })

  test('the last 30 days where no day is named', async () => {
    const { from, to } = usageView.parse(await read(ann, '/api/usage'))
    expect(Date.parse(to) - Date.parse(from)).toBe(29 * DAY)
  })

  test('a day that is none, days in the wrong order and too many are refused with a sentence', async () => {
    expect(await problem('/api/usage?from=yesterday')).toEqual([
      400,
      expect.stringMatching(/from.*a day like 2026-11-27/),
    ])
    expect(await problem('/api/usage?from=2026-11-02&to=2026-11-01')).toEqual([
      400,
      'The first day, from, is behind the last one, to.',
    ])
    expect(await problem('/api/usage?from=1990-01-01&to=2026-11-01')).toEqual([
      400,
      'There are at most 3660 days in one answer.',
    ])
    expect((await problem('/api/admin/usage?by=colour'))[0]).toBe(400)
  })

  test('is there without the agent, and says then that limits are not known', async () => {
    await harness.agent.drop()
    try {
      expect(await read(ann, `/api/usage?${NOVEMBER}`)).toMatchObject({
        total: { answers: 2 },
        budgets: null,
      })
    } finally {
      await harness.agent.listen()
      await waitFor(async () => (await fetch(`${harness.service.url}/readyz`)).status === 200)
    }
  })

  test('a guest has none', async () => {
    const bobId = ids.get('bob@example.org') ?? ''
    await ann.patch(`/api/users/${bobId}`, { role: 'guest' })
    const answer = await bob.get('/api/usage')
    await ann.patch(`/api/users/${bobId}`, { role: 'member' })
    expect([answer.status, errorBody.parse(await answer.json()).message]).toEqual([
      403,
      'A guest has no usage of their own: it counts for the owner of the chat.',
    ])
  })
})

describe('that of all', () => {
  const all = async (by: string) =>
    adminUsageView.parse(await read(ann, `/api/admin/usage?${NOVEMBER}&by=${by}`))

  test('is for administrators alone', async () => {
    expect((await bob.get('/api/admin/usage')).status).toBe(403)
  })

  test('by person, team, model and tool, the most first', async () => {
    const people = await all('person')
    expect(people.total).toMatchObject({ answers: 3, input: 1_200, cost: 1.25, unpriced: 1 })
    expect(people.days).toHaveLength(2)
    expect(people.rows).toMatchObject([
      { id: ids.get('bob@example.org'), email: 'bob@example.org', input: 1_000, cost: 1 },
      { id: ids.get('ann@example.org'), name: 'Ann', answers: 2, cost: 0.25, unpriced: 1 },
    ])
    expect((await all('team')).rows).toMatchObject([
      { name: 'Data, and more', answers: 1 },
      { id: null, name: 'No team', answers: 2 },
    ])
    expect((await all('model')).rows).toMatchObject([
      { id: 'gpt-5', name: 'gpt-5', answers: 2 },
      { name: 'home-made', cost: null },
    ])
    expect(await all('tool')).toMatchObject({
      total: { calls: 1, failed: 0, runMs: 9, waitMs: 1, outputBytes: 77 },
      rows: [{ name: 'run_shell_command', outputBytes: 77 }],
    })
  })

  test('as CSV by what is accepted or asked for, where a name is never a formula', async () => {
    const byFormat = await ann.get(`/api/admin/usage?${NOVEMBER}&format=csv`)
    const byHeader = await ann.get(`/api/admin/usage?${NOVEMBER}`, { accept: 'text/csv' })
    const text = await byFormat.text()
    expect(await byHeader.text()).toBe(text)
    expect(byFormat.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(byFormat.headers.get('content-disposition')).toBe(
      'attachment; filename="sandlot-usage-by-person-2026-11-01-2026-11-30.csv"',
    )
    expect(text.split('\r\n').toSorted()).toEqual(
      [
        'day,person,email,answers,calls,input,output,cached,reasoning,cost_usd,unpriced',
        '2026-11-01,Ann,ann@example.org,1,0,100,20,0,0,0.25,0',
        '2026-11-02,Ann,ann@example.org,1,0,100,20,0,0,,1',
        `2026-11-02,"'=cmd|""/c calc""!A1",bob@example.org,1,0,1000,20,0,0,1,0`,
        '',
      ].toSorted(),
    )
    const teams = await (await ann.get(`/api/admin/usage?${NOVEMBER}&by=team&format=csv`)).text()
    expect(teams).toContain('2026-11-02,"Data, and more",1,')
    const tools = await (await ann.get(`/api/admin/usage?${NOVEMBER}&by=tool&format=csv`)).text()
    expect(tools).toBe(
      'day,tool,calls,failed,run_ms,wait_ms,output_bytes\r\n2026-11-01,run_shell_command,1,0,9,1,77\r\n',
    )
  })
})
