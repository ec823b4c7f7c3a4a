/** The SDK's own client and our agent, joined by in-memory streams. */
import {
  type AnyMessage,
  type ClientCapabilities,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  type ClientConnection,
  PROTOCOL_VERSION,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionNotification,
  client,
  methods,
} from '@agentclientprotocol/sdk'
import { EXT } from '@sandlot/shared/acp/meta'
import { createAcpServer } from '../../src/acp/server.ts'
import type { AcpServerParts } from '../../src/acp/parts.ts'
import { soleOwner } from '../../src/replicas/ownership.ts'
import type { Core } from '../support/agent-fixture.ts'

export const ADA = { id: 'u_ada', role: 'member' as const }
export const BOB = { id: 'u_bob', role: 'member' as const }

export interface TestClient extends AsyncDisposable {
  connection: ClientConnection
  updates: SessionNotification[]
  others: { method: string; params: unknown }[]
  request(method: string, params: object): Promise<Record<string, unknown>>
}

export interface ClientOptions {
  /** The last word on what the server works with. */
  parts?: Partial<AcpServerParts>
  takesImages?: boolean
  capabilities?: Record<string, unknown>
  /** Next to `_meta`. */
  clientCapabilities?: ClientCapabilities
  permission?: (request: RequestPermissionRequest) => Promise<RequestPermissionResponse>
  elicitation?: (request: CreateElicitationRequest) => Promise<CreateElicitationResponse>
}

/** Parts with which an agent with this core serves its clients. */
export function acpParts(
  core: Core,
  options: Pick<ClientOptions, 'parts' | 'takesImages'> = {},
): AcpServerParts {
  return {
    manager: core.manager,
    defaultMode: 'auto-edit',
    takesImages: options.takesImages ?? true,
    ownership: soleOwner(),
    userSeen: () => undefined,
    modeCeilingOf: (_userId, said) => said,
    clientServers: { leave: async () => undefined, setServers: () => [], states: async () => [] },
    audit: core.store.admin.audit,
    instructions: core.store.people.instructions,
    projects: core.store.chats,
    rulesOf: (userId) => core.store.people.rules.list(userId),
    status: () =>
      Promise.resolve({
        ready: true,
        reasons: [],
        model: { name: 'fake', demo: false },
        defaultMode: 'auto-edit',
      }),
    version: '0.0.0',
    log: { info: () => undefined, warn: (fields, message) => void core.warnings.push({ fields, message }) },
    ...options.parts,
    // The rest is not used by these clients.
  } as AcpServerParts
}

/** The updates that came together, as they are by themselves. */
function single(params: unknown): SessionNotification[] {
  const { sessionId, updates } = params as { sessionId: string; updates: SessionNotification['update'][] }
  return updates.map((update) => ({ sessionId, update }))
}

/** A client and the agent, joined by in-memory streams. */
export async function connect(core: Core, options: ClientOptions = {}): Promise<TestClient> {
  const parts = acpParts(core, options)
  const there = new TransformStream<AnyMessage, AnyMessage>()
  const back = new TransformStream<AnyMessage, AnyMessage>()
  const agent = createAcpServer(parts)({ readable: there.readable, writable: back.writable })
  const updates: SessionNotification[] = []
  const others: TestClient['others'] = []
  let app = client({ name: 'test' })
    .onNotification(methods.client.session.update, ({ params }) => void updates.push(params))
    .onNotification('*', ({ method, params }) => {
      if (method === EXT.sessionUpdates) updates.push(...single(params))
      else others.push({ method, params })
    })
  const { permission, elicitation } = options
  if (elicitation !== undefined)
    app = app.onRequest(methods.client.elicitation.create, ({ params }) => elicitation(params))
  if (permission !== undefined)
    app = app.onRequest(methods.client.session.requestPermission, ({ params }) => permission(params))
  const connection = app.connect({ readable: back.readable, writable: there.writable })
  const request = (method: string, params: object): Promise<Record<string, unknown>> =>
    connection.agent.request(method, params)
  await request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: {
      ...options.clientCapabilities,
      _meta: options.capabilities ?? { sandlot: { version: 1, sessionChanges: true } },
    },
  })
  return {
    connection,
    updates,
    others,
    request,
    [Symbol.asyncDispose]: async () => {
      connection.close()
      await connection.closed
      // The end of a socket does this: these streams are not connected.
      agent.close()
    },
  }
}

/** `_meta` of a request of our own service. */
export const by = (user: object, more: object = {}) => ({ _meta: { sandlot: { user, ...more } } })
export const text = (words: string) => [{ type: 'text', text: words }]

export async function newSession(one: TestClient, params: object = by(ADA)): Promise<string> {
  const { sessionId } = await one.request(methods.agent.session.new, {
    cwd: '/workspace',
    mcpServers: [],
    ...params,
  })
  return String(sessionId)
}

/** The agent's text to this client in this session, joined. */
export function said(one: TestClient, sessionId: string): string {
  return shown(
    { ...one, updates: one.updates.filter(({ update }) => update.sessionUpdate !== 'notice') },
    sessionId,
  )
}

/** The same with the notices, a line each. */
export function shown(one: Pick<TestClient, 'updates'>, sessionId: string): string {
  return one.updates
    .filter((notification) => notification.sessionId === sessionId)
    .map(({ update }) => {
      if (update.sessionUpdate === 'notice') return `${update.title}: ${update.description ?? ''}\n`
      return update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text'
        ? update.content.text
        : ''
    })
    .join('')
}
