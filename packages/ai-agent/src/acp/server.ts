/** ACP v1 over one stream: requests in, sessions asked, errors with safe texts out. */
import { type AgentConnection, RequestError, type Stream, agent } from '@agentclientprotocol/sdk'
import { ClientConnection } from './connection.ts'
import { extensionRequests } from './requests/extension.ts'
import { filesRequests } from './requests/files.ts'
import { addHandshake } from './handshake.ts'
import { instructionsRequests } from './requests/instructions.ts'
import { mcpRequests } from './requests/mcp.ts'
import { oneATurn } from './one-a-turn.ts'
import { addPromptRequests } from './requests/prompt.ts'
import { removalRequests } from './requests/removal.ts'
import { rulesRequests } from './requests/rules.ts'
import { secretsRequests } from './requests/secrets.ts'
import { type AcpParts, type ExtensionHandlers, makeServing } from './serving.ts'
import { addSessionRequests } from './requests/session.ts'

/** Serves one client until its stream ends. A client that leaves ends nothing. */
export type ServeAcp = (stream: Stream) => AgentConnection

/**
 * The SDK keeps about half a kilobyte per registered handler and connection. So a connection registers only the
 * requests whose parameters the SDK checks; those of our extensions share one table.
 */
export function createAcpServer(parts: AcpParts): ServeAcp {
  const extensions = new Map(Object.entries(allExtensions(parts)))
  return (stream) => {
    // Assigned as soon as the connection is made, before its first message is handled.
    let connection: ClientConnection
    const serving = makeServing(parts, () => connection)
    const app = agent({ name: 'sandlot' }).onConnect((made) => {
      connection = new ClientConnection(made.client, parts, made.signal)
    })
    addHandshake(app, serving)
    addSessionRequests(app, serving)
    addPromptRequests(app, serving)
    app.onRequest(
      '*',
      serving.handled(async ({ method, params, signal }) => {
        const handle = extensions.get(method)
        if (handle === undefined) throw RequestError.methodNotFound(method)
        return handle({ params, signal, connection })
      }),
    )
    return app.connect({ readable: oneATurn(stream.readable), writable: stream.writable })
  }
}

function allExtensions(parts: AcpParts): ExtensionHandlers {
  return {
    ...extensionRequests(parts),
    ...rulesRequests(parts),
    ...secretsRequests(parts),
    ...filesRequests(parts),
    ...mcpRequests(parts),
    ...instructionsRequests(parts),
    ...removalRequests(parts),
  }
}
