/** Values that PostgreSQL cannot store, in every string and number of every route: both databases answer alike, never a 500. */
import { createECDH } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AgentProcess } from '../packages/ai-agent/test/support/agent-process.ts'
import {
  type Browser,
  type Harness,
  Tab,
  routesOf,
  setUp,
  startHarness,
  waitFor,
} from '../packages/service/test/support/harness.ts'
import { campaign, sample } from './campaign.ts'
import { describeOnPostgres } from '../packages/storage/test/support/on-postgres.ts'

type Body = Readonly<Record<string, unknown>>

/** Routes with the names of their bodies, and `?` before those of their queries. */
const TAKES = `
POST /api/setup token name email password
POST /api/sign-in email password
POST /api/sign-in/code code
POST /api/sign-in/providers/:id returnTo invitation
GET /api/sign-in/callback/:id ?code ?state ?error_description
POST /api/sign-in/providers/:id/link returnTo password
POST /api/invitations/look token
POST /api/invitations/accept token name email password
POST /api/reset email
POST /api/reset/password token password
GET /api/usage ?from ?to ?model ?by
GET /api/admin/usage ?from ?to ?model ?by ?person ?team ?tool
PUT /api/password current password
PUT /api/account/name name
POST /api/keys name scopes expiresInDays
POST /api/account/delete email password
POST /api/account/second-factor password
POST /api/account/second-factor/confirm code
POST /api/account/second-factor/disable password
GET /api/admin/audit ?text ?who ?what ?cursor ?from ?to ?limit
GET /api/admin/audit/export ?text ?who ?what ?format ?from ?to
PUT /api/admin/retention days revision
POST /api/admin/retention/preview days
POST /api/users name email password
PATCH /api/users/:id name was
DELETE /api/users/:id ?handOver ?data
PUT /api/users/:id/settings settings revision
GET /api/admin/sandboxes/use ?user
POST /api/terminals columns rows
POST /api/models name baseUrl models apiKey
PUT /api/models/:id name baseUrl models revision
POST /api/models/test baseUrl model id
POST /api/admin/rules effect match
POST /api/rules effect match expiresAt
POST /api/rules/preview effect match
POST /api/mcp-servers name connection off values
PUT /api/mcp-servers/:id name connection off values revision
POST /api/admin/mcp-servers name connection off values
PUT /api/admin/mcp-servers/:id name connection off values revision
POST /api/teams name
PATCH /api/teams/:id name
PUT /api/teams/:id/members/:userId member
PUT /api/teams/:id/settings settings revision
POST /api/invitations role teams email expiresInHours
PUT /api/instructions text
PUT /api/instructions/team text
POST /api/chat message requestId project sessionId
GET /api/sessions ?title ?project ?before ?limit
PATCH /api/sessions/:id title
POST /api/sessions/:id/fork promptId
POST /api/sessions/:id/approvals/:callId optionId reason input
GET /api/sessions/:id/export ?format
GET /api/sessions/:id/outputs/:callId ?download
POST /api/sessions/:id/shares kind targetId access mode mayApprove expiresAt
POST /api/sessions/:id/snapshots outputs expiresAt
POST /api/sessions/:id/comments commentId text mentions
GET /api/snapshots/:id ?after
GET /api/people ?query
GET /api/search ?q ?who ?project ?chat ?kind ?since ?until ?before ?limit
PUT /api/sessions/marks sessionIds project
POST /api/projects name folder instructions model
PUT /api/projects/:id name folder instructions model
GET /api/files ?path ?after
GET /api/files/content ?path
PUT /api/files/content ?path ?upload ?offset
GET /api/files/preview ?path
DELETE /api/files ?path
GET /api/files/search ?q ?most
POST /api/files/folder path
POST /api/files/move path to
GET /api/files/zip ?path
POST /api/exec command cwd env stdin
PUT /api/secrets/:name value
PUT /api/notices/settings approval ended mentioned shared
POST /api/notices/push endpoint keys
DELETE /api/notices/push endpoint
GET /oauth/mcp ?code ?state ?error`

