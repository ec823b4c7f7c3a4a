import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { isOutcome, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import type { Mode } from '@sandlot/shared/chat/mode'
import { SandboxError } from '@sandlot/sandbox/errors'
import { createPolicies } from '../../../src/calls/policies/index.ts'
import { createToolMetrics } from '../../../src/metrics/tool-metrics.ts'
import { ToolError } from '../../../src/tools/tool-error.ts'
import { builtinTools } from '../../../src/tools/builtin/index.ts'
import type { ApprovalAnswer, Policy } from '../../../src/tools/tool.ts'
import { TestBatch } from '../test-batch.ts'
import { type Run, reasonOf, tool } from './tool-fixture.ts'

const failing = (error: unknown): Run =>
  // oxlint-disable-next-line require-yield
  async function* () {
    throw error
  }

describe('settle', () => {
  const thrower =
    (error: unknown): Policy =>
    () =>
      // oxlint-disable-next-line require-yield
      async function* () {
        throw error
      }

  // After settle and metrics; a policy that throws before metrics has seen the call is metrics
  // itself, below.
  const behind = createPolicies({
    metrics: createToolMetrics(),
    toolTimeoutMs: 1,
    outputLimitBytes: 1,
    approvalTtlMs: 1,
  })
  test.each(behind.slice(1).map((_, place) => place + 2))(
    'a throw at place %i gives one outcome and one metrics record',
    async (place) => {
      const batch = new TestBatch({
        policies: (settings) =>
          createPolicies(settings).toSpliced(place, 0, thrower(new TypeError('secret text'))),
      })
      const outcome = await batch.call('echo', { value: 'x' }, 'a')
      expect(outcome).toMatchObject({ status: 'failed', reason: 'tool_error' })
      expect(outcome.forModel).not.toContain('secret')
      expect(batch.log.filter(isOutcome)).toHaveLength(1)
      expect(batch.metrics.getStats()).toMatchObject({
        count: 1,
        successRate: 0,
        outcomes: { tool_error: 1 },
      })
      expect(batch.logged.filter(({ fields }) => fields['event'] === 'tool_invocation_failure')).toHaveLength(
        1,
      )
      expect(batch.logged.filter(({ level }) => level === 'warn')).toHaveLength(1)
    },
  )

  test('metrics that throw give one outcome', async () => {
    const broken = createToolMetrics()
    const batch = new TestBatch({
      policies: (settings) =>
        createPolicies({
          ...settings,
          metrics: {
            ...broken,
            record: () => {
              throw new Error('full')
            },
          },
        }),
    })
    expect(await batch.call('echo', { value: 'x' })).toMatchObject({ status: 'failed', reason: 'tool_error' })
    expect(batch.log.filter(isOutcome)).toHaveLength(1)
  })

  test.each([
    [new ToolError('needs_auth', 'Connect first.'), 'needs_auth', 'Connect first.'],
    [new SandboxError('engine_unavailable', 'Docker is down.'), 'sandbox_unavailable', 'Docker is down.'],
    [new SandboxError('pids_exhausted', 'Too many.'), 'pids_exhausted', 'Too many.'],
    [new SandboxError('disk_quota', 'Full.'), 'disk_quota', 'Full.'],
    [new SandboxError('fenced', 'Taken over.'), 'interrupted', 'Taken over.'],
    ['a string', 'tool_error', 'error inside Sandlot'],
    [undefined, 'tool_error', 'error inside Sandlot'],
  ])('%s', async (error, reason, says) => {
    const batch = new TestBatch({ tools: [tool('t', {}, failing(error))] })
    const outcome = await batch.call('t', {})
    expect([reasonOf(outcome), outcome.forModel]).toEqual([reason, expect.stringContaining(says)])
  })
})

test('a hook is a policy: it sees every call, may end it, and is told how it ended', async () => {
  const seen: string[] = []
  const hook: Policy = (next) =>
    async function* hooked(call, ctx) {
      if (call.args['value'] === 'never') throw new ToolError('denied', 'The hook said no.')
      let ended = 'thrown'
      try {
        const outcome = yield* next(call, ctx)
        ended = outcome.status
        return outcome
      } finally {
        seen.push(`${call.name} ${String(call.args['value'])}: ${ended}`)
      }
    }
  // After settle and metrics, so that its refusal is an outcome and counted.
  const batch = new TestBatch({ policies: (settings) => createPolicies(settings).toSpliced(2, 0, hook) })
  const calls = ['one', 'never', 'two'].map((value, n) => ({ id: `c${n}`, name: 'echo', args: { value } }))
  const outcomes = await batch.run([...calls, { id: 'c3', name: 'echo', args: { value: 3, more: 1 } }])
  expect(outcomes.map(reasonOf)).toEqual(['completed', 'denied', 'completed', 'invalid_arguments'])
  expect(outcomes[1]?.forModel).toContain('The hook said no.')
  expect(seen.toSorted()).toEqual(['echo 3: thrown', 'echo one: completed', 'echo two: completed'])
  expect(batch.metrics.getStats()).toMatchObject({ count: 4, outcomes: { denied: 1 } })
})

describe('metrics', () => {
  test('every call is counted, and the log says nothing of what went in or came out', async () => {
    const batch = new TestBatch({ mode: 'manual', tools: [...builtinTools(), tool('t', {})] })
    await batch.run([
      { id: 'a', name: 'echo', args: { value: 'SECRET' } },
      { id: 'b', name: 'echo', args: { valeu: 'SECRET' } },
      { id: 'c', name: 'SECRET', args: {} },
      { id: 'd', name: 't', args: {} },
      { id: 'e', name: 'echo', args: 'SECRET' },
    ])
    expect(batch.metrics.getStats()).toMatchObject({
      count: 5,
      successRate: 0.2,
      outcomes: { completed: 1, invalid_arguments: 2, unknown_tool: 1, denied: 1 },
    })
    expect(batch.metrics.getStats('echo').count).toBe(3)
    expect(batch.metrics.tools()).toEqual(['echo', 't', 'unknown_tool'])
    const lines = batch.logged.filter(({ level }) => level === 'info')
    expect(lines).toHaveLength(5)
    expect(JSON.stringify(batch.logged)).not.toContain('SECRET')
    expect(lines.find(({ fields }) => fields['callId'] === 'a')?.fields).toMatchObject({
      event: 'tool_invocation_success',
      correlationId: batch.promptId,
      sessionId: 's_test',
      callId: 'a',
      tool: 'echo',
      latency: expect.any(Number),
      outcome: 'completed',
    })
  })

  test('waiting is kept apart from running', async () => {
    const answer = async (): Promise<ApprovalAnswer> => {
      await new Promise((resolve) => setTimeout(resolve, 80))
      return { allowed: true, by: 'user' }
    }
    const batch = new TestBatch({ mode: 'manual', answer, tools: [tool('t', {})] })
    await batch.call('t', {}, 'a')
    const timing = metaOf(batch.log.at(-1) ?? expect.fail()).timing
    expect(timing?.waitMs).toBeGreaterThanOrEqual(75)
    expect(timing?.runMs).toBeLessThan(timing?.waitMs ?? 0)
  })

  test('no calls are zeros; many calls and names stay bounded', () => {
    const metrics = createToolMetrics()
    expect(metrics.getStats()).toMatchObject({
      count: 0,
      successRate: 0,
      meanMs: 0,
      p50Ms: 0,
      p95Ms: 0,
      waitMs: 0,
      truncationRate: 0,
      cached: 0,
      retries: 0,
      outcomes: {},
    })
    expect(metrics.getStats('never').count).toBe(0)
    for (let index = 1; index <= 100; index++) {
      metrics.record({
        tool: 't',
        outcome: index % 4 === 0 ? 'timeout' : 'completed',
        waitMs: 2,
        runMs: index,
        bytes: 0,
        truncated: index <= 10,
        cached: false,
        retries: 0,
      })
    }
    expect(metrics.getStats('t')).toMatchObject({
      count: 100,
      successRate: 0.75,
      meanMs: 50.5,
      p50Ms: 50,
      p95Ms: 95,
      waitMs: 200,
      truncationRate: 0.1,
      cached: 0,
      retries: 0,
      outcomes: { completed: 75, timeout: 25 },
    })
    for (let index = 0; index < 5000; index++)
      metrics.record({
        tool: `t${index}`,
        outcome: 'completed',
        waitMs: 0,
        runMs: 1,
        bytes: 0,
        truncated: false,
        cached: false,
        retries: 0,
      })
    expect(metrics.tools().length).toBeLessThanOrEqual(1001)
    expect(metrics.getStats().count).toBe(5100)
  })
})

describe('validate', () => {
  const batch = new TestBatch()
  test('unknown arguments are refused with the known names', async () => {
    const outcome = await batch.call('read_file', { paht: 'a', path: 'b' })
    expect(outcome).toMatchObject({ status: 'failed', reason: 'invalid_arguments' })
    expect(outcome.forModel).toBe(
      'The arguments do not fit. Nothing was run.\n- there is no argument "paht"; did you mean path?\nThe arguments of read_file are: path, offset, limit.',
    )
  })

  test('every problem is listed with its place', async () => {
    const outcome = await batch.call('update_plan', {
      entries: [{ content: 'x', status: 'maybe' }, 5],
      more: 1,
    })
    expect(outcome.forModel).toMatch(/entries\.0\.status: .*\n.*entries\.1: .*\n.*no argument "more"/)
  })

  test('a missing argument', async () => {
    expect((await batch.call('echo', {})).forModel).toContain('- value: ')
  })

  test('numbers, booleans and lists that came as text are read, and the result says so', async () => {
    const entries = JSON.stringify([{ content: 'x', status: 'pending' }])
    const outcome = await batch.call('update_plan', { entries })
    expect(outcome).toMatchObject({
      status: 'completed',
      forModel: expect.stringContaining('[The argument entries was text and was read as a list.]'),
    })
    for (const bad of ['', 'five', '5 apples', 'true', '010', '1.', '99999999999999999999']) {
      expect(reasonOf(await batch.call('read_file', { path: 'x', offset: bad }))).toBe('invalid_arguments')
    }
    // Refused for want of a sandbox, so the arguments were fine.
    expect(reasonOf(await batch.call('read_file', { path: 'x', offset: '5' }))).toBe('sandbox_unavailable')
    expect(reasonOf(await batch.call('search_text', { pattern: 'x', ignore_case: 'true' }))).toBe(
      'sandbox_unavailable',
    )
  })

  test('a number that would become another one is refused with advice; a fraction is read as the nearest', async () => {
    const given: unknown[] = []
    const input = z.strictObject({ id: z.number().describe('Any.') })
    // oxlint-disable-next-line require-yield
    const takes = tool('takes', { input, readOnly: true }, async function* (args) {
      given.push(args['id'])
      return { status: 'completed', forModel: 'ran' }
    })
    const numbers = new TestBatch({ tools: [takes] })
    const call = (id: string, n: number) =>
      numbers.run([{ id: `n${n}`, name: 'takes', args: `{"id":${id}}` }])
    for (const [n, id] of ['1234567890123456789', '1e400', '1e-400', '-9007199254740993'].entries()) {
      const [refused] = await call(id, n)
      expect(reasonOf(refused)).toBe('invalid_arguments')
      expect(refused?.forModel).toContain(`id: ${id} cannot be held as a number`)
      expect(refused?.forModel).toContain('send it as text')
    }
    await call('0.1234567890123456789', 7)
    await call('1234567890123456', 8)
    expect(given).toEqual([Number('0.1234567890123456789'), 1234567890123456])
  })

  test('null for what may be left out is left out; where it must be there, the model is told', async () => {
    const given = { path: 'x', offset: null, limit: null }
    expect(reasonOf(await batch.call('read_file', given))).toBe('sandbox_unavailable')
    const refused = await batch.call('read_file', { path: null })
    expect(refused.forModel).toMatch(/- path: /)
    expect(reasonOf(await batch.call('update_plan', { entries: [null] }))).toBe('invalid_arguments')
  })

  test('names of prototypes are just unknown arguments', async () => {
    const outcome = await batch.run([
      { id: 'p', name: 'echo', args: '{"value":"x","__proto__":{"a":1},"constructor":1}' },
    ])
    expect(outcome).toMatchObject([{ status: 'failed', reason: 'invalid_arguments' }])
  })
})

describe('approve', () => {
  const tools = [
    tool('read', { readOnly: true, kind: 'read' }),
    tool('edit', { kind: 'edit' }),
    tool('exec', { kind: 'execute' }),
  ]
  const asked = (batch: TestBatch): number =>
    batch.log.filter((event) => sandlotEventOf(event)?.type === 'approval_asked').length

  test.each<[Mode, string[]]>([
    ['manual', ['completed', 'denied', 'denied']],
    ['auto-edit', ['completed', 'completed', 'denied']],
    ['yolo', ['completed', 'completed', 'completed']],
  ])('%s', async (mode, expected) => {
    const batch = new TestBatch({ tools, mode })
    const outcomes = await batch.run(['read', 'edit', 'exec'].map((name) => ({ id: name, name, args: {} })))
    expect(outcomes.map(reasonOf)).toEqual(expected)
    expect(asked(batch)).toBe(expected.filter((reason) => reason === 'denied').length)
  })

  test.each<[ApprovalAnswer, string, RegExp]>([
    [{ allowed: true, optionId: 'allow_once', by: 'user' }, 'completed', /^ran$/],
    [
      { allowed: false, optionId: 'reject_once', by: 'user', reason: ' use the other file ' },
      'denied',
      /The user did not allow.*Their reason: use the other file$/,
    ],
    [{ allowed: false, by: 'expiry' }, 'denied', /in time/],
    [{ allowed: false, by: 'unattended' }, 'denied', /nobody can give it/],
    [{ allowed: false, by: 'cancel' }, 'cancelled', /was not started/],
  ])('%j', async (answer, reason, says) => {
    const batch = new TestBatch({ tools, mode: 'manual', answer: () => answer })
    const outcome = await batch.call('exec', {}, 'a')
    expect(reasonOf(outcome)).toBe(reason)
    expect(outcome.forModel).toMatch(says)
    expect(batch.story().includes('in_progress a')).toBe(reason === 'completed')
  })

  test('allowed for the session: not asked again; a denial leaves its siblings alone', async () => {
    const batch = new TestBatch({
      tools,
      mode: 'manual',
      answer: (id) => ({ allowed: id !== 'a', by: 'user' }),
    })
    const outcomes = await batch.run(['a', 'b'].map((id) => ({ id, name: 'exec', args: {} })))
    expect(outcomes.map(reasonOf)).toEqual(['denied', 'completed'])
    const match = { tool: 'exec' }
    batch.rules = [{ id: 'r', effect: 'allow', match, origin: 'session', createdAt: 0 }]
    await batch.call('exec', {}, 'c')
    expect(asked(batch)).toBe(2)
  })

  test('asked before a restart: the question stands, and is not asked twice', async () => {
    const batch = new TestBatch({ tools, mode: 'manual', answer: () => ({ allowed: true, by: 'user' }) })
    const call = { id: 'a', name: 'exec', args: {} }
    await batch.run([call], (event) => sandlotEventOf(event)?.type !== 'approval_asked')
    expect(await batch.run([call])).toMatchObject([{ status: 'completed' }])
    expect(asked(batch)).toBe(1)
  })
})

describe('a call that was begun before a restart', () => {
  class OverBudget extends TestBatch {
    over = false
    override context(): ReturnType<TestBatch['context']> {
      const refusal = { reason: 'cancelled', message: 'The budget is used up.' } as const
      const context = super.context()
      return {
        ...context,
        approvals: { ...context.approvals, refusal: async () => (this.over ? refusal : undefined) },
      }
    }
  }

  test('is neither asked about, nor refused, nor counted again', async () => {
    const begins: Run = async function* () {
      yield { type: 'started', attempt: { n: 1, boot: 'b' } }
      return { status: 'completed', forModel: 'ran' }
    }
    const runs = { repeatable: true, rateLimit: { calls: 1, perMs: 60_000 } } as const
    const batch = new OverBudget({ tools: [tool('t', { runs }, begins)] })
    await batch.run([{ id: 'a', name: 't' }], (event) => event.sessionUpdate !== 'tool_call_update')
    expect(batch.story()).toEqual(['announced a', 'in_progress a'])
    // The current rules would not let it begin.
    batch.mode = 'manual'
    batch.over = true
    expect((await batch.run([{ id: 'a', name: 't' }])).map(reasonOf)).toEqual(['completed'])
    expect(batch.story().some((word) => word.startsWith('asked'))).toBe(false)
  })

  test('has run since it was started', async () => {
    const begins: Run = async function* () {
      yield { type: 'started', attempt: { n: 1, boot: 'b' } }
      return { status: 'completed', forModel: 'ran' }
    }
    let at = 1_000
    const batch = new TestBatch({ tools: [tool('t', { runs: { repeatable: true } }, begins)], now: () => at })
    await batch.run([{ id: 'a', name: 't' }], (event) => event.sessionUpdate !== 'tool_call_update')
    at += 40_000
    await batch.run([{ id: 'a', name: 't' }])
    const outcome = batch.log.findLast(isOutcome)
    expect(outcome && metaOf(outcome).timing?.runMs).toBeGreaterThanOrEqual(40_000)
  })
})

describe('save-output', () => {
  const printing = (...parts: [number, string][]): Run =>
    // oxlint-disable-next-line require-yield
    async function* (_args, ctx) {
      const saved = parts.map(([offset, text]) => ctx.output.save(offset, Buffer.from(text)))
      await Promise.all(saved)
      return { status: 'completed', forModel: 'ok' }
    }

  test('stores up to the limit, counts beyond, and the outcome says where', async () => {
    const run = printing([0, 'one\n'], [4, 'two\n'], [8, 'three\n'])
    const batch = new TestBatch({ tools: [tool('t', {}, run)], settings: { outputLimitBytes: 10 } })
    expect(await batch.call('t', {}, 'a')).toMatchObject({
      outputInfo: {
        bytes: 14,
        lines: 3,
        truncated: true,
        url: '/api/sessions/s_test/outputs/a',
        unstored: { from: 10, why: 'limit' },
      },
    })
    expect(batch.outputs.get('a')?.toString()).toBe('one\ntwo\nth')
  })

  test('what the store has no room for is counted, nothing is stored behind it, and the outcome says so', async () => {
    class FullStore extends TestBatch {
      override context(): ReturnType<TestBatch['context']> {
        const context = super.context()
        const append: typeof context.outputs.append = async (callId, offset, bytes) =>
          offset === 0 ? context.outputs.append(callId, offset, bytes) : 'budget'
        return { ...context, outputs: { ...context.outputs, append } }
      }
    }
    // oxlint-disable-next-line require-yield
    const run: Run = async function* (_args, ctx) {
      for (const [offset, text] of [
        [0, 'one\n'],
        [4, 'two\n'],
        [8, 'three\n'],
      ] as const)
        await ctx.output.save(offset, Buffer.from(text))
      return { status: 'completed', forModel: 'ok' }
    }
    const batch = new FullStore({ tools: [tool('t', {}, run)] })
    expect(await batch.call('t', {}, 'a')).toMatchObject({
      outputInfo: { bytes: 14, lines: 3, truncated: true, unstored: { from: 4, why: 'budget' } },
    })
    expect(batch.outputs.get('a')?.toString()).toBe('one\n')
  })

  test('the outcome comes behind the output that its tool did not wait for', async () => {
    class SlowStore extends TestBatch {
      override context(): ReturnType<TestBatch['context']> {
        const context = super.context()
        const append: typeof context.outputs.append = async (...piece) => {
          for (let n = 0; n < 5; n++) await new Promise((resolve) => setImmediate(resolve))
          return context.outputs.append(...piece)
        }
        return { ...context, outputs: { ...context.outputs, append } }
      }
    }
    // oxlint-disable-next-line require-yield
    const hasty: Run = async function* (_args, ctx) {
      void ctx.output.save(0, Buffer.from('all of it'))
      return { status: 'completed', forModel: 'ok' }
    }
    const batch = new SlowStore({ tools: [tool('t', {}, hasty)] })
    const stored: (string | undefined)[] = []
    await batch.run([{ id: 'a', name: 't' }], (event) => {
      if (isOutcome(event)) stored.push(batch.outputs.get('a')?.toString())
    })
    expect(stored).toEqual(['all of it'])
  })

  test('a hole is an error, not silently a hole', async () => {
    const batch = new TestBatch({ tools: [tool('t', {}, printing([0, 'one'], [9, 'two']))] })
    expect(reasonOf(await batch.call('t', {}))).toBe('tool_error')
  })
})

describe('timeout', () => {
  const waiting: Run = async function* (_args, ctx) {
    yield {
      type: 'progress',
      message: `${ctx.deadline?.limitMs} ${Math.round((ctx.deadline?.remainingMs() ?? 0) / 1000)}`,
    }
    await new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(new Error('stopped'))))
    return { status: 'completed', forModel: '' }
  }
  const deaf: Run = async function* () {
    yield { type: 'progress', message: 'deaf' }
    return await new Promise(() => {})
  }

  test('a tool hears of its limit and the outcome says it', async () => {
    const batch = new TestBatch({ tools: [tool('t', { runs: { timeoutMs: 1000 } }, waiting)] })
    expect(await batch.call('t', {})).toMatchObject({
      status: 'failed',
      reason: 'timeout',
      forModel: 'The call did not end within its limit of 1000 ms and was ended.',
    })
    expect(batch.events.map((event) => metaOf(event).progress?.message).filter(Boolean)).toEqual(['1000 1'])
  })

  test('a tool that does not hear is left behind', async () => {
    const batch = new TestBatch({ tools: [tool('t', {}, deaf)], settings: { toolTimeoutMs: 1000 } })
    expect(await batch.call('t', {})).toMatchObject({
      reason: 'timeout',
      forModel:
        'The call did not end within its time limit, nor when it was stopped. It is no longer waited for; its effect is not known.',
    })
  })

  test('nor is one that ignores a Stop said to have been ended', async () => {
    const batch = new TestBatch({ tools: [tool('t', {}, deaf)] })
    const [outcome] = await batch.run([{ id: 'a', name: 't' }], (event) => {
      if (metaOf(event).progress !== undefined) batch.stop.abort('cancelled')
    })
    expect(outcome).toMatchObject({
      reason: 'cancelled',
      forModel:
        'The user cancelled this call, and it did not end. It is no longer waited for; its effect is not known.',
    })
  })

  test('the model’s own limit counts where the tool has one', async () => {
    const input = z.strictObject({ timeout_ms: z.int().min(1000).describe('Limit.') })
    const batch = new TestBatch({ tools: [tool('t', { input, runs: { timeoutMs: 300_000 } }, waiting)] })
    expect((await batch.call('t', { timeout_ms: 1000 })).forModel).toContain('1000 ms')
  })
})
