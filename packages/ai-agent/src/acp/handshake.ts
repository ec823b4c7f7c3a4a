/** `initialize` and `authenticate`: what we can, and that nobody has to sign in. */
import { type AgentApp, type InitializeResponse, PROTOCOL_VERSION, methods } from '@agentclientprotocol/sdk'
import { EXT } from '@sandlot/shared/acp-meta'
import { SandlotError } from '@sandlot/shared/errors'
import type { AcpParts, Serving } from './serving.ts'

export function addHandshake(app: AgentApp, serving: Serving): void {
  const { parts, handled } = serving
  app
    .onRequest(
      methods.agent.initialize,
      handled(async ({ params }) => {
        serving.connection.initialize(params.clientCapabilities)
        return capabilities(parts)
      }),
    )
    .onRequest(
      methods.agent.authenticate,
      handled(async () => {
        throw new SandlotError('bad_request', 'Nobody has to sign in here: there is no such method.')
      }),
    )
}

/** Whatever version the client wants: ours, the only one that we speak. */
function capabilities({ version, takesImages = false, clientServers }: AcpParts): InitializeResponse {
  return {
    protocolVersion: PROTOCOL_VERSION,
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: takesImages, audio: false, embeddedContext: true },
      mcpCapabilities: { http: clientServers !== undefined, sse: false },
      sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
      _meta: {
        sandlot: { version: 1, extensions: [EXT.approve, EXT.cancelCall, EXT.status], prompt: ['onError'] },
      },
    },
    authMethods: [],
    agentInfo: { name: 'sandlot', title: 'Sandlot', version },
  }
}
