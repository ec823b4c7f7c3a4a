/** ACP v1 over one stream: requests in, sessions asked, errors with safe texts out. */
import { type AgentConnection, type Stream, agent } from '@agentclientprotocol/sdk'
import { ClientConnection } from './connection.ts'
import { addExtensionRequests } from './extension-requests.ts'
import { addFilesRequests } from './files-requests.ts'
import { addHandshake } from './handshake.ts'
import { addInstructionsRequests } from './instructions-requests.ts'
import { addPromptRequests } from './prompt-request.ts'
import { addRemovalRequests } from './removal-requests.ts'
import { addRulesRequests } from './rules-requests.ts'
import { addMcpRequests } from './mcp-requests.ts'
import { addSecretsRequests } from './secrets-requests.ts'
import { oneATurn } from './one-a-turn.ts'
import { type AcpParts, makeServing } from './serving.ts'
import { addSessionRequests } from './session-requests.ts'

/** Serve one client until its stream ends. A client that leaves ends nothing. */
export function serveAcp(stream: Stream, parts: AcpParts): AgentConnection {
  // Assigned as soon as the connection is made, before its first message is handled.
  let connection: ClientConnection
  const serving = makeServing(parts, () => connection)
  const app = agent({ name: 'sandlot' }).onConnect((made) => {
    connection = new ClientConnection(made.client, parts, made.signal)
  })
  addHandshake(app, serving)
  addSessionRequests(app, serving)
  addPromptRequests(app, serving)
  addExtensionRequests(app, serving)
  addRulesRequests(app, serving)
  addSecretsRequests(app, serving)
  addFilesRequests(app, serving)
  addMcpRequests(app, serving)
  addInstructionsRequests(app, serving)
  addRemovalRequests(app, serving)
  return app.connect({ readable: oneATurn(stream.readable), writable: stream.writable })
}
