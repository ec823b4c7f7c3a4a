/**
 * A client's requests to one session take effect in their order, however the bytes are cut: all at
 * once (the SDK then begins handlers in another order), in the middle of a message, one message at
 * a time.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { type SessionEvent, sandlotEventOf } from '@sandlot/shared/chat/events'
import { newId } from '@sandlot/shared/base/ids'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { createAcpServer } from '../../src/acp/server.ts'
import { ByteStreams } from '../../src/acp/byte-streams.ts'
import { listenOnSocket } from '../../src/acp/socket.ts'
import { stdioStream } from '../../src/acp/stdio.ts'
import { AgentBench, type Core } from '../support/agent-fixture.ts'
import { deltaChunk, sse } from '../support/fake-provider.ts'
import { RawClient, type RawMessage, text } from './raw-client.ts'
import { ADA, acpParts, by } from './test-client.ts'

type SocketServer = Awaited<ReturnType<typeof listenOnSocket>>

let bench: AgentBench
let core: Core
let server: SocketServer
let socketPath: string

beforeAll(async () => {
  bench = await AgentBench.start()
  core = await bench.core()
  socketPath = join(bench.folder, 'agent.sock')
  const parts = acpParts(core)
  const serve = createAcpServer(parts)
  server = await listenOnSocket({
    streams: new ByteStreams(),
    path: socketPath,
    serve: (stream) => void serve(stream),
    status: parts.status,
    listTools: () => Promise.reject(new Error('nobody asks for tools here')),
    log: parts.log,
  })
})

afterAll(async () => {
  await server.close()
  await bench[Symbol.asyncDispose]()
})

/** It begins to answer and never ends. */
const hang = { steps: [sse(deltaChunk({ content: 'Half' }))], after: 'hang' } as const

interface Said {
  session: number
  does:
    | 'mode'
    | 'option'
    | 'unknown mode'
    | 'prompt'
    | 'stop'
    | 'stop of no call'
    | 'load'
    | 'resume'
    | 'close'
  mode: 'manual' | 'auto-edit' | 'yolo'
}

const anything = fc.record<Said>({
  session: fc.nat(1),
  does: fc.constantFrom(
    'mode',
    'option',
    'unknown mode',
    'prompt',
    'prompt',
    'stop',
    'stop of no call',
    'load',
    'resume',
    'close',
  ),
  mode: fc.constantFrom('manual', 'auto-edit', 'yolo'),
})

/** A stopped prompt takes a moment to end, however one waits: what a second stop finds then is not a matter of order. */
const conversation = fc.array(anything, { minLength: 1, maxLength: 14 }).map((said) => {
  const stopped = new Set<number>()
  return said.filter(({ session, does }) => {
    const ends = does === 'stop' || does === 'close'
    if (ends && stopped.has(session)) return false
    if (does === 'stop') stopped.add(session)
    return true
  })
})

/** Positions of cuts in the bytes, and whether the agent has a turn of the loop there. */
const cuts = fc.array(fc.record({ at: fc.nat(4_000), wait: fc.boolean() }), { maxLength: 12 })

test.each(['stdio', 'socket'] as const)(
  'over %s effects are in the order of the messages',
  { timeout: 120_000 },
  async (wire) => {
    const one = (session: number, ...does: Said['does'][]): Said[] =>
      does.map((what) => ({ session, does: what, mode: 'yolo' }))
    await fc.assert(
      fc.asyncProperty(conversation, cuts, async (said, where) => {
        const ids = [newId('s'), newId('s')]
        const { client, send, end } = await wires[wire]()
        const asked: Promise<unknown>[] = []
        const saying = (): void => {
          const ask = (method: string, params: object): void =>
            void asked.push(client.response(client.begin(method, params)))
          ask('initialize', {
            protocolVersion: 1,
            clientCapabilities: { _meta: { sandlot: { version: 1 } } },
          })
          for (const sessionId of ids)
            ask('session/new', { cwd: '/workspace', mcpServers: [], ...by(ADA, { sessionId }) })
          for (const [index, { session, does, mode }] of said.entries()) {
            const sessionId = ids[session] ?? ''
            const params = { sessionId, cwd: '/workspace', mcpServers: [], ...by(ADA) }
            const requestId = newId('r')
            switch (does) {
              case 'mode':
                ask('session/set_mode', { sessionId, modeId: mode, ...by(ADA) })
                break
              case 'option':
                ask('session/set_config_option', { sessionId, configId: 'mode', value: mode, ...by(ADA) })
                break
              case 'unknown mode':
                ask('session/set_mode', { sessionId, modeId: 'wild', ...by(ADA) })
                break
              case 'prompt':
                bench.provider.add(hang)
                client.begin('session/prompt', {
                  sessionId,
                  prompt: text(`message ${index}`),
                  ...by(ADA, { requestId, whenBusy: 'queue' }),
                })
                asked.push(client.until(({ params: told }) => told?.requestId === requestId))
                break
              case 'stop':
                client.notify('session/cancel', { sessionId, ...by(ADA) })
                break
              case 'stop of no call':
                ask('_sandlot/cancel_call', { user: ADA, sessionId, toolCallId: 'none' })
                break
              default:
                ask(`session/${does}`, params)
            }
          }
          // After everything else: a Stop has no answer.
          for (const sessionId of ids)
            ask('_sandlot/approve', { user: ADA, sessionId, toolCallId: 'none', optionId: 'allow' })
        }
        await send(saying, where)
        await Promise.all(asked)

        for (const [session, sessionId] of ids.entries()) {
          const mine = said
            .map((what, index) => ({ ...what, index }))
            .filter((what) => what.session === session)
          const { log } = await core.manager.get(ADA.id, sessionId)
          expect(effects(log)).toEqual(expected(mine))
          // The prompting client is notified, also after a close.
          for (const { does, index } of mine)
            if (does === 'prompt') await client.until(({ params }) => tells(params, sessionId, index))
          await core.manager.close(ADA.id, sessionId)
        }
        end()
      }),
      {
        numRuns: 40,
        examples: [
          [one(0, 'prompt', 'mode'), []],
          [one(0, 'mode', 'prompt', 'stop'), []],
          [one(0, 'prompt', 'stop', 'prompt', 'mode'), []],
          [one(0, 'prompt', 'close', 'prompt', 'load', 'mode'), []],
          [one(0, 'prompt', 'close', 'prompt', 'prompt'), []],
        ],
      },
    )
  },
)

