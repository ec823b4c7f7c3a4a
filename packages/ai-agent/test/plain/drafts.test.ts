/** Drafts of a call while the model is still writing it. */
import { draftOf, endsDrafts } from '@sandlot/shared/transcript/call-drafts'
import { emptyTranscript, foldTranscript } from '@sandlot/shared/transcript/transcript'
import { afterEach, expect, test } from 'vitest'
import { createHttpModel } from '../../src/model/http-model.ts'
import { memoryLog } from '../../src/plain/log-store.ts'
import { plainTool } from '../../src/plain/plain-tool.ts'
import { type RunOptions, runAgent } from '../../src/plain/run-agent.ts'
import { deltaChunk, sse, startFakeProvider, textAnswer, toolCalls } from '../support/fake-provider.ts'

const CONTENT = 'line\n'.repeat(4_000)
const ARGS = JSON.stringify({ path: 'long.txt', content: CONTENT })

/** The first half of the arguments, 500 characters at a time. */
function half(): string[] {
  const pieces = ARGS.slice(0, ARGS.length / 2).match(/[^]{1,500}/g) ?? []
  return pieces.map((args, n) =>
    sse(
      deltaChunk({
        tool_calls: [
          {
            index: 0,
            ...(n === 0 ? { id: 'c1' } : {}),
            function: { ...(n === 0 ? { name: 'write' } : {}), arguments: args },
          },
        ],
      }),
    ),
  )
}

const write = plainTool({
  name: 'write',
  description: 'For tests.',
  parameters: { type: 'object', properties: {} },
  execute: () => 'written',
})

let provider: Awaited<ReturnType<typeof startFakeProvider>>
afterEach(() => provider.close())

test('mid-stream call: its arguments are shown before they are whole, are no call yet, and are taken back with a broken answer', async () => {
  provider = await startFakeProvider([
    { steps: half().flatMap((step) => [step, { delayMs: 5 }]), after: 'destroy' },
    toolCalls([{ id: 'c2', name: 'write', args: JSON.parse(ARGS) }], { pieceLength: 500 }),
    textAnswer('Done.'),
  ])
  const model = createHttpModel({ baseUrl: provider.baseUrl, apiKey: '', model: 'fake' })
  const retry = { attempts: 2, baseMs: 1, capMs: 1, longestWaitMs: 1 }
  // A clock that advances by itself, so that every piece is due.
  let now = 0
  const options: RunOptions = {
    model,
    tools: [write],
    log: memoryLog(),
    prompt: 'go',
    retry,
    now: () => (now += 100),
  }
  let screen = emptyTranscript()
  const sizes: number[] = []
  for await (const event of runAgent(options)) {
    screen = foldTranscript(screen, event)
    const [draft] = screen.drafts
    if (endsDrafts(event)) expect(screen.drafts).toEqual([])
    if (draftOf(event) !== undefined) {
      expect(draft).toMatchObject({ name: 'write', place: 0 })
      expect(draft?.text.length).toBeLessThan(1_300)
      expect(screen.entries.some((entry) => entry.type === 'call')).toBe(false)
      sizes.push(draft?.chars ?? 0)
    }
  }
  expect(sizes.length).toBeGreaterThan(20)
  // It grows, restarts once, with the second try, and is seen when it is nearly complete.
  expect(sizes.filter((size, i) => size < (sizes[i - 1] ?? 0))).toHaveLength(1)
  expect(sizes.at(-1)).toBeGreaterThan(ARGS.length * 0.95)
  expect(screen.drafts).toEqual([])
  expect(screen.entries.flatMap((entry) => (entry.type === 'call' ? [entry.status] : []))).toEqual([
    'completed',
  ])
  expect((await options.log.read()).some((event) => draftOf(event) !== undefined)).toBe(false)
})

test('a call that grows fast is shown ten times a second at most', async () => {
  provider = await startFakeProvider([
    toolCalls([{ id: 'c1', name: 'write', args: JSON.parse(ARGS) }], { pieceLength: 10 }),
    textAnswer('Done.'),
  ])
  const model = createHttpModel({ baseUrl: provider.baseUrl, apiKey: '', model: 'fake' })
  let shown = 0
  // The clock stands still.
  for await (const event of runAgent({ model, tools: [write], log: memoryLog(), prompt: 'go', now: () => 5 }))
    if (draftOf(event) !== undefined) shown += 1
  expect(shown).toBe(1)
})
