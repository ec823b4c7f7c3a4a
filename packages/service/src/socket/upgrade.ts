/**
 * `GET /ws` and the addresses of byte streams: caller and origin are checked before the WebSocket
 * is accepted.
 */
import { STATUS_CODES, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { SandlotError, toErrorBody } from '@sandlot/shared/base/errors'
import { MAX_FRAME_BYTES } from '@sandlot/shared/chat/frames'
import { newId } from '@sandlot/shared/base/ids'
import type { ServiceConfig } from '../config.ts'
import { addressIn } from '../auth/address.ts'
import { credentialsIn } from '../http/request.ts'
import type { AccountsStore } from '@sandlot/storage/accounts/store'
import { WebSocketServer } from 'ws'
import type { Sessions } from '../chat/sessions.ts'
import type { KeyScope } from '@sandlot/shared/account/sign-in-api'
import { agentUserOf } from '../auth/agent-user.ts'
import { findCaller, type Caller } from '../auth/caller.ts'
import { requireScope } from '../auth/scopes.ts'
import type { Logger } from '../log.ts'
import type { OriginRule } from '../auth/origin.ts'
import { relayBytes } from './byte-relay.ts'
import { byteRoute } from './byte-routes.ts'
import { ExplainingWebSocket, serveChatSocket, type ChatSocketOptions } from './chat-socket.ts'
import { MAX_SOCKETS_PER_USER, type Sockets } from './sockets.ts'

interface UpgradeOptions
  extends Omit<ChatSocketOptions, 'caller' | 'chat'>, Omit<ChatSocketOptions['chat'], 'accessTo'> {
  accounts: AccountsStore
  config: Pick<ServiceConfig, 'trustedProxies'>
  isOurs: OriginRule
  sessions: Sessions
}

/** The most bytes of one message of a byte stream. */
const MAX_PIECE_BYTES = 1024 * 1024

type OnUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

export function makeUpgrade(options: UpgradeOptions): OnUpgrade {
  const { log, sockets, sessions, traffic } = options
  const common = { noServer: true, perMessageDeflate: false, autoPong: false }
  const frames = { ...common, maxPayload: MAX_FRAME_BYTES, WebSocket: ExplainingWebSocket }
  const server = new WebSocketServer(frames)
  const bytes = new WebSocketServer({ ...common, maxPayload: MAX_PIECE_BYTES })

  const upgrade = async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    const url = URL.parse(request.url ?? '', 'http://sandlot.invalid')
    const openStream = url === null ? undefined : byteRoute(url)
    if (openStream !== undefined) return upgradeBytes(openStream, request, socket, head)
    if (url?.pathname !== '/ws') throw new SandlotError('not_found', 'WebSockets are at /ws.')
    const caller = await admit(options, request, 'chat')
    const { id } = caller.account
    await traffic.request(id, 'first')
    if (socket.destroyed) return
    // Others may have opened while this one waited.
    requireRoom(sockets, id)
    server.handleUpgrade(request, socket, head, (accepted) => {
      serveChatSocket(accepted, socket, {
        ...options,
        caller,
        chat: {
          agent: options.agent,
          uploads: options.uploads,
          log: log.child({ user: id, socket: newId('r') }),
          accessTo: async (sessionId) => (await sessions.find(caller.account, sessionId))?.access,
        },
      })
    })
  }

  const upgradeBytes = async (
    openStream: NonNullable<ReturnType<typeof byteRoute>>,
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
  ): Promise<void> => {
    const first = await admit(options, request, 'exec')
    await traffic.request(first.account.id, 'stream')
    const agent = await openStream(options.agent, agentUserOf(first))
    try {
      // Opening takes a while: the sign-in may have ended in between.
      const caller = await admit(options, request, 'exec')
      if (socket.destroyed) return agent.terminate()
      bytes.handleUpgrade(request, socket, head, (browser) =>
        relayBytes({ browser, agent }, { caller, sockets, traffic }),
      )
    } catch (error) {
      agent.terminate()
      throw error
    }
  }

  return function onUpgrade(request, socket, head) {
    // Until `ws` takes it over, it has no other listener.
    const failed = (error: Error): void => log.debug({ error: error.message }, 'an upgrade was cut off')
    socket.on('error', failed)
    upgrade(request, socket, head)
      .then(() => socket.off('error', failed))
      .catch((error: unknown) => refuse(socket, error, log))
  }
}

/** Throws where the caller is unknown, may not, or has too many connections. */
async function admit(
  { accounts, config, isOurs, sockets }: UpgradeOptions,
  request: IncomingMessage,
  scope: KeyScope,
): Promise<Caller> {
  const address = addressIn(request, config.trustedProxies)
  const caller = await findCaller(accounts, isOurs, { ...credentialsIn(request), address }, true)
  if (caller.via === 'key') requireScope(caller.scopes, scope)
  requireRoom(sockets, caller.account.id)
  return caller
}

function requireRoom(sockets: Sockets, userId: string): void {
  if (sockets.countOf(userId) < MAX_SOCKETS_PER_USER) return
  throw new SandlotError(
    'rate_limited',
    `You have ${MAX_SOCKETS_PER_USER} open connections. Close some tabs.`,
  )
}

function refuse(socket: Duplex, error: unknown, log: Logger): void {
  const requestId = newId('r')
  if (!(error instanceof SandlotError)) log.error({ err: error, requestId }, 'an upgrade failed')
  const status = error instanceof SandlotError ? error.status : 500
  const retryAfter = error instanceof SandlotError ? error.retryAfterSeconds : undefined
  const body = JSON.stringify(toErrorBody(error, requestId))
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
      'Connection: close',
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${requestId}`,
      ...(retryAfter === undefined ? [] : [`Retry-After: ${retryAfter}`]),
      '',
      body,
    ].join('\r\n'),
  )
}