/** An update about this message, in whatever form. */
function tells(params: RawMessage['params'], sessionId: string, index: number): boolean {
  return params?.sessionId === sessionId && JSON.stringify(params).includes(`"message ${index}"`)
}

/** The session's course by its log; a message where it came in, whether or not it had to wait. */
function effects(log: readonly SessionEvent[]): string[] {
  const all = log.flatMap((event) => {
    const happened = sandlotEventOf(event)
    if (event.sessionUpdate === 'current_mode_update') return [`mode ${event.currentModeId}`]
    if (event.sessionUpdate === 'user_message_chunk' && event.content.type === 'text')
      return [event.content.text]
    if (happened?.type === 'message_queued') return [happened.text]
    return happened?.type === 'stop_asked' ? ['stop'] : []
  })
  return all.filter((what, index) => !what.startsWith('message') || all.indexOf(what) === index)
}

function expected(said: readonly (Said & { index: number })[]): string[] {
  let mode: Said['mode'] = 'auto-edit'
  let runs = false
  return said.flatMap((what) => {
    switch (what.does) {
      case 'mode':
      case 'option': {
        const changes = mode !== what.mode
        mode = what.mode
        return changes ? [`mode ${mode}`] : []
      }
      case 'prompt':
        runs = true
        return [`message ${what.index}`]
      case 'stop':
      case 'close': {
        const stops = runs
        runs = false
        return stops ? ['stop'] : []
      }
      default:
        return []
    }
  })
}

// ── The two wires ───────────────────────────────────────────────────────────────────────────────────────

type Cuts = readonly { at: number; wait: boolean }[]

interface Connected {
  client: RawClient
  /** Send all that `says` says, in pieces. */
  send: (says: () => void, where: Cuts) => Promise<void>
  end: () => void
}

const wires = { stdio: overLines, socket: overWebSocket }

/** Lines, cut anywhere. */
async function overLines(): Promise<Connected> {
  const input = new PassThrough()
  const output = new PassThrough({ encoding: 'utf8' })
  const lines: string[] = []
  const client = new RawClient((line) => void lines.push(`${line}\n`))
  let rest = ''
  output.on('data', (piece: string) => {
    const ended = (rest + piece).split('\n')
    rest = ended.pop() ?? ''
    for (const line of ended) client.receive(line)
  })
  createAcpServer(acpParts(core))(stdioStream(input, output))
  return {
    client,
    async send(says, where) {
      says()
      const bytes = Buffer.from(lines.splice(0).join(''))
      let from = 0
      for (const { at, wait } of where.toSorted((a, b) => a.at - b.at)) {
        input.write(bytes.subarray(from, at))
        from = Math.max(from, Math.min(at, bytes.length))
        if (wait) await turn()
      }
      input.write(bytes.subarray(from))
    },
    end: () => input.end(),
  }
}

/** WebSocket frames, as many at once as come between two cuts. */
async function overWebSocket(): Promise<Connected> {
  const tcp = connect(socketPath)
  const socket = new WebSocket('ws://agent/acp', { createConnection: () => tcp, perMessageDeflate: false })
  await once(socket, 'open')
  const lines: string[] = []
  const client = new RawClient((line) => void lines.push(line))
  socket.on('message', (data: Buffer) => client.receive(data.toString('utf8')))
  return {
    client,
    async send(says, where) {
      says()
      let sent = 0
      tcp.cork()
      for (const line of lines.splice(0)) {
        socket.send(line)
        const cut = where.find(({ at }) => sent <= at && at < sent + line.length)
        sent += line.length
        if (cut === undefined) continue
        tcp.uncork()
        if (cut.wait) await turn()
        tcp.cork()
      }
      tcp.uncork()
    },
    end: () => socket.close(),
  }
}

test.each(['stdio', 'socket'] as const)(
  'over %s a prompt that is taken back at once ends as one',
  async (wire) => {
    bench.provider.add(hang)
    const sessionId = newId('s')
    const { client, send, end } = await wires[wire]()
    let prompt: Promise<RawMessage> | undefined
    const saying = (): void => {
      client.begin('initialize', {
        protocolVersion: 1,
        clientCapabilities: { _meta: { sandlot: { version: 1 } } },
      })
      client.begin('session/new', { cwd: '/workspace', mcpServers: [], ...by(ADA, { sessionId }) })
      const id = client.begin('session/prompt', {
        sessionId,
        prompt: text('message 0'),
        ...by(ADA, { whenBusy: 'queue' }),
      })
      client.notify('$/cancel_request', { requestId: id })
      prompt = client.response(id)
    }
    await send(saying, [])
    expect((await prompt)?.result).toMatchObject({ stopReason: 'cancelled' })
    end()
  },
)