/** Values for names that take no word. */
const VALUES = JSON.parse(`{
  "access": "take_part", "after": 0, "approval": {"push": true, "mail": true}, "baseUrl": "http://127.0.0.1:1/v1", "columns": 80,
  "connection": {"kind": "http", "url": "http://127.0.0.1:1/mcp", "headers": ["x-key"], "auth": {"type": "none"}},
  "content": {"a": "b"}, "days": {"audit": 99}, "effect": "deny", "email": "bob@example.org", "ended": {"push": true, "mail": true},
  "endpoint": "https://push.example.org/x", "env": {"A": "b"}, "expiresAt": 9000000000000, "expiresInDays": 9, "expiresInHours": 9,
  "input": {"a": "b"}, "keys": {"p256dh": "${createECDH('prime256v1').generateKeys('base64url')}", "auth": "AAAAAAAAAAAAAAAAAAAAAA"},
  "kind": "person", "match": {"shell": "git push *"}, "mayApprove": false, "member": true, "mentioned": {"push": true, "mail": true},
  "mentions": [], "mode": "manual", "models": [{"name": "m"}], "name": "a-name", "off": ["a tool"], "outputs": true,
  "password": "wrong horse", "paths": ["x"], "returnTo": "/x", "revision": 0, "role": "member", "rows": 24, "scopes": ["read"],
  "sessionId": "chat", "sessionIds": ["chat"], "settings": {"instructions": "be brief", "models": ["demo"], "tools": {"echo": true}},
  "shared": {"push": true, "mail": true}, "teams": ["x"], "values": {"named": {"x-key": "v"}}, "was": {"name": "a-name"}
}`) as Body

/** Names of each frame. */
const FRAMES = `
ai_chat requestId sessionId text project follows model
ai_chat_cancel sessionId toolCallId
ai_chat_unqueue sessionId messageId
ai_chat_approve sessionId toolCallId optionId reason content
ai_chat_watch paths
ai_chat_typing sessionId
ai_chat_model sessionId model thoughtLevel
ai_chat_resume sessionId after`

function rowsOf(table: string): string[][] {
  return table
    .trim()
    .split('\n')
    .map((line) => line.split(' '))
}

const bodyOf = (names: readonly string[]): Body =>
  Object.fromEntries(names.map((name) => [name, VALUES[name] ?? 'x']))

/** By route, which names it takes. */
const NAMES = new Map(rowsOf(TAKES).map(([method, path, ...names]) => [`${method} ${path}`, names]))

/** Routes that would end the test's own sign-in, or never answer. */
const LEFT_OUT = new Set(['POST /api/sign-out', 'DELETE /api/account/sign-ins', 'GET /api/export'])

/** Three bytes each in UTF-8, and hardly compressed. */
const LONG = Array.from({ length: 4_096 }, (_, at) =>
  String.fromCodePoint(0x4e00 + ((at * 7_919 + ((at * at) % 104_729)) % 20_000)),
).join('')

const IN_TEXT = ['a\0b', '\0', 'a\ud800b', '\udfff']
/** Characters, just within a limit of ours: an index takes 2,704 bytes. */
const LENGTHS = [1_000, 1_999, 4_096]
const IN_NUMBERS = [2 ** 53, -(2 ** 53), 1e300, 1.5, 2 ** 31]
const IN_ADDRESSES =
  'a%00b %00 a%5C %5C%27 a%FFb a%ED%A0%80b % 9007199254740992 -1 1.5 1e300 99999999999999999999'.split(' ')

/** Every value that differs from `body` in one leaf. */
function* spoilt(body: unknown): Generator {
  if (typeof body === 'string') {
    yield* IN_TEXT.map((text) => (body.includes('@') ? `${text}@example.org` : text))
    yield* LENGTHS.map((length) => body + LONG.slice(0, length - body.length))
  }
  if (typeof body === 'number') yield* IN_NUMBERS
  if (Array.isArray(body))
    for (const [at, one] of body.entries()) for (const other of spoilt(one)) yield body.with(at, other)
  else if (typeof body === 'object' && body !== null)
    for (const [name, one] of Object.entries(body)) {
      for (const other of spoilt(one)) yield { ...body, [name]: other }
      yield { ...body, [`${name}\0`]: one }
    }
}

interface Asked {
  method: string
  path: string
  body?: unknown
}

function* requestsOf(route: string): Generator<Asked> {
  const [method = '', pattern = ''] = route.split(' ')
  const names = NAMES.get(route) ?? []
  const body = bodyOf(names.filter((name) => !name.startsWith('?')))
  const path = pattern.replace('/api/sessions/:id', '/api/sessions/chat').replaceAll(/:\w+/g, 'x')
  const parts = [...pattern.matchAll(/:\w+/g)]
  for (const [at] of parts.entries())
    for (const bad of IN_ADDRESSES) {
      let seen = 0
      yield { method, path: pattern.replaceAll(/:\w+/g, () => (seen++ === at ? bad : 'x')), body }
    }
  for (const name of names.filter((one) => one.startsWith('?')))
    for (const bad of IN_ADDRESSES) yield { method, path: `${path}${name}=${bad}` }
  for (const other of spoilt(body)) yield { method, path, body: other }
}

/** In an ordinary run. */
const DRAWN = 200

