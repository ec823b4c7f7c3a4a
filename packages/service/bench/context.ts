/**
 * Shared parts of the goals: the deployment, its chats, and the other ways to bring a stream to a
 * reader.
 */
import { once } from 'node:events'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { newId } from '@sandlot/shared/base/ids'
import type { ClientFrame } from '@sandlot/shared/chat/frames'
import { WebSocket } from 'ws'
import { nowMs } from '../../../test/bench/measure.ts'
import { installPeers } from '../../../test/bench/peers.ts'
import { type Program, startProgram } from '../../../test/bench/program.ts'
import type { BenchArguments } from '../../../test/bench/run.ts'
import { history } from '../../ai-agent/bench/goals/long-session.ts'
import { type Deployment, type Person, openDeployment } from './deployment.ts'

export const EVENTS = 10_000
/** The last prompt of a chat of this length. */
export const LAST_PROMPT = 'p_49'
/** Chats that are opened once. */
const UNOPENED = 5
/** The answers are inserted into an older file and summed up once, which takes seconds. */
const ANSWERS = 1_000_000

export interface Contender {
  name: string
  /** Send the message as this reader. Answers the milliseconds from the write to the arrival of each token. */
  read: (reader: number, message: string) => Promise<number[]>
}

/** `many`: streams at once, and sockets. */
export interface BenchContext extends BenchArguments {
  deployment: Deployment
  /** Ids of chats of the first person, but for `small`: one of each socket's person. */
  seeded: { long: string; unopened: readonly string[]; small: readonly string[] }
  /** That were counted in `USAGE_DAYS`. */
  answers: number
  /** Sandlot first. */
  contenders: readonly [Contender, ...Contender[]]
  relay: Program
}

export async function openContext(args: BenchArguments, stack: AsyncDisposableStack): Promise<BenchContext> {
  const { many, ids } = args
  const answers = ids.includes('V8') ? ANSWERS : 0
  await installPeers(new URL('../../ai-agent/bench/peers/', import.meta.url))
  const start = async (file: string, ...given: string[]): Promise<Program> =>
    stack.use(await startProgram(new URL(file, import.meta.url), ...given))
  const baseUrl = `${(await start('player.ts')).origin}/v1`
  const relay = await start('relay.ts', baseUrl)
  const hono = await start('hono.ts', baseUrl)
  const deployment = await openDeployment(baseUrl, { sockets: many, answers }, stack)
  console.error('Filling the chats')
  const log = history()
  const small = history().slice(0, 20)
  const seeded = {
    long: await deployment.seed(log),
    unopened: await eachOf(UNOPENED, () => deployment.seed(log)),
    small: await eachOf(many, (socket) => deployment.seed(small, deployment.personOf(socket))),
  }
  await deployment.start()
  const contenders = [sandlot('Sandlot', deployment), honoWay(hono.origin), bareRelay(relay.origin)] as const
  return { ...args, answers, deployment, seeded, contenders, relay }
}

async function eachOf<T>(count: number, make: (place: number) => Promise<T>): Promise<T[]> {
  const made: T[] = []
  for (let place = 0; place < count; place++) made.push(await make(place))
  return made
}

// ── Sandlot ─────────────────────────────────────────────────────────────────────────────────────────────

/** The inspected part of a frame: events alone or several together. */
interface Frame {
  type: string
  message?: string
  event?: SessionEvent
  events?: SessionEvent[]
}

function follow(socket: WebSocket, onFrame: (frame: Frame) => void): void {
  socket.on('message', (data: Buffer) => onFrame(JSON.parse(data.toString()) as Frame))
}

const frameOf = (frame: ClientFrame): string => JSON.stringify(frame)

/** Resolves when everything of the chat has come. */
export async function openChat(
  deployment: Deployment,
  person: Person,
  sessionId: string,
): Promise<WebSocket> {
  const socket = await deployment.socket(person)
  await new Promise<void>((resolve, reject) => {
    follow(socket, ({ type, message }) => {
      if (type === 'ai_chat_caught_up') resolve()
      if (type === 'ai_chat_error') reject(new Error(message))
    })
    socket.send(frameOf({ type: 'ai_chat_resume', sessionId, after: 0 }))
  })
  return socket
}

/** A message in this chat; absent: in a new one. Resolves when the prompt has ended. */
export async function promptIn(
  deployment: Deployment,
  person: Person,
  text: string,
  onEvent: (event: SessionEvent) => void,
  sessionId?: string,
): Promise<void> {
  const socket = await deployment.socket(person)
  await new Promise<void>((resolve, reject) => {
    follow(socket, ({ type, message, event, events = event === undefined ? [] : [event] }) => {
      for (const one of events) onEvent(one)
      if (type === 'ai_chat_done') resolve()
      if (type === 'ai_chat_error') reject(new Error(message))
    })
    const requestId = newId('r')
    socket.send(frameOf({ type: 'ai_chat', requestId, sessionId, text, mode: 'yolo', whenBusy: 'queue' }))
  })
  socket.close()
}

export function sandlot(name: string, deployment: Deployment): Contender {
  return {
    name,
    async read(reader, message) {
      const took: number[] = []
      await promptIn(deployment, deployment.personOf(reader), message, (event) => {
        if (event.sessionUpdate !== 'agent_message_chunk' || event._meta.sandlot.seq !== undefined) return
        if (event.content.type === 'text') took.push(...delays(event.content.text))
      })
      return took
    },
  }
}

// ── The others ──────────────────────────────────────────────────────────────────────────────────────────

function bareRelay(origin: string): Contender {
  return {
    name: 'a bare ws relay',
    async read(_reader, message) {
      const socket = new WebSocket(origin.replace('http', 'ws'), { perMessageDeflate: false })
      await once(socket, 'open')
      const took: number[] = []
      socket.on('message', (data: Buffer) => took.push(...delays(data.toString())))
      socket.send(message)
      await once(socket, 'close')
      return took
    },
  }
}

function honoWay(origin: string): Contender {
  return {
    name: 'Hono 4 and ai 7 streamText',
    async read(_reader, message) {
      const answer = await fetch(`${origin}/chat`, { method: 'POST', body: message })
      if (answer.body === null) throw new Error('nothing was sent')
      const took: number[] = []
      let rest = ''
      for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
        const whole = (rest + piece).lastIndexOf(' ') + 1
        took.push(...delays((rest + piece).slice(0, whole)))
        rest = (rest + piece).slice(whole)
      }
      return took
    },
  }
}

/** Delays of the tokens in this text, from the time written in each. */
function delays(text: string): number[] {
  const now = nowMs()
  return text
    .split(' ')
    .filter((token) => token !== '')
    .map((token) => now - Number(token))
}
