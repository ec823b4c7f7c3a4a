/** The floor: fetch and a loop of a few lines, without a check of anything. */
import { type Contender, stoppable } from './contender.ts'

interface Delta {
  content?: string | null
  tool_calls?: { id?: string; function: { arguments: string } }[]
}

export function bare(baseUrl: string): Contender {
  const whose = 'bare'
  async function* deltas(model: string, messages: object[], signal?: AbortSignal): AsyncGenerator<Delta> {
    const response = await fetch(`${baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${whose}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, stream: true, messages }),
      signal,
    })
    if (response.body === null) throw new Error('the answer has no body')
    let rest = ''
    for await (const bytes of response.body.pipeThrough(new TextDecoderStream())) {
      const events = (rest + bytes).split('\n\n')
      rest = events.pop() ?? ''
      for (const event of events) {
        const data = event.slice('data: '.length)
        if (data === '[DONE]') return
        yield (JSON.parse(data) as { choices: [{ delta: Delta }] }).choices[0].delta
      }
    }
  }
  return {
    name: 'a bare fetch loop',
    whose,
    async runTools(model, say) {
      const messages: object[] = [{ role: 'user', content: 'go' }]
      for (;;) {
        let id = ''
        const args: string[] = []
        for await (const { tool_calls: [call] = [] } of deltas(model, messages)) {
          if (call === undefined) continue
          id = call.id ?? id
          args.push(call.function.arguments)
        }
        if (args.length === 0) return
        const { text } = JSON.parse(args.join('')) as { text: string }
        const made = { id, type: 'function', function: { name: 'echo', arguments: args.join('') } }
        messages.push({ role: 'assistant', content: null, tool_calls: [made] })
        messages.push({ role: 'tool', tool_call_id: id, content: say(text) })
      }
    },
    async firstToken(model) {
      let first: number | undefined
      for await (const { content } of deltas(model, [{ role: 'user', content: 'go' }]))
        if (first === undefined && content != null && content !== '') first = performance.now()
      return first
    },
    speak: (model) =>
      stoppable(async (signal, begun) => {
        for await (const { content } of deltas(model, [{ role: 'user', content: 'go' }], signal))
          if ((content ?? '') !== '') begun()
      }),
  }
}
