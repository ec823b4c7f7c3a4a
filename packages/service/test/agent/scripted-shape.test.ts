/**
 * The scripted agent writes what the real one writes: of one prompt of each kind, each event by its shape. What the
 * service reads of a log is tested over the scripted agent elsewhere, and would not see a field that only the real one has.
 */
import { type SessionEvent, sandlotEventOf } from '@sandlot/shared/chat/events'
import { openSessionReader } from '@sandlot/storage/store/open'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  errorAnswer,
  type Scripted,
  textAnswer,
  toolCalls,
} from '../../../ai-agent/test/support/fake-provider.ts'
import { type Browser, type Harness, makeKey, setUp, startHarness, waitFor } from '../support/harness.ts'
import { PNG } from '../support/png.ts'
import type { Script } from '../support/scripted-agent.ts'
import { twoCalls } from '../support/two-calls.ts'
import { withRealAgent } from '../support/with-real-agent.ts'

let real: Awaited<ReturnType<typeof withRealAgent>>
let scripted: Harness
const people = new Map<Harness, { ann: Browser; authorization: string }>()

beforeAll(async () => {
  real = await withRealAgent()
  scripted = await startHarness()
  for (const harness of [real.harness, scripted]) {
    const ann = await setUp(harness)
    people.set(harness, { ann, authorization: `Bearer ${await makeKey(ann)}` })
  }
}, 120_000)
afterAll(async () => {
  await scripted.close()
  await real.close()
})

/** `prompt_started` of a Sandlot event, else the kind of ACP. */
const kindOf = (event: SessionEvent): string => sandlotEventOf(event)?.type ?? event.sessionUpdate

/** Paths of every value in it. */
function pathsOf(value: unknown, at = ''): string[] {
  if (typeof value !== 'object' || value === null || at.endsWith('.rawInput')) return [at]
  return Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .flatMap(([key, item]) => pathsOf(item, Array.isArray(value) ? `${at}[]` : `${at}.${key}`))
}

type Shapes = Map<string, Set<string>[]>

function shapesOf(log: readonly SessionEvent[]): Shapes {
  const shapes: Shapes = new Map()
  for (const event of log)
    shapes.set(kindOf(event), [...(shapes.get(kindOf(event)) ?? []), new Set(pathsOf(event))])
  return shapes
}

async function logOf(harness: Harness, sessionId: string): Promise<SessionEvent[]> {
  const reader = await openSessionReader(harness.config.sessions)
  try {
    return JSON.parse(JSON.stringify(await reader.log.read(sessionId))) as SessionEvent[]
  } finally {
    await reader.close()
  }
}

interface Kind {
  message: string
  images?: boolean
  /** The real agent's model answers, and the scripted one's. */
  model: Scripted[]
  script: Script
  /** The client goes away in the middle, which stops the prompt. */
  stop?: boolean
}

const ends = (reason: 'completed' | 'error') => async () => Promise.resolve(reason)
const call = (id: string) => ({ id, name: 'update_plan', args: { entries: [] } })
const KINDS: Record<string, Kind> = {
  'an answer': {
    message: 'hello',
    model: [textAnswer('hi')],
    script: async (turn) => (await turn.say('hi'), 'completed'),
  },
  'an image': { message: 'see', images: true, model: [textAnswer('hi')], script: ends('completed') },
  'two calls': {
    message: 'do it',
    model: [toolCalls([call('c1'), { ...call('c2'), args: 'none' }], { text: 'Both.' }), textAnswer('Done.')],
    script: twoCalls,
  },
  'an error of the model': {
    message: 'fail',
    model: [errorAnswer(401, { error: { message: 'no' } })],
    script: ends('error'),
  },
  'a stop': {
    message: 'wait',
    stop: true,
    model: [{ steps: [], after: 'hang' }],
    script: (turn) =>
      new Promise((resolve) => turn.cancelled.addEventListener('abort', () => resolve('cancelled'))),
  },
}

/** Intended differences of the scripted one. */
const OTHERWISE: Record<string, RegExp> = {
  // One event in place of two: tests of the service count them.
  agent_message_chunk: /\.usage\./,
  // Texts of the loop, and what only metrics read.
  prompt_ended: /\.(promptTiming|event\.(text|cause|setIn|requestId))/,
  tool_call_update: /\.(timing|outputInfo|exit|attempt|content|title|reason|rawOutput)/,
  tool_call: /\.locations/,
}
const ONLY_FOR_EXPORTS = /\._meta\.sandlot\.requestDigest$/

async function logOfPrompt(
  harness: Harness,
  name: string,
  { message, images, stop }: Kind,
): Promise<SessionEvent[]> {
  const { authorization = '' } = people.get(harness) ?? {}
  const post = (path: string, type: string, body: string | Uint8Array<ArrayBuffer>, signal?: AbortSignal) =>
    fetch(`${harness.service.url}${path}`, {
      method: 'POST',
      headers: { authorization, 'content-type': type },
      body,
      signal,
    })
  const sent = images === true ? await post('/api/images', 'image/png', new Uint8Array(PNG)) : undefined
  const ids = sent === undefined ? [] : [((await sent.json()) as { id: string }).id]
  const sessionId = name.replaceAll(' ', '-')
  const leaving = new AbortController()
  const body = JSON.stringify({ message, sessionId, images: ids })
  const answer = post('/api/chat', 'application/json', body, leaving.signal)
  if (stop === true) {
    await waitFor(async () =>
      (await logOf(harness, sessionId)).some((event) => kindOf(event) === 'prompt_started'),
    )
    leaving.abort()
    await answer.catch(() => undefined)
  } else await answer
  await waitFor(async () =>
    (await logOf(harness, sessionId)).some((event) => kindOf(event) === 'prompt_ended'),
  )
  return logOf(harness, sessionId)
}

test.each(Object.entries(KINDS))('%s is written as the real one writes it', async (name, kind) => {
  real.provider.add(...kind.model)
  scripted.agent.script = kind.script
  const theirs = shapesOf(await logOfPrompt(real.harness, name, kind))
  const ours = shapesOf(await logOfPrompt(scripted, name, kind))
  const read = (event: string, path: string) =>
    !ONLY_FOR_EXPORTS.test(path) && OTHERWISE[event]?.test(path) !== true
  for (const [event, shapes] of ours) {
    const known = theirs.get(event)
    expect(known, `the real agent writes no ${event}`).toBeDefined()
    const ever = new Set((known ?? []).flatMap((shape) => [...shape]))
    const always = [...ever].filter((path) => known?.every((shape) => shape.has(path)))
    for (const shape of shapes) {
      expect(
        [...shape].filter((path) => read(event, path) && !ever.has(path)),
        `only the scripted ${event}`,
      ).toEqual([])
      expect(
        always.filter((path) => read(event, path) && !shape.has(path)),
        `only the real ${event}`,
      ).toEqual([])
    }
  }
})
