/**
 * Faults for which the strictest endpoint of each wire would refuse a request, read from the sent bytes and from
 * nothing of ours: members and types as the public API documents them, and the order of answers, calls and results.
 */
import type { WireName } from '@sandlot/shared/account/models-api'
import { z } from 'zod'
import type { RecordedRequest } from '../support/fake-provider.ts'

const said = z.string().regex(/\S/)
const name = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/)
const effort = z.enum(['low', 'medium', 'high'])
const isObjectText = (text: string): boolean => /^\s*\{/.test(text) && isJson(text)
const objectText = z.string().refine(isObjectText, 'no JSON object')
const schema = z.looseObject({ type: z.literal('object'), required: z.array(z.string()).optional() })
interface Strict {
  strict?: boolean | undefined
  parameters: z.infer<typeof schema>
}
/** Strict mode: every property is required, and there are no others. */
function isStrictIfSaid({ strict, parameters }: Strict): boolean {
  const { properties, required = [], additionalProperties } = parameters
  const names = Object.keys(properties ?? {})
  return strict !== true || (additionalProperties === false && names.every((one) => required.includes(one)))
}
const base64 = z.string().regex(/^[A-Za-z0-9+/]+=*$/)
const dataUrl = z.string().regex(/^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$/)

// ── Chat Completions ────────────────────────────────────────────────────────────────────────────────────

const chatPart = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: said }),
  z.strictObject({ type: z.literal('image_url'), image_url: z.strictObject({ url: dataUrl }) }),
])
const chatCall = z.strictObject({
  id: z.string().min(1).max(256),
  type: z.literal('function'),
  function: z.strictObject({ name, arguments: objectText }),
})
const chatBody = z.strictObject({
  model: said,
  messages: z.array(
    z.discriminatedUnion('role', [
      z.strictObject({ role: z.literal('system'), content: said }),
      z.strictObject({ role: z.literal('user'), content: z.union([said, z.array(chatPart).min(1)]) }),
      z.strictObject({
        role: z.literal('assistant'),
        content: z.string().nullable(),
        tool_calls: z.array(chatCall).min(1).optional(),
        reasoning_content: said.optional(),
      }),
      z.strictObject({ role: z.literal('tool'), tool_call_id: z.string(), content: z.string() }),
    ]),
  ),
  tools: z.array(
    z.strictObject({
      type: z.literal('function'),
      function: z
        .strictObject({ name, description: said, parameters: schema, strict: z.literal(true).optional() })
        .refine(isStrictIfSaid, 'not in strict form'),
    }),
  ),
  stream: z.boolean(),
  stream_options: z.strictObject({ include_usage: z.literal(true) }).optional(),
  reasoning_effort: effort.optional(),
})

/** The order of a conversation, on which the wires agree. */
type Step =
  | { is: 'user' | 'text' | 'reasoning' }
  | { is: 'call' | 'result'; id: string }
  /** The end of an answer, where the wire has one. */
  | { is: 'end' }

function chatSteps({ messages }: z.infer<typeof chatBody>): Step[] {
  return messages.flatMap((message): Step[] => {
    if (message.role === 'system') return []
    if (message.role === 'user') return [{ is: 'user' }]
    if (message.role === 'tool') return [{ is: 'result', id: message.tool_call_id }]
    const calls = message.tool_calls?.map(({ id }): Step => ({ is: 'call', id })) ?? []
    return [...(/\S/.test(message.content ?? '') ? [{ is: 'text' } as const] : []), ...calls, { is: 'end' }]
  })
}

// ── Responses ───────────────────────────────────────────────────────────────────────────────────────────

