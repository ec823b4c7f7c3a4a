/** A real service on a free port with a real accounts.db, and real clients for it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { BlockList } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { readServerFrames } from '@sandlot/shared/chat/frames'
import type { ServerFrame } from '@sandlot/shared/chat/frames'
import { inspectRoutes } from 'hono/dev'
import { WebSocket } from 'ws'
import type { ServiceConfig } from '../../src/config.ts'
import { startService } from '../../src/server.ts'
import { ScriptedAgent } from './scripted-agent.ts'

type RunningService = Awaited<ReturnType<typeof startService>>

type ServiceDeps = NonNullable<Parameters<typeof startService>[1]>

export const ANN = { name: 'Ann', email: 'ann@example.org', password: 'correct horse' }

export interface Harness {
  folder: string
  config: ServiceConfig
  agent: ScriptedAgent
  service: RunningService
  logLines: string[]
  /** Stop the service and start another on the same data. */
  restart(deps?: ServiceDeps): Promise<void>
  close(): Promise<void>
}

export async function startHarness(
  changes: Partial<ServiceConfig> = {},
  deps: ServiceDeps = {},
  withAgent = true,
): Promise<Harness> {
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-service-'))
  const socketPath = join(folder, 'run', 'agent.sock')
  const logLines: string[] = []
  const config: ServiceConfig = {
    host: '127.0.0.1',
    port: 0,
    logLevel: 'debug',
    dataFolder: folder,
    keysFolder: join(folder, 'keys'),
    publicUrl: undefined,
    allowedOrigins: [],
    trustedProxies: new BlockList(),
    previewHost: undefined,
    agentUrl: `ws+unix://${socketPath}:/acp`,
    agentToken: undefined,
    accounts: join(folder, 'accounts.db'),
    sessions: join(folder, 'sessions.db'),
    backupStatusFile: join(folder, 'backup-status.json'),
    webDist: join(folder, 'web'),
    metricsToken: undefined,
    mail: undefined,
    alerts: { email: [], webhook: undefined },
    providers: [],
    localSignIn: 'all',
    settings: [],
    otherSettings: null,
    ...changes,
  }
  const all: ServiceDeps = {
    writeLog: (line) => logLines.push(line),
    agentPauses: { firstMs: 20, longestMs: 50 },
    ...deps,
  }
  const agent = await ScriptedAgent.start(join(folder, 'sessions.db'), socketPath)
  if (!withAgent) await agent.drop()
  const harness: Harness = {
    folder,
    config,
    agent,
    logLines,
    service: await startService(config, all),
    async restart(more = {}) {
      await harness.service.close()
      harness.service = await startService(config, { ...all, ...more })
    },
    async close() {
      await harness.service.close()
      await agent.close()
      await rm(folder, { recursive: true })
    },
  }
  if (withAgent) await waitFor(async () => (await fetch(`${harness.service.url}/readyz`)).status === 200)
  return harness
}

/** Poll until it is so. No time is asserted; the test's own limit ends it. */
export async function waitFor(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10))
}

export interface Browser {
  cookie: string
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>
  get(path: string, headers?: Record<string, string>): Promise<Response>
  put(path: string, body: unknown): Promise<Response>
  patch(path: string, body: unknown): Promise<Response>
  delete(path: string): Promise<Response>
}

