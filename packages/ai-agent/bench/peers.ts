/**
 * Other ways to run tools on a streamed model: `runTools` and `responses.stream` of the `openai`
 * package, `streamText` of `ai`, and `toolRunner` of `@anthropic-ai/sdk`, which speaks Messages.
 */
import OpenAI from 'openai'
import { installPeers, loadPeer } from '../../../test/bench/peers.ts'
import { type Contender, stoppable } from './contender.ts'
import { runCommand } from './process-tree.ts'

const FOLDER = new URL('peers/', import.meta.url)

/** The part of `ai` that we call. */
interface AiModule {
  streamText: (options: object) => { textStream: AsyncIterable<string>; consumeStream: () => Promise<void> }
  tool: (definition: object) => unknown
  jsonSchema: (schema: object) => unknown
  isStepCount: (count: number) => unknown
}
interface CompatibleModule {
  createOpenAICompatible: (options: object) => (model: string) => unknown
}

interface MessageStream extends AsyncIterable<{ type: string; delta?: { text?: string } }> {
  abort: () => void
}
interface AnthropicModule {
  default: new (options: object) => {
    beta: { messages: { toolRunner: (options: object) => { runUntilDone: () => Promise<unknown> } } }
    messages: { stream: (body: object) => MessageStream }
  }
}

const parametersOf = (name: string) => ({
  type: 'object',
  properties: { [name]: { type: 'string' } },
  required: [name],
  additionalProperties: false,
})
const PARAMETERS = parametersOf('text')
const SHELL_PARAMETERS = parametersOf('command')
const MESSAGES = [{ role: 'user' as const, content: 'go' }]

export async function openPeers(baseUrl: string): Promise<Contender[]> {
  await installPeers(FOLDER)
  return [openaiRunTools(baseUrl), await aiStreamText(baseUrl)]
}

function openaiRunTools(baseURL: string): Contender {
  const whose = 'openai'
  const client = new OpenAI({ baseURL, apiKey: whose, maxRetries: 0 })
  return {
    name: 'openai 7.57.0 runTools',
    whose,
    async runTools(model, say) {
      const runner = client.chat.completions.runTools({
        model,
        stream: true,
        messages: MESSAGES,
        tools: [
          {
            type: 'function',
            function: {
              name: 'echo',
              description: 'Says it again.',
              parameters: PARAMETERS,
              parse: JSON.parse,
              function: ({ text }: { text: string }) => say(text),
            },
          },
        ],
      })
      await runner.finalContent()
    },
    async firstToken(model) {
      const stream = await client.chat.completions.create({
        model,
        stream: true,
        messages: MESSAGES,
      })
      let first: number | undefined
      for await (const { choices } of stream)
        if (first === undefined && (choices[0]?.delta.content ?? '') !== '') first = performance.now()
      return first
    },
    speak: (model) =>
      stoppable(async (signal, begun) => {
        const stream = await client.chat.completions.create(
          { model, stream: true, messages: MESSAGES },
          { signal },
        )
        for await (const { choices } of stream) if ((choices[0]?.delta.content ?? '') !== '') begun()
      }),
    runTree: (model) =>
      stoppable((signal, begun) => {
        const tool = {
          type: 'function' as const,
          function: {
            name: 'run_shell_command',
            description: 'Runs a command.',
            parameters: SHELL_PARAMETERS,
            parse: JSON.parse,
            function: ({ command }: { command: string }) => {
              begun()
              return runCommand(command, signal)
            },
          },
        }
        const runner = client.chat.completions.runTools(
          { model, stream: true, messages: MESSAGES, tools: [tool] },
          { signal },
        )
        return runner.done()
      }),
  }
}

