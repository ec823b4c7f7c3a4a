import { type IncomingMessage, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { errorBody } from '@sandlot/shared/account/api'
import { messageOf } from '@sandlot/shared/base/errors'
import { z } from 'zod'
import { parseJson } from '@sandlot/shared/base/json'
import type { Command } from '../context.ts'
import { StepError } from '../steps.ts'

const USAGE = `Usage: ./sandlot exec [--url <address>] [--key <key>] [--cwd <directory>] [--timeout <seconds>] [--mode <mode>] -- <command> …

A single word is a bash command line; several words are passed as separate arguments. The key can also come from
SANDLOT_API_KEY.`

/** Exit code after Ctrl-C or SIGTERM. */
const INTERRUPTED = 130
/** Exit code for a command that never ran, or whose end is unknown. */
const NOT_RUN = 125
/** Base of exit codes for a command that a signal ended, as in a shell. */
const SIGNALLED = 128

const piece = z.union([z.object({ text: z.string() }), z.object({ base64: z.base64() })])
const ended = z.object({ exitCode: z.int().nullable(), signal: z.string().nullable(), text: z.string() })

/** `exec -- <command>` in the sandbox of the key's owner. Returns the command's exit code. */
export const exec: Command = async ({ config, args, print }) => {
  const at = args.indexOf('--')
  const words = at === -1 ? [] : args.slice(at + 1)
  const options = readOptions(at === -1 ? args : args.slice(0, at))
  if (words.length === 0 || options === undefined) {
    print(USAGE)
    return 2
  }
  const { url = `http://${config.host}:${config.port}`, key = config.apiKey, cwd, timeout, mode } = options
  if (key === undefined)
    throw new StepError(
      'No API key is set.',
      'Create one with the scope exec in Settings → API keys, then pass --key or set SANDLOT_API_KEY.',
    )
  const asked = {
    command: words.length === 1 ? words[0] : words.map(quoted).join(' '),
    cwd,
    mode,
    timeoutMs: timeout === undefined ? undefined : Math.round(Number(timeout) * 1000),
  }
  return await runThere({ url, key, asked })
}

function readOptions(args: string[]) {
  const text = { type: 'string' } as const
  try {
    return parseArgs({ args, options: { url: text, key: text, cwd: text, timeout: text, mode: text } }).values
  } catch {
    return undefined
  }
}

/** One word for bash, whatever is in it. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

/** Streams stdin unless it is a terminal. Ctrl-C ends the command. */
async function runThere({ url, key, asked }: { url: string; key: string; asked: object }): Promise<number> {
  const address = addressOf(url)
  const request = address.protocol === 'https:' ? httpsRequest : httpRequest
  const interrupted = new AbortController()
  const interrupt = (): void => interrupted.abort()
  process.once('SIGINT', interrupt)
  process.once('SIGTERM', interrupt)
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const sending = request(
        address,
        {
          method: 'POST',
          signal: interrupted.signal,
          headers: {
            authorization: `Bearer ${key}`,
            accept: 'text/event-stream',
            'content-type': 'application/octet-stream',
            'sandlot-exec': asciiJson(asked),
          },
        },
        resolve,
      )
      sending.on('error', reject)
      if (process.stdin.isTTY) sending.end()
      else process.stdin.pipe(sending)
    })
    if (response.statusCode !== 200) throw await refusalOf(response)
    return await follow(response)
  } catch (error) {
    if (interrupted.signal.aborted) return INTERRUPTED
    if (error instanceof StepError) {
      process.stderr.write(`sandlot: ${error.message}\n`)
      return NOT_RUN
    }
    process.stderr.write(`sandlot: Couldn’t connect to ${address.origin} (${messageOf(error)}).\n`)
    return NOT_RUN
  } finally {
    process.off('SIGINT', interrupt)
    process.off('SIGTERM', interrupt)
    // Unread input would keep this process alive.
    process.stdin.destroy()
  }
}

function addressOf(url: string): URL {
  if (URL.canParse('/api/exec', url)) return new URL('/api/exec', url)
  throw new StepError(`“${url}” is not an address.`, 'Use one like https://chat.example.org.')
}

/** Headers are limited to ASCII. */
function asciiJson(value: object): string {
  return JSON.stringify(value).replaceAll(
    /[^\u0020-\u007e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

async function refusalOf(response: IncomingMessage): Promise<StepError> {
  let text = ''
  for await (const part of response.setEncoding('utf8')) text += String(part)
  const said = errorBody.safeParse(parseJson(text)).data
  return new StepError(
    said?.message ?? `The address answered ${response.statusCode} and is not a Sandlot server.`,
    '',
  )
}

/** Prints the command's output. Returns its exit code. */
async function follow(response: IncomingMessage): Promise<number> {
  let event = ''
  for await (const line of createInterface({ input: response, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.startsWith('event: ')) event = line.slice('event: '.length)
    if (!line.startsWith('data: ')) continue
    const data = line.slice('data: '.length)
    if (event === 'stdout' || event === 'stderr') await write(process[event], data)
    else if (event === 'ended') return exitCodeOf(data)
    else if (event === 'error')
      throw new StepError(errorBody.safeParse(parseJson(data)).data?.message ?? data, '')
  }
  throw new StepError('The connection was lost before the command ended, so the command was stopped.', '')
}

async function write(to: NodeJS.WriteStream, data: string): Promise<void> {
  const said = piece.parse(JSON.parse(data))
  const bytes = 'text' in said ? said.text : Buffer.from(said.base64, 'base64')
  if (!to.write(bytes)) await new Promise<void>((resolve) => void to.once('drain', resolve))
}

function exitCodeOf(data: string): number {
  const { exitCode, signal, text } = ended.parse(JSON.parse(data))
  if (text !== '') process.stderr.write(`sandlot: ${text}\n`)
  if (exitCode !== null) return exitCode
  return SIGNALLED + (SIGNALS[signal ?? ''] ?? 0)
}

const SIGNALS: Record<string, number | undefined> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGABRT: 6,
  SIGKILL: 9,
  SIGSEGV: 11,
  SIGPIPE: 13,
  SIGTERM: 15,
}