const inputPart = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('input_text'), text: z.string() }),
  z.strictObject({ type: z.literal('input_image'), image_url: dataUrl }),
])
const content = z.union([said, z.array(inputPart).min(1)])
const callId = z.string().min(1).max(64)
const message = { type: z.literal('message') }
const inputItem = z.union([
  z.strictObject({ ...message, role: z.literal('user'), content }),
  z.strictObject({ ...message, role: z.literal('assistant'), content: z.string().min(1) }),
  z.strictObject({ type: z.literal('function_call'), call_id: callId, name, arguments: objectText }),
  z.strictObject({
    type: z.literal('function_call_output'),
    call_id: callId,
    output: z.union([z.string(), z.array(inputPart).min(1)]),
  }),
  // Without an id: nothing is stored at the provider.
  z.strictObject({
    type: z.literal('reasoning'),
    summary: z.array(z.strictObject({ type: z.literal('summary_text'), text: z.string() })),
    encrypted_content: said,
  }),
])
const responsesBody = z.strictObject({
  model: said,
  instructions: said,
  input: z.array(inputItem).min(1),
  tools: z.array(
    z
      .strictObject({
        type: z.literal('function'),
        name,
        description: said,
        parameters: schema,
        strict: z.boolean(),
      })
      .refine(isStrictIfSaid, 'not in strict form'),
  ),
  stream: z.boolean(),
  store: z.literal(false),
  include: z.tuple([z.literal('reasoning.encrypted_content')]),
  reasoning: z.strictObject({ effort: effort.optional(), summary: z.literal('auto') }),
})

function responsesSteps({ input }: z.infer<typeof responsesBody>): Step[] {
  return input.map((item): Step => {
    if (item.type === 'function_call') return { is: 'call', id: item.call_id }
    if (item.type === 'function_call_output') return { is: 'result', id: item.call_id }
    if (item.type === 'reasoning') return { is: 'reasoning' }
    return { is: item.role === 'user' ? 'user' : 'text' }
  })
}

// ── Messages ────────────────────────────────────────────────────────────────────────────────────────────

const cache_control = z.strictObject({ type: z.literal('ephemeral') }).optional()
const textBlock = z.strictObject({ type: z.literal('text'), text: said, cache_control })
const imageBlock = z.strictObject({
  type: z.literal('image'),
  source: z.strictObject({ type: z.literal('base64'), media_type: z.literal('image/png'), data: base64 }),
  cache_control,
})
const blockId = z.string().regex(/^[a-zA-Z0-9_-]+$/)
const resultBlock = z.strictObject({
  type: z.literal('tool_result'),
  tool_use_id: blockId,
  content: z
    .array(z.union([textBlock, imageBlock]))
    .min(1)
    .optional(),
  cache_control,
})
const thinkingBlock = z.strictObject({ type: z.literal('thinking'), thinking: z.string(), signature: said })
const useBlock = z.strictObject({
  type: z.literal('tool_use'),
  id: blockId,
  name,
  input: z.record(z.string(), z.unknown()),
})
const turn = z.discriminatedUnion('role', [
  z.strictObject({
    role: z.literal('user'),
    content: z.array(z.union([resultBlock, imageBlock, textBlock])).min(1),
  }),
  z.strictObject({
    role: z.literal('assistant'),
    // `mystery`: a block that the provider of this suite made up returns as it came.
    content: z
      .array(z.union([thinkingBlock, textBlock, useBlock, z.looseObject({ type: z.literal('mystery') })]))
      .min(1),
  }),
])
const anthropicBody = z.strictObject({
  model: said,
  max_tokens: z.int().min(1).max(32_000),
  thinking: z.strictObject({ type: z.literal('enabled'), budget_tokens: z.int().min(1_024) }).optional(),
  stream: z.boolean(),
  tools: z.array(z.strictObject({ name, description: said, input_schema: schema, cache_control })),
  system: z.array(textBlock).min(1),
  messages: z.array(turn).min(1),
})

function anthropicSteps({ messages }: z.infer<typeof anthropicBody>): Step[] {
  return messages.flatMap(({ role, content: blocks }): Step[] => [
    ...blocks.map((block): Step => {
      if (block.type === 'tool_result') return { is: 'result', id: block.tool_use_id }
      if (block.type === 'tool_use') return { is: 'call', id: block.id }
      if (block.type === 'thinking') return { is: 'reasoning' }
      return { is: role === 'user' ? 'user' : 'text' }
    }),
    ...(role === 'assistant' ? [{ is: 'end' } as const] : []),
  ])
}

function anthropicProblems(body: z.infer<typeof anthropicBody>): string[] {
  const { messages, thinking, max_tokens: most } = body
  const problems = messages.flatMap(({ role }, at) =>
    role === (at % 2 === 0 ? 'user' : 'assistant') ? [] : [`message ${at} is of ${role}`],
  )
  if (JSON.stringify(body).split('"cache_control"').length > 5) problems.push('more than four marks')
  if (thinking === undefined) return problems
  if (thinking.budget_tokens >= most) problems.push('no room for an answer beside the thinking')
  const asked = messages.findLastIndex(
    ({ role, content: blocks }) => role === 'user' && blocks.every(({ type }) => type !== 'tool_result'),
  )
  const [first] = messages[asked + 1]?.content ?? []
  if (first !== undefined && first.type !== 'thinking')
    problems.push(`thinking is on, and the open turn begins with ${first.type}`)
  return problems
}

