/** Terminals in real sandboxes of this machine, shown over real sockets. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { STREAM_PATH } from '@sandlot/shared/acp/meta'
import {
  TERMINAL_TAKEN,
  TERMINAL_WINDOW_BYTES,
  type TerminalAsk,
  type TerminalNotice,
} from '@sandlot/shared/workspace/terminals'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { ByteStreams } from '../../src/acp/byte-streams.ts'
import { listenOnSocket } from '../../src/acp/socket.ts'
import { Terminals } from '../../src/workspace/terminals.ts'
import { type LocalSandboxes, openLocalSandboxes } from '../tools/local-sandboxes.ts'

const SIZE = { columns: 80, rows: 24 }
const notAsked = (): Promise<never> => Promise.reject(new Error('nobody asked'))

const folder = mkdtempSync(join(tmpdir(), 'sandlot-terminals-'))
const path = join(folder, 'agent.sock')
const streams = new ByteStreams()
const lines: { fields: Record<string, unknown>; message: string }[] = []
const log = {
  info: (fields: Record<string, unknown>, message: string) => void lines.push({ fields, message }),
  warn: () => undefined,
}
let local: LocalSandboxes
let server: Awaited<ReturnType<typeof listenOnSocket>>

beforeAll(async () => {
  local = await openLocalSandboxes()
  server = await listenOnSocket({
    path,
    serve: () => undefined,
    streams,
    status: notAsked,
    listTools: notAsked,
    log,
  })
})
afterAll(async () => {
  await server.close()
  await local.dispose()
  rmSync(folder, { recursive: true, force: true })
})

function makeTerminals(leaving = new AbortController().signal): Terminals {
  return new Terminals({
    audit: () => undefined,
    acquire: (userId) => local.sandboxes.acquire(userId),
    connected: (userId) => local.sandboxes.connected(userId),
    status: (userId) => local.sandboxes.status(userId),
    leaving,
    log,
    now: Date.now,
  })
}

/** A page's copy of one terminal. It acknowledges everything, unless it is `slow`. */
class Page {
  readonly socket: WebSocket
  readonly notices: TerminalNotice[] = []
  text = ''
  bytes = 0
  offset = 0
  slow = false
  readonly closed: Promise<number>
  #look: () => void = () => undefined

  private constructor(socket: WebSocket) {
    this.socket = socket
    this.closed = once(socket, 'close').then(([code]) => code as number)
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) {
        this.text += data.toString('latin1')
        this.bytes += data.length
        this.offset += data.length
        if (!this.slow) this.say({ type: 'ack', offset: this.offset })
      } else {
        const notice = JSON.parse(data.toString()) as TerminalNotice
        this.notices.push(notice)
        if (notice.type === 'ready') this.offset = notice.offset
      }
      this.#look()
    })
  }

  static async of(terminals: Terminals, userId: string, id: string, from = 0): Promise<Page> {
    const terminal = await terminals.find(userId, id)
    const ticket = streams.offer((socket) => terminal.show(socket, from))
    const socket = new WebSocket(`ws+unix://${path}:${STREAM_PATH}${ticket}`)
    const page = new Page(socket)
    await once(socket, 'open')
    return page
  }

  say(ask: TerminalAsk): void {
    this.socket.send(JSON.stringify(ask))
  }

  type(keys: string): void {
    this.socket.send(Buffer.from(keys))
  }

  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise<void>((resolve) => (this.#look = resolve))
  }

  async see(text: string): Promise<void> {
    await this.until(() => this.text.includes(text))
  }
}

test('a terminal takes keys, shows its screen, is resized, and ends with its shell', async () => {
  const terminals = makeTerminals()
  const { id } = await terminals.open('u_ann', SIZE)
  const page = await Page.of(terminals, 'u_ann', id)
  page.type('stty size\n')
  await page.see('24 80')
  page.say({ type: 'resize', columns: 100, rows: 30 })
  page.type('stty size; echo "$TERM"\n')
  await page.see('30 100')
  await page.see('xterm-256color')
  page.type('exit 3\n')
  expect(await page.closed).toBe(1000)
  expect(page.notices).toEqual([
    { type: 'ready', offset: 0 },
    { type: 'ended', exitCode: 3 },
  ])
  expect(await terminals.list('u_ann')).toEqual([])
  const about = lines.filter(({ fields }) => fields['terminal'] === id)
  expect(about.map(({ fields, message }) => [message, fields['userId']])).toEqual([
    ['a terminal was opened', 'u_ann'],
    ['a terminal ended', 'u_ann'],
  ])
})

