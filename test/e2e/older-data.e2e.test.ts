/**
 * Data folders of earlier versions (test/fixtures/older-data): all content is available, and a pending prompt
 * resumes.
 */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { metaOf } from '@sandlot/shared/chat/events'
import { afterEach, expect, test } from 'vitest'
import { openSessionReader } from '../../packages/storage/src/store/open.ts'
import {
  type FakeProvider,
  startFakeProvider,
  textAnswer,
} from '../../packages/ai-agent/test/support/fake-provider.ts'
import { onlyInFullRun } from '../campaign.ts'
import { ACCOUNT } from './browser.ts'
import { eventually, type RunningSandlot, startSandlot } from './processes.ts'

let sandlot: RunningSandlot | undefined
let provider: FakeProvider | undefined
afterEach(async () => {
  await sandlot?.stop()
  await provider?.close()
})

/** Gives the open approval another day: it expired a day after the fixture was written. */
function extendApprovals(file: string): void {
  using database = new DatabaseSync(file)
  const expiresAt = Date.now() + 86_400_000
  database.prepare('UPDATE approvals SET expires_at = ?').run(expiresAt)
  const inEvent = '$._meta.sandlot.event.expiresAt'
  database
    .prepare(`UPDATE events SET json = json_set(json, ?, ?) WHERE json_extract(json, ?) IS NOT NULL`)
    .run(inEvent, expiresAt, inEvent)
}

// The oldest goes through the most migrations.
test.for(['746e6ed', '0c626b5e'])('of %s', async (commit, { skip }) => {
  if (commit !== '746e6ed') onlyInFullRun(skip)
  provider = await startFakeProvider()
  provider.add(textAnswer('It waited.'))
  const archive = new URL(`../fixtures/older-data/${commit}.tar.gz`, import.meta.url).pathname
  const { url, data } = (sandlot = await startSandlot({
    agent: { OPENAI_BASE_URL: provider.baseUrl, OPENAI_MODEL: 'scripted' },
    fill: (folder) => {
      execFileSync('tar', ['-C', folder, '-xzf', archive])
      extendApprovals(join(folder, 'sessions.db'))
    },
  }))
  const headers: Record<string, string> = { origin: url, 'content-type': 'application/json' }
  const { email, password } = ACCOUNT
  const body = JSON.stringify({ email, password })
  const signedIn = await fetch(`${url}/api/sign-in`, { method: 'POST', headers, body })
  expect(signedIn.status).toBe(200)
  headers['cookie'] = signedIn.headers
    .getSetCookie()
    .map((each) => each.split(';')[0])
    .join('; ')
  const get = async (path: string): Promise<unknown> =>
    (await fetch(`${url}/api/${path}`, { headers })).json()

  expect(await get('secrets')).toMatchObject({ secrets: [{ name: 'TOKEN' }] })
  expect(await get('rules')).toMatchObject({ rules: [{ effect: 'deny', match: { shell: 'reboot' } }] })
  const { sessions } = (await get('sessions')) as { sessions: { sessionId: string }[] }
  expect(sessions).toHaveLength(2)
  const texts = async (): Promise<string> => {
    const reader = await openSessionReader(join(data, 'sessions.db'))
    const events = await Promise.all(sessions.map(({ sessionId }) => reader.log.read(sessionId)))
    await reader.close()
    return JSON.stringify(events.flat().filter((event) => metaOf(event).event?.type !== 'prompt_started'))
  }
  expect(await texts()).toContain('Hello, Ada.')

  const waiting = await eventually('the approval', async () => {
    const { approvals } = (await get('approvals')) as { approvals: { sessionId: string; callId: string }[] }
    return approvals[0]
  })
  const answer = await fetch(`${url}/api/sessions/${waiting.sessionId}/approvals/${waiting.callId}`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ optionId: 'allow_once' }),
  })
  expect(answer.status).toBe(204)
  await eventually('the answer', async () => ((await texts()).includes('It waited.') ? true : undefined))
  // The call ran, in a sandbox of its person’s, and the model has read what came of it.
  expect(String(provider.requests.at(-1)?.body.messages.at(-1)?.content)).toContain('kept')
})
