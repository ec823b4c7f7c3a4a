/** docs/api.md, tried out: its curl examples in their order, and the shapes of its routes, against a service and an agent. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { chatResponse } from '@sandlot/shared/chat/chat-api'
import { newApiKey } from '@sandlot/shared/account/api'
import { pendingApprovalList } from '@sandlot/shared/chat/pending-approvals'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type FakeProvider,
  startFakeProvider,
  textAnswer,
  toolCalls,
} from '../packages/ai-agent/test/support/fake-provider.ts'
import { type RunningSandlot, eventually, startSandlot } from './e2e/processes.ts'
import { read } from './source-files.ts'
import { LOCAL_PROCESS } from './config.ts'

const run = promisify(execFile)
const PAGE = read('docs/api.md').text
const IN_PAGE = 'http://127.0.0.1:8002'
/** Each with its continued lines, and without the `&` that sends it to the background. */
const EXAMPLES = [...PAGE.matchAll(/^ {4}(curl (?:.*\\\n)*.*?)(?: &)?$/gm)].map((match) => match[1] ?? '')

let provider: FakeProvider
let sandlot: RunningSandlot
let cookie: string
let key: string

beforeAll(async () => {
  provider = await startFakeProvider()
  sandlot = await startSandlot({
    agent: {
      OPENAI_BASE_URL: provider.baseUrl,
      OPENAI_API_KEY: 'sk-test-canary',
      OPENAI_MODEL: 'scripted',
      // No engine: a call ends at once, after its approval.
      ...LOCAL_PROCESS,
      DOCKER_HOST: 'unix:///nonexistent/docker.sock',
    },
  })
  const signedIn = await post('/api/setup', {
    token: new URL(sandlot.setupUrl).searchParams.get('token'),
    name: 'Ada',
    email: 'ada@example.org',
    password: 'correct horse battery',
  })
  cookie = signedIn.headers
    .getSetCookie()
    .map((one) => one.split(';')[0])
    .join('; ')
  key = newApiKey.parse(await (await post('/api/keys', { name: 'nightly' })).json()).key
})

afterAll(async () => {
  await sandlot.stop()
  await provider.close()
})

function post(path: string, body: object): Promise<Response> {
  return fetch(`${sandlot.url}${path}`, {
    method: 'POST',
    headers: { cookie: cookie ?? '', origin: sandlot.url, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

/** Output of a shell for the example, and the HTTP status. */
async function tryOut(example: string): Promise<{ status: number; body: string }> {
  const command = `${example.replaceAll(IN_PAGE, sandlot.url)} -sS -w '\n%{http_code}'`
  const { stdout } = await run('bash', ['-c', command], { env: { ...process.env, KEY: key } })
  const end = stdout.lastIndexOf('\n')
  return { status: Number(stdout.slice(end + 1)), body: stdout.slice(0, end) }
}

test('the examples do what the page says', async () => {
  expect(EXAMPLES).toHaveLength(5)
  const [first = '', waiting = '', list = '', allow = '', cancel = ''] = EXAMPLES
  provider.add(
    textAnswer('None.'),
    toolCalls([{ id: 'call_1', name: 'run_shell_command', args: { command: 'touch built' } }]),
    textAnswer('I could not.'),
  )
  const answer = await tryOut(first)
  expect(answer.status).toBe(200)
  expect(chatResponse.parse(JSON.parse(answer.body))).toMatchObject({ text: 'None.', reason: 'completed' })
  expect(problems(JSON.parse(answer.body), shapeOf('{sessionId, promptId, text, stopReason'))).toEqual([])

  const asking = tryOut(waiting)
  const approvals = await eventually('the call to ask', async () => {
    const { status, body } = await tryOut(list)
    // Until the message has made the chat there is none of this id.
    const listed = status === 200 ? pendingApprovalList.parse(JSON.parse(body)) : { approvals: [] }
    return listed.approvals.length > 0 ? listed : undefined
  })
  expect(approvals.approvals[0]).toMatchObject({ callId: 'call_1', name: 'run_shell_command' })
  expect(problems(approvals, shapeOf('{approvals: [{callId'))).toEqual([])
  expect((await tryOut(allow)).status).toBe(204)
  const ended = chatResponse.parse(JSON.parse((await asking).body))
  expect(ended.toolResults).toMatchObject([{ callId: 'call_1' }])
  expect(ended.toolResults[0]?.reason).not.toBe('denied')
  expect(problems(ended, shapeOf('{sessionId, promptId, text, stopReason'))).toEqual([])
  expect((await tryOut(cancel)).status).toBe(204)
  const late = await tryOut(allow)
  expect(JSON.parse(late.body)).toMatchObject({ code: 'conflict' })
  expect(problems(JSON.parse(late.body), shapeOf('{code, message, requestId}'))).toEqual([])
})

test('a GET answers what the list says', async () => {
  const rows = [...PAGE.matchAll(/^- `GET ([^`?]+)[^`]*`[^(]*\([^)]*\): (?:`Me`: )?`?(.*)$/gm)]
    .map((row) => ({
      path: (row[1] ?? '').replace(':id', 'nightly'),
      shape: /^\{[^`]*\}/.exec(row[2] ?? '')?.[0],
    }))
    // Files need a sandbox, and the list of approvals has been tried with one that waits.
    .filter(({ path, shape }) => shape !== undefined && !path.startsWith('/api/files'))
  expect(rows.length).toBeGreaterThanOrEqual(12)
  const wrong = await Promise.all(
    rows.map(async ({ path, shape = '' }) => {
      const answer = await fetch(`${sandlot.url}${path}`, { headers: { cookie } })
      return problems(await answer.json(), shapeOf(shape)).map((problem) => `GET ${path}: ${problem}`)
    }),
  )
  expect(wrong.flat()).toEqual([])
})

/** Names and what they hold, as `{a, b?, c: [{d}]}` is written in the page. */
type Shape = boolean | readonly Shape[] | { readonly [name: string]: Shape }

/** The first shape of the page that begins so. */
function shapeOf(beginning: string): Shape {
  const at = PAGE.indexOf(`\`${beginning}`) + 1
  expect(at, `the page has no ${beginning}`).toBeGreaterThan(0)
  const written = PAGE.slice(at, PAGE.indexOf('`', at)).replaceAll(
    /\b(?!true\b)(\w+\??)(\s*:)?/g,
    (_, name: string, holds?: string) => `"${name}":${holds === undefined ? 'true' : ''}`,
  )
  return JSON.parse(written) as Shape
}

/** Undocumented members of a value, and documented ones that are missing. */
function problems(value: unknown, shape: Shape, place = ''): string[] {
  if (typeof shape === 'boolean') return []
  if (isList(shape))
    return (value as unknown[]).flatMap((item, index) =>
      problems(item, shape[0] ?? true, `${place}[${index}]`),
    )
  const there = value as Record<string, unknown>
  const written = Object.entries(shape).map(([name, holds]) => ({
    name: name.replace('?', ''),
    needed: !name.endsWith('?'),
    holds,
  }))
  return [
    ...written.flatMap(({ name, needed, holds }) => {
      if (name in there) return problems(there[name], holds, `${place}.${name}`)
      return needed ? [`${place}.${name} is not there`] : []
    }),
    ...Object.keys(there)
      .filter((name) => !written.some((one) => one.name === name))
      .map((name) => `${place}.${name} is not in the page`),
  ]
}

function isList(shape: Shape): shape is readonly Shape[] {
  return Array.isArray(shape)
}
