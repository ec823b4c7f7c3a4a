/** The address that a request comes from. */
import type { IncomingMessage } from 'node:http'
import type { BlockList } from 'node:net'
import { clientAddress, plainAddress } from './trusted-proxies.ts'

/** The address of the client, for limits and the audit log. */
export function addressIn(request: IncomingMessage, trusted: BlockList): string {
  // Node joins several headers of this name with commas.
  const passedOn = request.headers['x-forwarded-for']?.toString()
  return clientAddress(peerOf(request), passedOn, trusted)
}

export function peerOf(request: IncomingMessage): string {
  return plainAddress(request.socket.remoteAddress ?? 'unknown')
}
