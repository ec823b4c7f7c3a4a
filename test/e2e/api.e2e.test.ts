import { join } from 'node:path'
import { chatResponse } from '@sandlot/shared/chat/chat-api'
import { newApiKey } from '@sandlot/shared/account/api'
import { metaOf, type SessionEvent } from '@sandlot/shared/chat/events'
import { describe, expect, test } from 'vitest'
import { openSessionReader } from '../../packages/storage/src/store/open.ts'
import type { Person } from './browser.ts'
import { useWorld } from './fixture.ts'

/** Creates a key like the settings page: with the cookie, from the same origin. */
async function makeKey(someone: Person, origin: string): Promise<string> {
  const answer = await someone.context.request.post('/api/keys', {
    data: { name: 'test' },
    headers: { origin },
  })
  return newApiKey.parse(await answer.json()).key
}

describe('POST /api/chat', () => {
  const demo = useWorld({ OPENAI_MODEL: '', OPENAI_BASE_URL: '', OPENAI_API_KEY: '' })
  let key: string | undefined

  const post = async (body: unknown, headers: Record<string, string> = {}): Promise<Response> => {
    const { ada, sandlot } = demo()
    key ??= await makeKey(ada, sandlot.url)
    return fetch(`${sandlot.url}/api/chat`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  }

  test('creates the session that the caller named, and answers with one write_file result', async () => {
    const answer = await post({
      message: 'create a file called test.txt with content "hello"',
      sessionId: 'my-session-1',
    })
    expect(answer.status).toBe(200)
    const body = chatResponse.parse(await answer.json())
    expect(body.sessionId).toBe('my-session-1')
    expect(body.toolResults).toHaveLength(1)
    expect(body.toolResults[0]).toMatchObject({ name: 'write_file', status: 'completed' })
    expect(body.text).toContain('test.txt')
    expect(body.stopReason).toBe('end_turn')
  })

  test('the same request id is the same prompt', async () => {
    const request = { message: 'run `date +%s%N`', sessionId: 'twice', requestId: 'only-once' }
    const first = chatResponse.parse(await (await post(request)).json())
    const second = chatResponse.parse(await (await post(request)).json())
    expect(second).toEqual(first)
  })

  test('an approval that nobody can give is denied, never waited for', async () => {
    const body = chatResponse.parse(await (await post({ message: 'run `touch x`', mode: 'manual' })).json())
    expect(body.toolResults[0]).toMatchObject({ status: 'failed', reason: 'denied' })
  })

  test('as a stream of events', async () => {
    const answer = await post({ message: 'run `echo streamed`' }, { accept: 'text/event-stream' })
    expect(answer.headers.get('content-type')).toContain('text/event-stream')
    const text = await answer.text()
    expect(text).toContain('prompt_ended')
    expect(text).toMatch(/^id: \d+$/m)
  })

  test.each([
    ['no key', { message: 'x' }, { authorization: '' }, 401],
    ['a wrong key', { message: 'x' }, { authorization: 'Bearer sk-sandlot-nonsense' }, 401],
    ['an empty message', { message: '' }, {}, 400],
    ['a bad session id', { message: 'x', sessionId: '../other' }, {}, 400],
    ['an unknown member', { message: 'x', tool: 'rm' }, {}, 400],
  ])('refuses %s with a typed error', async (_, body, headers, status) => {
    const answer = await post(body, headers)
    expect(answer.status).toBe(status)
    expect(await answer.json()).toMatchObject({ code: expect.any(String), message: expect.any(String) })
  })

  test('the demo tour shows a plan, calls that stand together, a long output that was cut, an approval and a failure, and says that it is a demo', async () => {
    const { ada } = demo()
    await ada.say('show me what you can do')
    const approve = ada.page.getByTestId('approval').getByRole('button', { name: /^allow(?! for)/i })
    let asked = 0
    for (;;) {
      const next = await Promise.race([
        approve
          .first()
          .waitFor({ timeout: 90_000 })
          .then(() => 'asked' as const),
        ada.page
          .getByTestId('stop')
          .waitFor({ state: 'hidden', timeout: 90_000 })
          .then(() => 'over' as const),
      ])
      if (next === 'over') break
      await approve.first().click()
      asked++
      await ada.page.waitForTimeout(300)
    }
    expect(asked).toBeGreaterThanOrEqual(1)
    expect(await ada.page.getByTestId('plan').isVisible()).toBe(true)
    expect(await ada.page.getByTestId('demo-model').first().isVisible()).toBe(true)
    expect(await ada.page.locator('[data-testid=tool-card][data-phase=failed]').count()).toBe(1)

    const sessionId = new URL(ada.page.url()).pathname.split('/').at(-1) ?? ''
    const reader = await openSessionReader(join(demo().sandlot.data, 'sessions.db'))
    const events = await reader.log.read(sessionId)
    await reader.close()
    const turns = events.flatMap((event) => {
      const happened = metaOf(event).event
      return happened?.type === 'turn_ended' ? [happened.callIds.length] : []
    })
    expect(Math.max(...turns)).toBeGreaterThanOrEqual(2)
    const cut = events.filter((event) => metaOf(event).outputInfo?.truncated === true)
    expect(cut).toHaveLength(1)
    const file = metaOf(cut[0] as SessionEvent).outputInfo?.file ?? 'no file'
    const read = events.filter(
      (event) => event.sessionUpdate === 'tool_call' && JSON.stringify(event.rawInput).includes(file),
    )
    expect(read.length).toBeGreaterThanOrEqual(1)
  })
})
