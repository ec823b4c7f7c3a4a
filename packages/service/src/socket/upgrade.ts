/** `GET /ws`: caller and origin are checked before the WebSocket is accepted. */
import { STATUS_CODES } from 'node:http'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { SandlotError, toErrorBody } from '@sandlot/shared/errors'
import { MAX_FRAME_BYTES } from '@sandlot/shared/frames'
import { newId } from '@sandlot/shared/ids'
import type { AccountsStore } from '@sandlot/storage/accounts/store'
import { WebSocketServer } from 'ws'
import type { Sessions } from '../chat/sessions.ts'
import { findCaller } from '../auth/caller.ts'
import type { Caller } from '../auth/caller.ts'
import { requireScope } from '../auth/scopes.ts'
import type { Logger } from '../log.ts'
import type { OriginRule } from '../auth/origin.ts'
import { ExplainingWebSocket, serveChatSocket } from './chat-socket.ts'
import type { ChatSocketOptions } from './chat-socket.ts'
import { MAX_SOCKETS_PER_USER } from './sockets.ts'

interface UpgradeOptions extends Omit<ChatSocketOptions, 'caller' | 'accessTo'> {
  accounts: AccountsStore
  isOurs: OriginRule
  sessions: Sessions
}

type OnUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

export function makeUpgrade(options: UpgradeOptions): OnUpgrade {
  const { log, sockets, sessions } = options
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_FRAME_BYTES,
    perMessageDeflate: false,
    WebSocket: ExplainingWebSocket,
  })

  const upgrade = async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    const caller = await admit(request, options)
    if (socket.destroyed) return
    const { id } = caller.account
    server.handleUpgrade(request, socket, head, (accepted) => {
      serveChatSocket(accepted, socket, {
        ...options,
        caller,
        log: log.child({ user: id, socket: newId('r') }),
        accessTo: async (sessionId) => (await sessions.find(caller.account, sessionId))?.access,
      })
    })
  }

  return function onUpgrade(request, socket, head) {
    // Until `ws` takes it over, it has no other listener.
    const failed = (error: Error): void => log.debug({ error: error.message }, 'an upgrade was cut off')
    socket.on('error', failed)
    upgrade(request, socket, head)
      .then(() => socket.off('error', failed))
      .catch((error: unknown) => refuse(socket, error, log))
  }

  async function admit(request: IncomingMessage, given: UpgradeOptions): Promise<Caller> {
    const path = request.url?.split('?', 1)[0]
    if (path !== '/ws') throw new SandlotError('not_found', 'WebSockets are at /ws.')
    const { cookie, authorization, origin, host } = request.headers
    const caller = await findCaller(
      given.accounts,
      given.isOurs,
      { cookie, authorization, origin, host },
      true,
    )
    if (caller.via === 'key') requireScope(caller.scopes, 'chat')
    if (sockets.countOf(caller.account.id) < MAX_SOCKETS_PER_USER) return caller
    throw new SandlotError(
      'rate_limited',
      `You have ${MAX_SOCKETS_PER_USER} open connections. Close some tabs.`,
    )
  }
}

function refuse(socket: Duplex, error: unknown, log: Logger): void {
  const requestId = newId('r')
  if (!(error instanceof SandlotError)) log.error({ err: error, requestId }, 'an upgrade failed')
  const status = error instanceof SandlotError ? error.status : 500
  const body = JSON.stringify(toErrorBody(error, requestId))
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
      'Connection: close',
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${requestId}`,
      '',
      body,
    ].join('\r\n'),
  )
}