/** The package has no runner of tools for Responses: this is the loop that its page shows. */
export function openaiResponses(baseURL: string): Contender {
  const whose = 'openai-responses'
  const client = new OpenAI({ baseURL, apiKey: whose, maxRetries: 0 })
  const echo = { type: 'function' as const, name: 'echo', strict: true, parameters: PARAMETERS }
  return {
    name: 'openai 7.57.0 responses.stream',
    whose,
    async runTools(model, say) {
      const input: OpenAI.Responses.ResponseInput = [...MESSAGES]
      for (let calls = true; calls;) {
        const { output } = await client.responses.stream({ model, input, tools: [echo] }).finalResponse()
        const made = output.filter((item) => item.type === 'function_call')
        calls = made.length > 0
        input.push(...made)
        for (const { call_id, arguments: args } of made) {
          const { text } = JSON.parse(args) as { text: string }
          input.push({ type: 'function_call_output', call_id, output: say(text) })
        }
      }
    },
    async firstToken(model) {
      let first: number | undefined
      for await (const event of client.responses.stream({ model, input: MESSAGES }))
        if (event.type === 'response.output_text.delta') first ??= performance.now()
      return first
    },
    speak: (model) =>
      stoppable(async (signal, begun) => {
        for await (const event of client.responses.stream({ model, input: MESSAGES }, { signal }))
          if (event.type === 'response.output_text.delta') begun()
      }),
  }
}

async function aiStreamText(baseURL: string): Promise<Contender> {
  const { streamText, tool, jsonSchema, isStepCount } = await loadPeer<AiModule>(FOLDER, 'ai')
  const { createOpenAICompatible } = await loadPeer<CompatibleModule>(FOLDER, '@ai-sdk/openai-compatible')
  const whose = 'ai'
  const provider = createOpenAICompatible({ name: 'bench', baseURL, apiKey: whose })
  const onError = ({ error }: { error: unknown }): void => {
    throw error
  }
  return {
    name: 'ai 7.0.173 streamText',
    whose,
    async runTools(model, say) {
      const echo = tool({
        description: 'Says it again.',
        inputSchema: jsonSchema(PARAMETERS),
        execute: ({ text }: { text: string }) => Promise.resolve(say(text)),
      })
      const answer = streamText({
        model: provider(model),
        prompt: 'go',
        tools: { echo },
        stopWhen: isStepCount(5),
        maxRetries: 0,
        onError,
      })
      await answer.consumeStream()
    },
    async firstToken(model) {
      let first: number | undefined
      const { textStream } = streamText({ model: provider(model), prompt: 'go', maxRetries: 0, onError })
      for await (const piece of textStream) if (first === undefined && piece !== '') first = performance.now()
      return first
    },
    speak: (model) =>
      stoppable(async (abortSignal, begun) => {
        const { textStream } = streamText({
          model: provider(model),
          prompt: 'go',
          maxRetries: 0,
          abortSignal,
        })
        for await (const piece of textStream) if (piece !== '') begun()
      }),
    runTree: (model) =>
      stoppable(async (abortSignal, begun) => {
        const shell = tool({
          description: 'Runs a command.',
          inputSchema: jsonSchema(SHELL_PARAMETERS),
          execute: ({ command }: { command: string }, options: { abortSignal?: AbortSignal }) => {
            begun()
            return runCommand(command, options.abortSignal)
          },
        })
        const answer = streamText({
          model: provider(model),
          prompt: 'go',
          tools: { run_shell_command: shell },
          stopWhen: isStepCount(5),
          maxRetries: 0,
          abortSignal,
        })
        await answer.consumeStream()
      }),
  }
}

export async function anthropicToolRunner(baseUrl: string): Promise<Contender> {
  const { default: Anthropic } = await loadPeer<AnthropicModule>(FOLDER, '@anthropic-ai/sdk')
  const whose = 'anthropic'
  const client = new Anthropic({ baseURL: baseUrl.replace(/\/v1$/, ''), apiKey: whose, maxRetries: 0 })
  const asked = (model: string): object => ({ model, max_tokens: 32_000, messages: MESSAGES })
  return {
    name: '@anthropic-ai/sdk 1.14.0 toolRunner',
    whose,
    async runTools(model, say) {
      const echo = {
        name: 'echo',
        description: 'Says it again.',
        input_schema: PARAMETERS,
        parse: (input: unknown) => input,
        run: ({ text }: { text: string }) => say(text),
      }
      await client.beta.messages.toolRunner({ ...asked(model), stream: true, tools: [echo] }).runUntilDone()
    },
    async firstToken(model) {
      let first: number | undefined
      for await (const { delta } of client.messages.stream(asked(model)))
        if (first === undefined && (delta?.text ?? '') !== '') first = performance.now()
      return first
    },
    speak: (model) =>
      stoppable(async (signal, begun) => {
        const stream = client.messages.stream(asked(model))
        signal.addEventListener('abort', () => stream.abort(), { once: true })
        for await (const { delta } of stream) if ((delta?.text ?? '') !== '') begun()
      }),
  }
}
