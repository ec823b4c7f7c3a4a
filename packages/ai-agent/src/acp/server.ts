/** ACP v1 over one stream: requests to sessions, errors with texts that are safe to show. */
import {
  type AgentConnection,
  type Stream,
  type AgentApp,
  type ClientCapabilities,
  type InitializeResponse,
  type AnyMessage,
  RequestError,
  agent,
  PROTOCOL_VERSION,
  methods,
} from '@agentclientprotocol/sdk'
import type { ClientConnection } from './connection.ts'
import { EditorConnection } from './editor/connection.ts'
import { execRequests } from './requests/exec.ts'
import { extensionRequests } from './requests/extension.ts'
import { filesRequests } from './requests/files.ts'
import { watchRequests } from './requests/watch.ts'
import { chatsRequests } from './requests/chats.ts'
import {
  instructionsRequests,
  mcpRequests,
  secretsRequests,
  rulesRequests,
  removalRequests,
} from './requests/person.ts'
import { addPromptRequests } from './requests/prompt.ts'
import type { AcpServerParts, ProtocolParts } from './parts.ts'
import {
  type ExtensionHandler,
  type ExtensionHandlers,
  type HandlerContext,
  createHandlerContext,
} from './handler-context.ts'
import { parseParams } from './errors.ts'
import { agentUser } from '@sandlot/shared/account/agent-user'
import { type AgentRequest, agentRequest } from '@sandlot/shared/agent-requests'
import { overviewRequests } from './requests/overview.ts'
import { administrationRequests } from './requests/administration.ts'
import { mcpServersRequests } from './requests/mcp-servers.ts'
import { modelsRequests } from './requests/models.ts'
import { retentionRequests } from './requests/retention.ts'
import { teamRequests } from './requests/team.ts'
import { portsRequests } from './requests/ports.ts'
import { terminalsRequests } from './requests/terminals.ts'
import { sandboxRequests, sandboxesRequests } from './requests/sandbox.ts'
import { addSessionRequests } from './requests/session.ts'
import { type SendNow, ServiceConnection, serviceCapabilityOf } from './service-connection.ts'
import { EXT } from '@sandlot/shared/acp/meta'
import { SandlotError } from '@sandlot/shared/base/errors'
import { setImmediate as turn } from 'node:timers/promises'
import { z } from 'zod'

/** Serves one client until its stream ends. A disconnect cancels nothing. */
type ServeAcp = (stream: Stream & { send?: SendNow }) => AgentConnection

/**
 * The SDK keeps about half a kilobyte per registered handler and connection. So a connection
 * registers only the requests whose parameters the SDK checks; those of our extensions share one
 * table.
 */
export function createAcpServer(parts: AcpServerParts): ServeAcp {
  const extensions = new Map<string, ExtensionHandler>(Object.entries(allExtensions(parts)))
  return (stream) => {
    // Assigned as soon as the connection is made, before its first message is handled.
    let connection: ClientConnection
    let toService: () => ClientConnection
    const context = createHandlerContext(parts, () => connection)
    const app = agent({ name: 'sandlot' }).onConnect((made) => {
      const { manager, log, modeCeilingOf, userSeen, ownership, clientServers } = parts
      const { client, signal: closed } = made
      const own = { manager, log, modeCeilingOf, userSeen, ownership, clientServers, client, closed }
      toService = () => new ServiceConnection(own, () => made.close(), stream.send)
      connection = new EditorConnection(own)
    })
    addHandshake(app, context, (declared) => {
      const isService = serviceCapabilityOf(declared) !== undefined
      if (isService && connection instanceof EditorConnection) connection = toService()
      connection.initialize(declared)
    })
    addSessionRequests(app, context)
    addPromptRequests(app, context)
    app.onRequest(
      '*',
      context.handled(async ({ method, params, signal }) => {
        const handle = extensions.get(method)
        const request = agentRequest(method)
        if (handle === undefined || request === undefined) throw RequestError.methodNotFound(method)
        // Without an `await` where the person is ours.
        const claiming = connection.claim(request, params)
        if (claiming !== undefined) await claiming
        const given = parseParams(request.params, connection.extensionParams(request, params), method)
        checkRole(request, given)
        return handle({ params: given, signal, connection })
      }),
    )
    return app.connect({ readable: yieldBetweenMessages(stream.readable), writable: stream.writable })
  }
}

