/** The sent messages. Tests are named by the rows of the list of bugs that come back everywhere. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isObject, member } from '../../src/model/json.ts'
import type { ModelCall, ModelMessage } from '../../src/model/model.ts'
import { profileFor } from '../../src/model/profiles.ts'
import { requestBody } from '../../src/model/wires/chat/body.ts'

const LOCAL = 'http://127.0.0.1:8000/v1'

function sent(messages: readonly ModelMessage[], baseUrl = LOCAL, model = 'm'): Record<string, unknown>[] {
  const profile = profileFor(new URL(baseUrl), model)
  const options = {
    model,
    streaming: true,
    profile,
    refused: new Set<string>(),
  }
  const list = requestBody({ messages }, options)['messages']
  return Array.isArray(list) ? list.filter(isObject) : []
}

const oneCall: ModelCall = { id: 'a', name: 'read', args: {} }
const thinking = { reasoning_content: 'hm', extra_content: { google: { thought_signature: 's' } } }
const assistant = (calls: ModelCall[], replay?: Record<string, unknown>): ModelMessage => ({
  role: 'assistant',
  content: calls.length === 0 ? 'so' : '',
  calls,
  ...(replay === undefined ? {} : { replay: [{ raw: replay }] }),
})

describe('bug 11: reasoning goes back by profile', () => {
  const reasoning = (baseUrl: string, model: string, message: ModelMessage): unknown =>
    sent([message], baseUrl, model)[0]?.['reasoning_content']
  const withCalls = assistant([oneCall], thinking)

  test.each([
    ['an endpoint we do not know', LOCAL, 'some-model', 'hm', undefined],
    ['DeepSeek, also without calls', 'https://api.deepseek.com/v1', 'deepseek-v4-pro', 'hm', 'hm'],
    ['Kimi', 'https://api.moonshot.ai/v1', 'kimi-k2.5', 'hm', undefined],
    ['OpenAI never', 'https://api.openai.com/v1', 'gpt-5', undefined, undefined],
    ['Mistral never', 'https://api.mistral.ai/v1', 'mistral-large', undefined, undefined],
    ['Groq never', 'https://api.groq.com/openai/v1', 'qwen/qwen3-32b', undefined, undefined],
    ['OpenRouter takes other names', 'https://openrouter.ai/api/v1', 'x/y', undefined, undefined],
  ])('%s', (_, baseUrl, model, expected, expectedWithout) => {
    expect(reasoning(baseUrl, model, withCalls)).toBe(expected)
    expect(reasoning(baseUrl, model, assistant([], thinking))).toBe(expectedWithout)
  })

  test('Kimi refuses calls without it, and an empty one', () => {
    const kimi = ['https://api.moonshot.ai/v1', 'kimi-k2-thinking'] as const
    expect(reasoning(...kimi, assistant([oneCall]))).toMatch(/\S/)
    expect(reasoning(...kimi, assistant([oneCall], { reasoning_content: '' }))).toMatch(/\S/)
    expect(sent([assistant([])], ...kimi)[0]).not.toHaveProperty('reasoning_content')
  })

  test('DeepSeek wants the member with calls even when there was none', () => {
    expect(reasoning('https://api.deepseek.com', 'deepseek-v4', assistant([oneCall]))).toBe('')
  })

  test('nothing empty goes to an endpoint we do not know', () => {
    expect(sent([assistant([oneCall], { reasoning: '' })])[0]).not.toHaveProperty('reasoning')
  })
})

test('bug 12: signatures go back on call and message, and not to who refuses them', () => {
  const { extra_content } = thinking
  const message = assistant([{ ...oneCall, replay: { extra_content } }], thinking)
  const gemini = sent([message], 'https://generativelanguage.googleapis.com/v1beta/openai', 'gemini-3-pro')[0]
  expect(gemini).toMatchObject({ extra_content, tool_calls: [{ id: 'a', extra_content }] })
  const openai = sent([message], 'https://api.openai.com/v1', 'gpt-5')
  expect(JSON.stringify(openai)).not.toContain('extra_content')
})

describe('bug 22: what no provider takes', () => {
  test('lone surrogates and NUL, in text, results, arguments, their names and tools', () => {
    const bad = 'a\ud83d\0b😀'
    const messages: ModelMessage[] = [
      { role: 'system', content: bad },
      { role: 'user', content: bad },
      assistant([{ id: 'a', name: 'echo', args: { [bad]: [bad, { deep: bad }] } }], {
        reasoning_content: bad,
      }),
      { role: 'tool', callId: 'a', content: bad },
    ]
    const profile = profileFor(new URL(LOCAL), 'm')
    const body = requestBody(
      { messages, tools: [{ name: 'echo', description: bad, parameters: { description: bad } }] },
      { model: 'm', streaming: true, profile, refused: new Set() },
    )
    const raw = JSON.stringify(body)
    expect(raw).not.toMatch(/\\ud83d|\\u0000/i)
    expect(raw.split('a\ufffdb😀')).toHaveLength(10)
  })

  test('property: every string that is sent is well-formed and has no NUL', () => {
    const text = fc
      .string({ unit: 'binary' })
      .chain((whole) => fc.constantFrom(`${whole}\ud83d`, `\udc00${whole}`, `${whole}\0`, whole))
    fc.assert(
      fc.property(text, (content) => {
        const messages: ModelMessage[] = [
          { role: 'user', content },
          assistant([{ id: 'a', name: 'x', args: { content } }]),
        ]
        const [user, answer] = sent(messages)
        const calls = answer?.['tool_calls']
        const args = member(member(Array.isArray(calls) ? calls[0] : undefined, 'function'), 'arguments')
        expect(String(user?.['content']).isWellFormed()).toBe(true)
        expect(user?.['content']).not.toContain('\0')
        const back: unknown = JSON.parse(String(args))
        expect(back).toEqual({ content: user?.['content'] })
      }),
    )
  })
})

describe('bug 23: images', () => {
  const image = { mimeType: 'image/png', data: 'AAAA' }
  const history: ModelMessage[] = [
    { role: 'user', content: 'look', images: [image] },
    assistant([oneCall, { ...oneCall, id: 'b' }]),
    { role: 'tool', callId: 'a', content: 'one', images: [image] },
    { role: 'tool', callId: 'b', content: 'two', images: [image] },
    { role: 'user', content: 'and?' },
  ]
  const part = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }

  test('all results, then one user message with the images', () => {
    expect(sent(history)).toMatchObject([
      { role: 'user', content: [{ type: 'text', text: 'look' }, part] },
      { role: 'assistant' },
      { role: 'tool', tool_call_id: 'a', content: 'one' },
      { role: 'tool', tool_call_id: 'b', content: 'two' },
      { role: 'user', content: [{ type: 'text' }, part, part] },
      { role: 'user', content: 'and?' },
    ])
    expect(sent(history.slice(0, 4))).toHaveLength(5)
  })

  test('without image input: a sentence with type and size', () => {
    const list = sent(history, 'https://api.deepseek.com/v1', 'deepseek-chat')
    expect(list).toHaveLength(5)
    expect(list[2]?.['content']).toMatch(/^one\n.*image\/png, 3 bytes/)
    expect(list[0]?.['content']).toMatch(/^look\n.*image\/png/)
  })
})

test('bug 29: a history with calls goes with the same tools', () => {
  const tools = [{ name: 'read', description: '', parameters: {} }]
  const profile = profileFor(new URL(LOCAL), 'm')
  const options = {
    model: 'm',
    streaming: true,
    profile,
    refused: new Set<string>(),
  } as const
  const first = requestBody({ messages: [{ role: 'user', content: 'x' }], tools }, options)
  const later = requestBody(
    { messages: [assistant([oneCall]), { role: 'tool', callId: 'a', content: '' }], tools },
    options,
  )
  expect(later['tools']).toEqual(first['tools'])
  expect(later).not.toHaveProperty('tool_choice')
})

test('bug 25: a name that the model made up does not make the history illegal', () => {
  const [message] = sent([
    assistant([
      { ...oneCall, name: 'functions.read file' },
      { ...oneCall, name: '' },
    ]),
  ])
  expect(message?.['tool_calls']).toMatchObject([
    { function: { name: 'functions_read_file' } },
    { function: { name: 'unnamed' } },
  ])
})

test('not streamed: no stream options', () => {
  const profile = profileFor(new URL(LOCAL), 'm')
  const body = requestBody({ messages: [] }, { model: 'm', streaming: false, profile, refused: new Set() })
  expect(body).toEqual({ model: 'm', messages: [], stream: false })
})
