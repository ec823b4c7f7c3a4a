/**
 * One of our servers as a process, and a real MCP client to it over its stdin and stdout. Keeps all
 * that it printed.
 */
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { type CallToolResult, Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { clockVariables } from '../../../test/config.ts'

export interface RunningServer {
  client: Client
  call(args: Record<string, unknown>, options?: CallOptions): Promise<CallToolResult>
  /** Everything of stderr. */
  log(): string
  /** The same with every result of stdout. */
  printed(): string
  /** Ends its stdin and waits for its end. */
  close(): Promise<void>
}

export interface CallOptions {
  userId?: string
  signal?: AbortSignal
}

/** `main`: URL of the program. `env`: all that it gets but the clock. */
export async function startServer(
  main: URL,
  tool: string,
  env: Record<string, string>,
): Promise<RunningServer> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: ['--conditions=sandlot-source', fileURLToPath(main)],
    env: { ...clockVariables(), ...env },
    stderr: 'pipe',
  })
  let log = ''
  let results = ''
  const stderr = transport.stderr
  if (!(stderr instanceof PassThrough)) throw new Error('no stderr')
  stderr.setEncoding('utf8').on('data', (piece: string) => {
    log += piece
  })
  const ended = once(stderr, 'close')
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(transport)
  return {
    client,
    call: async (args, { userId, signal } = {}) => {
      const _meta = userId === undefined ? {} : { _meta: { 'sandlot/user': userId } }
      const result = await client.callTool(
        { name: tool, arguments: args, ..._meta },
        signal === undefined ? {} : { signal },
      )
      results += `${JSON.stringify(result)}\n`
      return result
    },
    log: () => log,
    printed: () => log + results,
    close: async () => {
      await client.close()
      await ended
    },
  }
}

/** The text for the model, without notices. */
export function textOf(result: CallToolResult): string {
  const [first] = result.content
  return first?.type === 'text' ? first.text : ''
}

export function noticeOf(result: CallToolResult): string | undefined {
  const second = result.content[1]
  return second?.type === 'text' ? second.text : undefined
}

/** The code of a failed call. */
export function failureOf(result: CallToolResult): unknown {
  return result.isError === true ? result._meta?.['sandlot/failure'] : undefined
}
