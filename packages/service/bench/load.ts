/**
 * Repeated requests of one member, or a stranger, as a process: `<kind> <origin> <cookie> <path of a
 * record>`. It reports its start, and ends when its stdin does.
 */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { promptOn } from './chat.ts'

const [kind = '', origin = '', cookie = '', record = ''] = process.argv.slice(2)
const headers = { cookie, origin }
const MIB = 1024 * 1024
/** After an answer that refuses: a program that is written well. */
const PAUSE_MS = 200

async function send(path: string, init: RequestInit = {}): Promise<Buffer> {
  const answer = await fetch(`${origin}${path}`, { ...init, headers })
  const body = Buffer.from(await answer.arrayBuffer())
  if (answer.status === 429) await sleep(PAUSE_MS)
  return body
}

const json = (body: object): RequestInit => ({
  method: 'POST',
  body: new Blob([JSON.stringify(body)], { type: 'application/json' }),
})

const file = new Uint8Array(16 * MIB).fill(120)
const put = (name: string): Promise<Buffer> =>
  send(`/api/files/content?path=${name}&replace=true`, { method: 'PUT', body: file })

async function terminal(): Promise<void> {
  const opened = JSON.parse(String(await send('/api/terminals', json({ cols: 80, rows: 24 })))) as {
    id: string
  }
  const socket = new WebSocket(`${origin.replace('http', 'ws')}/api/terminals/${opened.id}`, { headers })
  await once(socket, 'open')
  socket.send(Buffer.from('yes "a line as a build prints one: src/index.ts:42"\n'))
  await once(socket, 'close')
}

async function output(): Promise<void> {
  const socket = new WebSocket(`${origin.replace('http', 'ws')}/ws`, { headers })
  await once(socket, 'open')
  await promptOn(socket, 'print 200', () => undefined)
  socket.close()
}

/** Addresses of loopback: each has its own limits. */
let address = 0
async function signIn(): Promise<void> {
  const localAddress = `127.1.${Math.floor(++address / 200) % 200}.${1 + (address % 200)}`
  const asked = request(`${origin}/api/sign-in`, {
    method: 'POST',
    localAddress,
    headers: { origin, 'content-type': 'application/json' },
  })
  asked.end(JSON.stringify({ email: `nobody${address}@example.org`, password: 'a guess' }))
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  answer.resume()
  if (answer.statusCode === 429) await sleep(PAUSE_MS)
}

interface Load {
  atOnce: number
  before?: () => Promise<unknown>
  once: (worker: number) => Promise<unknown>
}

const LOADS: Record<string, Load> = {
  uploads: { atOnce: 8, once: (worker) => put(`upload-${worker}`) },
  terminals: { atOnce: 8, once: terminal },
  reads: {
    atOnce: 16,
    before: () => put('read'),
    once: () => send('/api/files/content?path=read'),
  },
  searches: { atOnce: 32, once: () => send('/api/search?q=a') },
  'file search': {
    atOnce: 16,
    before: () =>
      send('/api/exec', json({ command: 'mkdir -p d{1..100} && touch d{1..100}/f{1..100}', mode: 'yolo' })),
    once: (worker) => send(`/api/files/search?q=f${worker}`),
  },
  'the record of a prompt': { atOnce: 1, once: () => send(record) },
  '200 MB of output': { atOnce: 1, once: output },
  'sign-ins of a stranger': { atOnce: 40, once: signIn },
}

const load = LOADS[kind]
if (load === undefined) throw new Error(`there is no load “${kind}”`)
await load.before?.()
process.stdin.resume().once('end', () => process.exit(0))
process.stdout.write('0\n')
await Promise.all(
  Array.from({ length: load.atOnce }, async (_, worker) => {
    for (;;) await load.once(worker).catch(() => sleep(PAUSE_MS))
  }),
)
