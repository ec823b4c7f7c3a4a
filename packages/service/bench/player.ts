/**
 * The model of the bench: a process that answers each request with a stream of tokens, each of which says when it was written,
 * by the machine's own clock. The last message names what is played: `stream <tokens> <milliseconds between two>`, or
 * `print <MB>`, a call of the shell that prints so much.
 */
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { nowMs } from '../../../test/bench/measure.ts'
import { announce } from '../../../test/bench/program.ts'

interface Asked {
  messages: { role: string; content: string | { text?: string }[] }[]
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { messages } = JSON.parse(await text(request)) as Asked
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.socket?.setNoDelay(true)
  const last = messages.at(-1)
  const [what, first = 0, pause = 0] = wordsOf(last?.role === 'user' ? last.content : '')
  if (what === 'print') response.write(chunk(callOf(first), null))
  else if (what === 'stream') await stream(response, first, pause)
  else response.write(chunk({ content: 'Done.' }, null))
  response.write(chunk({}, what === 'print' ? 'tool_calls' : 'stop'))
  response.end('data: [DONE]\n\n')
}

function wordsOf(content: Asked['messages'][number]['content']): [string, ...number[]] {
  const said = typeof content === 'string' ? content : content.map((part) => part.text ?? '').join('')
  const [what = '', ...numbers] = said.trim().split(' ')
  return [what, ...numbers.map(Number)]
}

async function stream(response: ServerResponse, tokens: number, pause: number): Promise<void> {
  const from = performance.now()
  for (let token = 0; token < tokens && !response.destroyed; token++) {
    await sleep(Math.max(0, from + token * pause - performance.now()))
    response.write(chunk({ content: `${nowMs().toFixed(3)} ` }, null))
  }
}

function callOf(megabytes: number): object {
  const command = `yes 'a line as a build prints one, with a path and a number in it: src/index.ts:42' | head -c ${megabytes}000000`
  const call = { name: 'run_shell_command', arguments: JSON.stringify({ command }) }
  return { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: call }] }
}

function chunk(delta: object, finish_reason: string | null): string {
  const choices = [{ index: 0, delta, finish_reason }]
  const created = 1_790_000_000
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created, model: 'bench', choices })}\n\n`
}

await announce(
  createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error))
  }),
)
