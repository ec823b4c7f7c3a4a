/**
 * Shared parts of the goals: the deployment, its chats, and the other ways to bring a stream to a
 * reader.
 */
import { once } from 'node:events'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { WebSocket } from 'ws'
import { nowMs } from '../../../test/bench/measure.ts'
import { installPeers } from '../../../test/bench/peers.ts'
import { type Program, startProgram } from '../../../test/bench/program.ts'
import type { BenchArguments } from '../../../test/bench/run.ts'
import { history } from '../../ai-agent/bench/goals/long-session.ts'
import { follow, frameOf, promptOn } from './chat.ts'
import { type Deployment, type Person, cpuOf, openDeployment } from './deployment.ts'

export const EVENTS = 10_000
/** The last prompt of a chat of this length. */
export const LAST_PROMPT = 'p_49'
/** Each with a chat open, where a socket's memory is measured. */
export const IDLE_SOCKETS = 800
/** Chats that are opened once. */
const UNOPENED = 5
/** The answers are inserted into an older file and summed up once, which takes seconds. */
const ANSWERS = 1_000_000

export interface Contender {
  name: string
  /** Send the message as this reader. Adds each token’s milliseconds from the write to the arrival. */
  read: (reader: number, message: string, took: number[]) => Promise<void>
  /** CPU time of its processes by name, in milliseconds. */
  cpu: () => Record<string, number>
}

/** `many`: streams at once, and sockets. */
export interface BenchContext extends BenchArguments {
  deployment: Deployment
  /** Ids of chats of the first person, but for `small`: one of each socket's person. */
  seeded: { long: string; unopened: readonly string[]; small: readonly string[] }
  /** That were counted in `USAGE_DAYS`. */
  answers: number
  /** Sandlot first; the library only for goals that are compared with it. */
  contenders: readonly [Contender, ...Contender[]]
  /** Address of the provider. */
  baseUrl: string
  relay: Program
}

export async function openContext(args: BenchArguments, stack: AsyncDisposableStack): Promise<BenchContext> {
  const { many, ids } = args
  const answers = ids.includes('V8') ? ANSWERS : 0
  const start = async (file: string, ...given: string[]): Promise<Program> =>
    stack.use(await startProgram(new URL(file, import.meta.url), ...given))
  const baseUrl = `${(await start('player.ts')).origin}/v1`
  const relay = await start('relay.ts', baseUrl)
  const others = [bareRelay(relay)]
  if (ids.includes('V1') || ids.includes('V2')) {
    await installPeers(new URL('../../ai-agent/bench/peers/', import.meta.url))
    others.unshift(honoWay(await start('hono.ts', baseUrl)))
  }
  const sockets = ids.includes('V4') ? Math.max(many, IDLE_SOCKETS) : many
  const deployment = await openDeployment(baseUrl, { sockets, answers }, stack)
  console.error('Filling the chats')
  const log = history()
  const small = history().slice(0, 20)
  const seeded = {
    long: await deployment.seed(log),
    unopened: await eachOf(UNOPENED, () => deployment.seed(log)),
    small: await eachOf(sockets, (socket) => deployment.seed(small, deployment.personOf(socket))),
  }
  await deployment.start()
  const contenders = [sandlot('Sandlot', deployment), ...others] as const
  return { ...args, answers, baseUrl, deployment, seeded, contenders, relay }
}

async function eachOf<T>(count: number, make: (place: number) => Promise<T>): Promise<T[]> {
  const made: T[] = []
  for (let place = 0; place < count; place++) made.push(await make(place))
  return made
}

// ── Sandlot ─────────────────────────────────────────────────────────────────────────────────────────────

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

/** A message in this chat; absent: in a new one. Resolves with the chat's id when the prompt has ended. */
export async function promptIn(
  deployment: Deployment,
  person: Person,
  text: string,
  onEvent: (event: SessionEvent) => void,
  sessionId?: string,
): Promise<string> {
  const socket = await deployment.socket(person)
  const chat = await promptOn(socket, text, onEvent, sessionId)
  socket.close()
  return chat
}

/**
 * Milliseconds from a message in this chat, absent in a new one, to the first token of its answer
 * (`first`), and to the time at which the provider wrote that token (`written`).
 */
export async function firstToken(
  socket: WebSocket,
  sessionId?: string,
): Promise<{ first: number; written: number; chat: string }> {
  const took: number[] = []
  const from = nowMs()
  const onEvent = (event: SessionEvent): void => {
    if (event.sessionUpdate !== 'agent_message_chunk' || event.content.type !== 'text') return
    took.push(nowMs() - from, Number(event.content.text) - from)
  }
  const chat = await promptOn(socket, 'stream 1 0', onEvent, sessionId)
  const [first = Number.NaN, written = Number.NaN] = took
  return { first, written, chat }
}

export function sandlot(name: string, deployment: Deployment): Contender {
  return {
    name,
    async read(reader, message, took) {
      await promptIn(deployment, deployment.personOf(reader), message, (event) => {
        if (event.sessionUpdate !== 'agent_message_chunk' || event._meta.sandlot.seq !== undefined) return
        if (event.content.type === 'text') took.push(...delays(event.content.text))
      })
    },
    cpu() {
      const { service, agent } = deployment.cpu()
      return { [`${name}: agent`]: agent, [`${name}: service`]: service }
    },
  }
}

// ── The others ──────────────────────────────────────────────────────────────────────────────────────────

export async function openRelay(origin: string): Promise<WebSocket> {
  const socket = new WebSocket(origin.replace('http', 'ws'), { perMessageDeflate: false })
  await once(socket, 'open')
  return socket
}

function bareRelay({ origin, pid }: Program): Contender {
  const name = 'a bare ws relay'
  return {
    name,
    async read(_reader, message, took) {
      const socket = await openRelay(origin)
      socket.on('message', (data: Buffer) => took.push(...delays(data.toString())))
      socket.send(message)
      await once(socket, 'close')
    },
    cpu: () => ({ [name]: cpuOf(pid) }),
  }
}

function honoWay({ origin, pid }: Program): Contender {
  const name = 'Hono 4 and ai 7 streamText'
  return {
    name,
    async read(_reader, message, took) {
      const answer = await fetch(`${origin}/chat`, { method: 'POST', body: message })
      if (answer.body === null) throw new Error('nothing was sent')
      let rest = ''
      for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
        const whole = (rest + piece).lastIndexOf(' ') + 1
        took.push(...delays((rest + piece).slice(0, whole)))
        rest = (rest + piece).slice(whole)
      }
    },
    cpu: () => ({ [name]: cpuOf(pid) }),
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
