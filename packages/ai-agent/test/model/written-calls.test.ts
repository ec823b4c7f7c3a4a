import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DEFAULT_PROFILE } from '../../src/model/profiles.ts'
import { writtenCall } from '../../src/model/written-calls.ts'
import { deltas, readText, streamOf } from './read-stream.ts'

const TOOLS = ['get_weather', 'encode_json', 'now'].map((name) => ({ name }))
const ARGS = '{"city": "Zürich", "note": "</tool_call> } ``` <tool_call>"}'
const PLAIN = '{"city": "Paris"}'

/** A call in the templates of the models. */
const WHOLE: Record<string, string> = {
  hermes: `<tool_call>\n{"name": "get_weather", "arguments": ${ARGS}}\n</tool_call>`,
  'hermes, parameters': `<tool_call>{"name": "get_weather", "parameters": ${PLAIN}}</tool_call><|im_end|>`,
  'hermes, several': `<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>\n<tool_call>\n{"name": "get_weather", "arguments": ${ARGS}}\n</tool_call>`,
  'hermes, arguments as text': `<tool_call>{"name":"get_weather","arguments":${JSON.stringify(PLAIN)}}</tool_call>`,
  'qwen xml':
    '<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>',
  'qwen xml without its opening':
    '<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>',
  'qwen xml without arguments': '<tool_call>\n<function=now>\n</function>\n</tool_call>',
  llama: `<function=get_weather>${PLAIN}</function>`,
  'llama, python tag': `<|python_tag|>{"name": "get_weather", "parameters": ${PLAIN}}<|eom_id|>`,
  'glm 4.5': '<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>',
  'glm 4.7': '<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>',
  'glm without arguments': '<tool_call>now\n</tool_call>',
  'deepseek r1':
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city": "Paris"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
  'deepseek v3.1': `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>${PLAIN}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>`,
  'deepseek v3.2':
    '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
  kimi: `<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>${ARGS}<|tool_call_end|><|tool_calls_section_end|>`,
  harmony: `<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>${ARGS}<|call|>`,
  'harmony, recipient in the role': `<|start|>assistant to=functions.encode_json<|channel|>commentary <|constrain|>json<|message|>{}`,
  'harmony without its tokens': `analysisI need it.assistantcommentary to=functions.encode_json json${PLAIN}`,
  minimax:
    '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n</invoke>\n</minimax:tool_call>',
  'minimax m1': `<tool_calls>\n{"name": "now", "arguments": {}}\n{"name": "get_weather", "arguments": ${PLAIN}}\n</tool_calls>`,
  'function calls': '<function_calls>\n<invoke name="now">\n</invoke>\n</function_calls>',
  mistral: `[TOOL_CALLS][{"name": "get_weather", "arguments": ${PLAIN}, "id": "abcdefghi"}]`,
  'mistral, arguments apart': `[TOOL_CALLS]get_weather[ARGS]${PLAIN}</s>`,
  'mistral, with an id': `[TOOL_CALLS]get_weather[CALL_ID]abcdefghi[ARGS]${PLAIN}`,
  nemotron: `<TOOLCALL>[{"name": "get_weather", "arguments": ${PLAIN}}]</TOOLCALL>`,
  'seed-oss':
    '<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n</function>\n</seed:tool_call>',
  granite: `<|tool_call|>[{"name": "get_weather", "arguments": ${PLAIN}}]`,
  phi: `<|tool_call|>[{"name": "get_weather", "arguments": ${PLAIN}}]<|/tool_call|>`,
  'command r': `<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_weather", "parameters": ${PLAIN}}]<|END_ACTION|>`,
}
const BEFORE = ['', 'I will look.\n\n', 'See `<tool_call>`: ', 'Some code:\n```py\nx = "<tool_call>"\n```\n']

const kinds = Object.entries(WHOLE)

describe('a whole call at the end of a text', () => {
  test.each(kinds)('%s', (_, call) => {
    for (const before of BEFORE) expect(writtenCall(`${before}${call}\n`, TOOLS)).toBeDefined()
  })

  test.each(kinds)('%s: text behind it, a fence round it or a missing end make it text', (_, call) => {
    const texts = [
      `${call}\nThat is how a call looks.`,
      `\`\`\`\n${call}\n\`\`\``,
      `Like this:\n~~~xml\n${call}`,
      `\`${call}\``,
      call.slice(0, Math.floor(call.length * 0.6)),
      call.slice(0, call.lastIndexOf('}') === -1 ? -3 : call.lastIndexOf('}')),
    ]
    for (const text of texts) expect(writtenCall(text, TOOLS)).toBeUndefined()
    expect(writtenCall(call, [{ name: 'another' }])).toBeUndefined()
    expect(writtenCall(call, [])).toBeUndefined()
  })

  test('is the same, however the answer is cut and wherever the model thought', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...kinds),
        fc.constantFrom(...BEFORE),
        fc.boolean(),
        fc.array(fc.nat(400), { maxLength: 12 }),
        async ([, call], before, thinks, cuts) => {
          const whole = `${thinks ? '<think>\nhm\n</think>\n\n' : ''}${before}${call}`
          const places = [
            0,
            ...cuts.filter((at) => at < whole.length).toSorted((a, b) => a - b),
            whole.length,
          ]
          const pieces = places.slice(1).map((to, at) => ({ content: whole.slice(places[at], to) }))
          const profile = { ...DEFAULT_PROFILE, thinkTags: [['<think>', '</think>']] as const }
          const { answer } = await readText(streamOf(deltas(pieces, 'stop')), profile)
          expect(answer.calls).toEqual([])
          expect(writtenCall(answer.text, TOOLS)).toBeDefined()
        },
      ),
    )
  })

  test('costs little, whatever the text is', () => {
    const long = ['<tool_call>', 'to=functions.x ', '[TOOL_CALLS]{"a":', '<function=x>', ' ', '{', '`'].map(
      (part) => part.repeat(100_000),
    )
    for (const text of long)
      for (const end of ['', '</tool_call>', '</s>']) expect(writtenCall(text + end, TOOLS)).toBeUndefined()
  })
})

test('any text at all is a text, or calls a tool that is offered', () => {
  const part = fc.constantFrom(
    ...kinds.flatMap(([, call]) => [call, ...call.split(/(?=[<[{|\n])/)]),
    'words ',
    '```\n',
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
      const tool = writtenCall(parts.join(''), TOOLS)
      expect([...TOOLS, undefined]).toContain(tool)
    }),
  )
})