function allExtensions(parts: AcpServerParts) {
  return {
    ...extensionRequests(parts),
    ...rulesRequests(parts),
    ...secretsRequests(parts),
    ...filesRequests(parts),
    ...mcpRequests(parts),
    ...instructionsRequests(parts),
    ...chatsRequests(parts),
    ...removalRequests(parts),
    ...modelsRequests(parts),
    ...retentionRequests(parts),
    ...overviewRequests(parts),
    ...mcpServersRequests(parts),
    ...teamRequests(parts),
    ...portsRequests(parts),
    ...watchRequests(parts),
    ...terminalsRequests(parts),
    ...execRequests(parts),
    ...sandboxRequests(parts),
    ...sandboxesRequests(parts),
    ...administrationRequests(parts),
  } satisfies ExtensionHandlers
}

const ofUser = z.object({ user: agentUser.pick({ role: true }) })

/** Throws `forbidden`. */
function checkRole({ role, guests }: AgentRequest, params: unknown): void {
  if (role === undefined && guests === undefined) return
  const { user } = ofUser.parse(params)
  if (role === 'admin' && user.role !== 'admin')
    throw new SandlotError('forbidden', 'Only an administrator can do this.')
  if (guests !== undefined && user.role === 'guest') throw new SandlotError('forbidden', guests)
}

// ── initialize and authenticate ─────────────────────────────────────────────────────────────────

function addHandshake(
  app: AgentApp,
  { parts, handled }: HandlerContext,
  initialize: (capabilities: ClientCapabilities | undefined) => void,
): void {
  app
    .onRequest(
      methods.agent.initialize,
      handled(async ({ params }) => {
        initialize(params.clientCapabilities)
        return capabilities(parts)
      }),
    )
    .onRequest(
      methods.agent.authenticate,
      handled(async () => {
        throw new SandlotError('bad_request', 'Sandlot has no sign-in over ACP: there is no such method.')
      }),
    )
}

/** Our protocol version, whichever the client requests: there is no other. */
function capabilities({ version, takesImages }: ProtocolParts): InitializeResponse {
  return {
    protocolVersion: PROTOCOL_VERSION,
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: takesImages, audio: false, embeddedContext: true },
      mcpCapabilities: { http: true, sse: false },
      sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
      _meta: {
        sandlot: { version: 1, extensions: [EXT.approve, EXT.cancelCall, EXT.status], prompt: ['onError'] },
      },
    },
    authMethods: [],
    agentInfo: { name: 'sandlot', title: 'Sandlot', version },
  }
}

/**
 * Passes on each message in its own turn of the event loop, so that handlers begin in the order of
 * their messages. The SDK does not start a handler when it reads a message: it tries one registered
 * handler after the other, each a microtask later, and keeps reading. So of two messages that
 * arrive together the later one would start first if its handler was registered earlier, and a
 * request right after `initialize` would be refused. After a turn of the loop the handler has run
 * to its first `await`.
 *
 * Not a `TransformStream`, which costs every connection a second queue and a pipe.
 */
function yieldBetweenMessages(messages: ReadableStream<AnyMessage>): ReadableStream<AnyMessage> {
  const reader = messages.getReader()
  return new ReadableStream<AnyMessage>(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        if (done) return controller.close()
        controller.enqueue(value)
        await turn()
      },
      cancel: (reason) => reader.cancel(reason),
    },
    // Reads from `messages` on demand only, so back-pressure reaches the client.
    new CountQueuingStrategy({ highWaterMark: 0 }),
  )
}