test('who comes back sees what was shown; another page takes it over; nobody else finds it', async () => {
  const terminals = makeTerminals()
  const { id } = await terminals.open('u_ann', SIZE)
  const first = await Page.of(terminals, 'u_ann', id)
  first.type('echo one-$((1 + 1))\n')
  await first.see('one-2')
  const had = first.offset
  const second = await Page.of(terminals, 'u_ann', id)
  expect(await first.closed).toBe(TERMINAL_TAKEN)
  await second.see('one-2')
  second.socket.terminate()
  await second.closed

  // Only what it does not have yet.
  const third = await Page.of(terminals, 'u_ann', id, had)
  third.type('echo two-$((1 + 1))\n')
  await third.see('two-2')
  expect(third.notices[0]).toEqual({ type: 'ready', offset: had })
  expect(third.text).not.toContain('one-2')

  await expect(terminals.find('u_bob', id)).rejects.toMatchObject({ code: 'not_found' })
  await (await terminals.find('u_ann', id)).close()
  expect(await third.closed).toBe(1000)
  expect(third.notices.at(-1)).toMatchObject({ type: 'ended' })
  await expect(terminals.find('u_ann', id)).rejects.toMatchObject({ code: 'not_found' })
})

test('a flood stops at its window, and only the last of it is kept', async () => {
  const terminals = makeTerminals()
  const { id } = await terminals.open('u_ann', SIZE)
  const page = await Page.of(terminals, 'u_ann', id)
  page.slow = true
  page.type('head -c 6000000 /dev/zero | tr "\\0" x; echo; echo done-$((1 + 1))\n')
  await page.until(() => page.bytes >= TERMINAL_WINDOW_BYTES)
  page.socket.ping()
  await once(page.socket, 'pong')
  expect(page.bytes).toBeLessThan(TERMINAL_WINDOW_BYTES + 64 * 1024)
  page.slow = false
  page.say({ type: 'ack', offset: page.offset })
  await page.see('done-2')
  expect(page.bytes).toBeGreaterThan(6_000_000)

  const back = await Page.of(terminals, 'u_ann', id)
  await back.see('done-2')
  expect(back.notices[0]).toMatchObject({ type: 'ready' })
  expect(back.bytes).toBeLessThanOrEqual(256 * 1024)
  await (await terminals.find('u_ann', id)).close()
})

test('an agent that comes after another finds the terminals and their screens', async () => {
  const leaving = new AbortController()
  const before = makeTerminals(leaving.signal)
  const { id, startedAt } = await before.open('u_eve', SIZE)
  const page = await Page.of(before, 'u_eve', id)
  page.type('head -c 1000000 /dev/zero | tr "\\0" x; echo; echo kept-$((1 + 1))\n')
  await page.see('kept-2')
  leaving.abort()
  await local.restartController()

  const after = makeTerminals()
  await local.sandboxes.acquire('u_eve')
  expect(await after.list('u_eve')).toEqual([{ id, startedAt, watched: false }])
  const back = await Page.of(after, 'u_eve', id)
  await back.see('kept-2')
  back.type('echo on-$((1 + 1))\n')
  await back.see('on-2')
  await (await after.find('u_eve', id)).close()
})

test('one too many is refused, and a stopped sandbox ends them all', async () => {
  const terminals = makeTerminals()
  const open = Array.from({ length: 17 }, () => terminals.open('u_max', SIZE))
  const made = await Promise.allSettled(open)
  const refused = made.flatMap((one) => (one.status === 'rejected' ? [one.reason as Error] : []))
  expect(refused.map(({ message }) => message)).toEqual([
    'You have 16 terminals open, which is the most there can be. Close one first.',
  ])
  const [first] = await terminals.list('u_max')
  const page = await Page.of(terminals, 'u_max', first?.id ?? '')
  await local.sandboxes.stop('u_max')
  await page.until(() => page.notices.some(({ type }) => type === 'ended'))
  while ((await terminals.list('u_max')).length > 0) await new Promise((resolve) => setTimeout(resolve, 10))
})

test('a message that is none of ours ends the page, not the terminal', async () => {
  const terminals = makeTerminals()
  const { id } = await terminals.open('u_ann', SIZE)
  for (const message of ['{', '{"type":"reset"}', '{"type":"resize","columns":0,"rows":1}']) {
    const page = await Page.of(terminals, 'u_ann', id)
    page.socket.send(message)
    expect(await page.closed).toBe(1003)
  }
  expect(await terminals.list('u_ann')).toMatchObject([{ id, watched: false }])
  await (await terminals.find('u_ann', id)).close()
})