export function browser(url: string, cookie: string): Browser {
  const send = (
    method: string,
    path: string,
    body: unknown,
    headers: Record<string, string> = {},
  ): Promise<Response> =>
    fetch(`${url}${path}`, {
      method,
      headers: {
        cookie,
        origin: url,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
  return {
    cookie,
    post: (path, body, headers) => send('POST', path, body, headers),
    get: (path, headers) => send('GET', path, undefined, headers),
    put: (path, body) => send('PUT', path, body),
    patch: (path, body) => send('PATCH', path, body),
    delete: (path) => send('DELETE', path, undefined),
  }
}

export function cookieOf(response: Response): string {
  return response.headers
    .getSetCookie()
    .map((cookie) => cookie.slice(0, cookie.indexOf(';')))
    .join('; ')
}

/** `GET /api/me`, each once; without what only stands before a route. */
export function routesOf({ service }: Harness): string[] {
  const routes = inspectRoutes(service.app).filter(({ isMiddleware }) => !isMiddleware)
  return [...new Set(routes.map(({ method, path }) => `${method} ${path}`))]
}

/** The first administrator, signed in. */
export async function setUp({ service }: Harness): Promise<Browser> {
  const token = new URL(service.entryUrl).searchParams.get('token')
  const response = await browser(service.url, '').post('/api/setup', { token, ...ANN })
  if (response.status !== 200) throw new Error(`set-up failed: ${await response.text()}`)
  return browser(service.url, cookieOf(response))
}

/** Another user, signed in. */
export async function addUser({ service }: Harness, admin: Browser, email: string): Promise<Browser> {
  const made = await admin.post('/api/users', { name: 'Bob', email, password: 'battery staple' })
  if (made.status !== 201) throw new Error(`no user: ${await made.text()}`)
  const response = await browser(service.url, '').post('/api/sign-in', { email, password: 'battery staple' })
  return browser(service.url, cookieOf(response))
}

export async function makeKey(user: Browser): Promise<string> {
  const made = (await (await user.post('/api/keys', { name: 'test' })).json()) as { key: string }
  return made.key
}

/** A WebSocket client that keeps every frame. */
export class Tab {
  readonly frames: ServerFrame[] = []
  /** The same, as they came. */
  readonly texts: string[] = []
  readonly socket: WebSocket
  closed: { code: number; reason: string } | undefined

  private constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('message', (data: Buffer) => {
      this.texts.push(data.toString())
      for (const read of readServerFrames(JSON.parse(data.toString()))) {
        if (!read.ok) throw new Error(read.problem)
        this.frames.push(read.frame)
      }
    })
    socket.on('close', (code, reason) => {
      this.closed = { code, reason: reason.toString() }
    })
    socket.on('error', () => undefined)
  }

  static async open(url: string, headers: Record<string, string>): Promise<Tab> {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/ws`, { headers })
    const tab = new Tab(socket)
    await new Promise((resolve, reject) => {
      socket.once('open', resolve)
      socket.once('error', reject)
    })
    return tab
  }

  static of(user: Browser, url: string): Promise<Tab> {
    return Tab.open(url, { cookie: user.cookie, origin: url })
  }

  send(frame: unknown): void {
    this.socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  }

  /** The first frame of that type, at or after `from`, that fits. */
  async get<T extends ServerFrame['type']>(
    type: T,
    fits: (frame: Extract<ServerFrame, { type: T }>) => boolean = () => true,
  ): Promise<Extract<ServerFrame, { type: T }>> {
    const matches = (frame: ServerFrame): frame is Extract<ServerFrame, { type: T }> =>
      frame.type === type && fits(frame as Extract<ServerFrame, { type: T }>)
    for (;;) {
      const found = this.frames.find(matches)
      if (found !== undefined) return found
      if (this.closed !== undefined) throw new Error(`closed (${this.closed.code}) before a ${type}`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  eventsOf(sessionId: string): SessionEvent[] {
    return this.frames.flatMap((frame) =>
      frame.type === 'ai_chat_event' && frame.sessionId === sessionId ? [frame.event] : [],
    )
  }

  /** Everything sent before has been read by the service when this resolves. */
  async settle(): Promise<void> {
    const pong = new Promise((resolve) => this.socket.once('pong', resolve))
    this.socket.ping()
    await pong
  }

  async close(): Promise<void> {
    if (this.closed !== undefined) return
    this.socket.close()
    await waitFor(() => this.closed !== undefined)
  }
}

/** The refusal of an upgrade. */
export async function refusedUpgrade(
  url: string,
  headers: Record<string, string>,
  path = '/ws',
): Promise<{ status: number; body: unknown }> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, { headers })
  return new Promise((resolve, reject) => {
    socket.on('error', () => undefined)
    socket.on('open', () => reject(new Error('it was accepted')))
    socket.on('unexpected-response', (_request, response) => {
      let text = ''
      response.on('data', (piece: Buffer) => (text += piece.toString()))
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) as unknown }),
      )
    })
  })
}