// ── All ─────────────────────────────────────────────────────────────────────────────────────────────────

/** Calls have unique ids and their results next, in order or not; reasoning stands before what it led to. */
function stepProblems(steps: readonly Step[]): string[] {
  const problems: string[] = []
  const known = new Set<string>()
  const open = new Set<string>()
  let before: Step['is'] | undefined
  for (const step of steps) {
    if (step.is === 'call') {
      if (known.has(step.id)) problems.push(`two calls ${step.id}`)
      known.add(step.id)
      open.add(step.id)
    } else if (step.is === 'result') {
      if (!open.delete(step.id)) problems.push(`a result of ${step.id}, which is not open`)
    } else if (open.size > 0 && (step.is === 'user' || (step.is !== 'end' && before !== 'call'))) {
      problems.push(`${[...open].join()} without a result before ${step.is}`)
    }
    if (before === 'reasoning' && (step.is === 'user' || step.is === 'result'))
      problems.push(`reasoning before ${step.is}`)
    if (step.is === 'end' && before !== 'text' && before !== 'call')
      problems.push(`an answer ends with ${before}`)
    before = step.is
  }
  if (open.size > 0) problems.push(`${[...open].join()} without a result at the end`)
  if (steps[0]?.is !== 'user') problems.push(`it begins with ${steps[0]?.is}`)
  if (before !== 'user' && before !== 'result') problems.push(`it ends with ${before}`)
  return problems
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

type Judge = (body: unknown) => { tools: string[]; problems: string[] }

function judge<Body>(
  shape: z.ZodType<Body>,
  toolsOf: (body: Body) => string[],
  stepsOf: (body: Body) => Step[],
  more: (body: Body) => string[] = () => [],
): Judge {
  return (body) => {
    const read = shape.safeParse(body)
    if (!read.success) return { tools: [], problems: [z.prettifyError(read.error)] }
    const problems = [...stepProblems(stepsOf(read.data)), ...more(read.data)]
    return { tools: toolsOf(read.data), problems }
  }
}

const namesOf = ({ tools }: { tools: { name: string }[] }): string[] => tools.map((tool) => tool.name)
const bearer = { authorization: 'Bearer sk-test' }
const WIRES: Record<WireName, { path: string; headers: Record<string, string>; judge: Judge }> = {
  chat: {
    path: '/v1/chat/completions',
    headers: bearer,
    judge: judge(chatBody, ({ tools }) => tools.map((tool) => tool.function.name), chatSteps),
  },
  responses: {
    path: '/v1/responses',
    headers: bearer,
    judge: judge(responsesBody, namesOf, responsesSteps),
  },
  anthropic: {
    path: '/v1/messages',
    headers: { 'x-api-key': 'sk-test', 'anthropic-version': '2023-06-01' },
    judge: judge(anthropicBody, namesOf, anthropicSteps, anthropicProblems),
  },
}

/** The wire of a request, by its path. Throws where it is none. */
export function wireOf({ path }: Pick<RecordedRequest, 'path'>): WireName {
  for (const wire of ['chat', 'responses', 'anthropic'] as const) if (WIRES[wire].path === path) return wire
  throw new Error(`${path} is no path of a wire`)
}

/** Everything that this request's endpoint would refuse, in words; empty when it may be sent. */
export function requestProblems(request: RecordedRequest): string[] {
  const wire = WIRES[wireOf(request)]
  const { tools, problems } = wire.judge(request.body)
  const { stream, stream_options: options } = request.body
  if (stream !== true && options !== undefined) problems.push('options of a stream, and none is asked for')
  const headers = Object.entries(wire.headers).filter(([header, value]) => request.headers[header] !== value)
  if (tools.join() !== tools.toSorted().join()) problems.push(`the tools are not sorted: ${tools.join()}`)
  if (!JSON.stringify(request.body).isWellFormed()) problems.push('half a character')
  if (/\\u0000/i.test(request.raw)) problems.push('a NUL')
  return [...problems, ...headers.map(([header]) => `the header ${header}`)]
}