const MANY = { points: 1_000_000, seconds: 1 }
const RATES = {
  signInPair: MANY,
  signInAccount: MANY,
  signInSlow: { everyMs: 0, longestMs: 0 },
  signInAddress: MANY,
  signInSteps: MANY,
  resets: MANY,
  prompts: MANY,
  notificationTests: MANY,
}

interface World {
  harness: Harness
  ann: Browser
  close(): Promise<void>
}

/** The service and the agent of ours, without an engine. `url`: of the database; absent: files. */
async function open(url?: string): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-unstorable-'))
  const agent = new AgentProcess(folder, url === undefined ? {} : { DATABASE_URL: url }, [])
  await agent.logged('the agent is ready')
  const harness = await startHarness(
    {
      accounts: url ?? join(folder, 'accounts.db'),
      sessions: url ?? join(folder, 'sessions.db'),
      agentUrl: `ws+unix://${join(folder, 'run', 'agent.sock')}:/acp`,
    },
    { rates: RATES },
    false,
  )
  const ann = await setUp(harness)
  await waitFor(
    async () => (await ann.post('/api/chat', { message: 'hello', sessionId: 'chat' })).status === 200,
  )
  return {
    harness,
    ann,
    async close() {
      await harness.close()
      await agent.kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** The same of both databases: U+0000 everywhere, of everything else some. */
function requestsAt(harness: Harness): Asked[] {
  const all = routesOf(harness).flatMap((route) => (LEFT_OUT.has(route) ? [] : [...requestsOf(route)]))
  const hasNul = ({ path, body }: Asked): boolean => /a%00b|a\\u0000b/.test(`${path} ${JSON.stringify(body)}`)
  // Without an engine, what reads a file waits seconds for a sandbox.
  const others = all.filter((one) => !hasNul(one) && !/^\/api\/files\/(content|preview)/.test(one.path))
  return [...all.filter(hasNul), ...sample('unstorable', others, DRAWN)]
}

async function answersOf({ harness, ann }: World): Promise<Record<string, string>> {
  const answers: Record<string, string> = {}
  for (const { method, path, body } of requestsAt(harness)) {
    const hasBody = method !== 'GET' && method !== 'ALL'
    const answer = await fetch(`${harness.service.url}${path}`, {
      method: method === 'ALL' ? 'GET' : method,
      redirect: 'manual',
      headers: { cookie: ann.cookie, origin: harness.service.url, 'content-type': 'application/json' },
      ...(hasBody ? { body: JSON.stringify(body ?? {}) } : {}),
    })
    const words = await answer.text()
    const key = `${method} ${path} ${JSON.stringify(body ?? {}).replaceAll(/[\u4e00-\u9fff]{9,}/g, ({ length }) => `<${length}>`)}`
    answers[key] = answer.status === 500 ? `500 ${words}` : String(answer.status)
  }
  return answers
}

async function failuresOfFrames({ harness, ann }: World): Promise<unknown[]> {
  const tab = await Tab.of(ann, harness.service.url)
  for (const [type, ...names] of rowsOf(FRAMES))
    for (const other of spoilt(bodyOf(names))) tab.send({ type, ...(other as Body) })
  const last = { type: 'ai_chat', requestId: 'the last', text: 'bye', whenBusy: 'queue' }
  tab.send(last)
  const { promptId } = await tab.get('ai_chat_accepted', ({ requestId }) => requestId === 'the last')
  await tab.get('ai_chat_done', (frame) => frame.promptId === promptId)
  await tab.close()
  return tab.frames.filter((frame) => frame.type === 'ai_chat_error' && frame.code === 'internal')
}

/** For some thousand requests in a full run. */
const PATIENCE = 300_000

let world: World | undefined
let onSqlite: Record<string, string>

const failed = (answers: Record<string, string>): [string, string][] =>
  Object.entries(answers).filter(([, status]) => status.startsWith('500'))

describe(`on SQLite (seed ${campaign.seed})`, () => {
  beforeAll(async () => void (world = await open()))
  afterAll(() => world?.close())

  test(
    'no route fails',
    async () => {
      if (world !== undefined) onSqlite = await answersOf(world)
      expect(failed(onSqlite)).toEqual([])
    },
    PATIENCE,
  )
  test('no frame fails', async () => {
    expect(world && (await failuresOfFrames(world))).toEqual([])
  })
})

describeOnPostgres('on PostgreSQL', (postgres) => {
  beforeAll(async () => void (world = await open(await postgres.database('unstorable'))))
  afterAll(() => world?.close())

  test(
    'no route fails, and each answers what it answers on SQLite',
    async () => {
      const answers = world && (await answersOf(world))
      expect(failed(answers ?? {})).toEqual([])
      expect(answers).toEqual(onSqlite)
    },
    PATIENCE,
  )
  test('no frame fails', async () => {
    expect(world && (await failuresOfFrames(world))).toEqual([])
  })
})
