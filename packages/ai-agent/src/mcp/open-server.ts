/** Puts one server together: where it runs, what it is given, how the user signs in. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { FetchLike } from '@modelcontextprotocol/client'
import { makeScrubber } from '@sandlot/shared/scrub'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import type { ToolLog } from '../tools/tool.ts'
import type { BytePipe } from './transports/byte-pipe.ts'
import { MAX_MESSAGE_BYTES } from './oauth/client-info.ts'
import { startDeploymentProcess } from './transports/deployment-process.ts'
import { HttpTransport } from './transports/http.ts'
import { MachineAccess } from './oauth/machine-access.ts'
import { oauthFetch } from './oauth/fetch.ts'
import type { ProcessGuard } from './transports/process-guard.ts'
import { type SecretOf, fillTemplate, fillTemplates } from './references.ts'
import { startSandboxProcess } from './transports/sandbox-process.ts'
import { McpServer } from './server.ts'
import type { ServerAccess } from './server-access.ts'
import type { Opened } from './server-parts.ts'
import type { HttpSpec, ServerSpec, StdioSpec } from './server-spec.ts'
import { createStderrLog } from './transports/stderr-log.ts'
import { StdioTransport } from './transports/stdio.ts'

export interface OpenServerParts {
  /** Absolute; each server of the deployment has a folder here as its home. */
  folder: string
  guard: ProcessGuard
  secret: SecretOf
  sandbox: (userId: string, signal: AbortSignal) => Promise<Sandbox>
  /** The access of a user to a server with OAuth. */
  access: (spec: HttpSpec, userId: string) => ServerAccess
  /** How HTTP servers are reached; default: as this process does. */
  fetch?: FetchLike
  log: ToolLog
}

/** Key of the settings under which an argument stands; no variable and no header is called like that. */
const ARGUMENT = ' arg '

/** Nothing is started yet. `userId`: undefined for a server that is everybody's. */
export function makeServer(spec: ServerSpec, userId: string | undefined, parts: OpenServerParts): McpServer {
  const { log } = parts
  const secret = (name: string): Promise<string | undefined> =>
    userId === undefined ? Promise.resolve(undefined) : parts.secret(userId, name)
  const access = spec.kind === 'http' ? accessTo(spec, userId, parts) : undefined
  return new McpServer({
    spec,
    log,
    access,
    settings: () => settingsOf(spec, secret),
    open: (settings, signal) =>
      spec.kind === 'http'
        ? openHttp(spec, settings, access, parts.fetch)
        : openStdio(spec, userId, settings, signal, parts),
  })
}

function accessTo(
  spec: HttpSpec,
  userId: string | undefined,
  parts: OpenServerParts,
): ServerAccess | undefined {
  const { auth, url } = spec.config
  if (auth?.type === 'oauth') return userId === undefined ? undefined : parts.access(spec, userId)
  if (auth === undefined) return undefined
  const { clientId, scope, issuer, algorithm } = auth
  return new MachineAccess({
    url,
    clientId,
    proof:
      spec.privateKey === undefined
        ? { secret: spec.clientSecret ?? '' }
        : { privateKey: spec.privateKey, algorithm },
    issuer,
    scope,
    fetch: oauthFetch({ named: issuer === undefined ? [url] : [url, issuer] }),
    now: Date.now,
  })
}

async function settingsOf(
  spec: ServerSpec,
  secret: (name: string) => Promise<string | undefined>,
): Promise<Record<string, string>> {
  if (spec.kind === 'http') return fillTemplates(spec.headers, secret)
  const args = await Promise.all(spec.args.map((template) => fillTemplate(template, secret)))
  return {
    ...(await fillTemplates(spec.env, secret)),
    ...Object.fromEntries(args.map((value, index) => [`${ARGUMENT}${index}`, value ?? ''])),
  }
}

async function openHttp(
  spec: HttpSpec,
  headers: Readonly<Record<string, string>>,
  access: ServerAccess | undefined,
  fetch: FetchLike | undefined,
): Promise<Opened> {
  const transport = new HttpTransport({
    url: spec.config.url,
    headers,
    auth: access,
    maxMessageBytes: MAX_MESSAGE_BYTES,
    fetch,
  })
  return { transport, ending: () => transport.cutOff }
}

async function openStdio(
  spec: StdioSpec,
  userId: string | undefined,
  settings: Readonly<Record<string, string>>,
  signal: AbortSignal,
  parts: OpenServerParts,
): Promise<Opened> {
  const { name, config } = spec
  const isArgument = ([key]: [string, string]): boolean => key.startsWith(ARGUMENT)
  const entries = Object.entries(settings)
  const env = Object.fromEntries(entries.filter((entry) => !isArgument(entry)))
  const args = spec.args.map((_, index) => settings[`${ARGUMENT}${index}`] ?? '')
  // What it was given, its log must not repeat.
  const scrub = makeScrubber(Object.values(settings))
  const stderr = createStderrLog(parts.log, name, scrub)
  const process = {
    command: config.command,
    args,
    env,
    cwd: config.cwd,
    stderr,
  }

  const start = async (): Promise<BytePipe> => {
    if (config.where === 'deployment')
      return startDeploymentProcess({
        ...process,
        home: join(parts.folder, ...homeOf(spec, userId)),
        guard: parts.guard,
      })
    if (userId === undefined) throw new Error('a server in a sandbox needs a user')
    const sandbox = await parts.sandbox(userId, signal)
    return startSandboxProcess({ ...process, sandbox, server: spec.place })
  }
  const transport = new StdioTransport({
    open: start,
    maxMessageBytes: MAX_MESSAGE_BYTES,
    onGarbage: (count, line) => {
      // The first lines say what is wrong; a thousand more say nothing new.
      if (count <= 3 || Number.isInteger(Math.log10(count)))
        parts.log.warn({ server: name, count, line: scrub(line) }, 'an MCP server printed what is no message')
    },
  })
  return { transport, ending: () => transport.ended }
}

/** A folder of its own, and for what works with one user's secrets one for each user: programs keep such things at home. */
function homeOf({ name, place }: StdioSpec, userId: string | undefined): string[] {
  if (userId === undefined || place !== name) return [place]
  const plain = /^[A-Za-z0-9_-]{1,64}$/.test(userId)
  return [name, 'users', plain ? userId : createHash('sha256').update(userId).digest('hex')]
}

/** The folders that servers keep for this user alone, below the folder of all homes. */
export function homesOf(specs: readonly ServerSpec[], userId: string): string[][] {
  return specs.flatMap((spec) =>
    spec.perUser && 'args' in spec && spec.place === spec.name ? [homeOf(spec, userId)] : [],
  )
}
