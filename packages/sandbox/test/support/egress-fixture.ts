import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Server as TcpServer,
  type Socket,
} from 'node:net'

import { createEgress, type Egress, type EgressOptions, type UserEgress } from '../../src/egress/egress.ts'

type EgressRefusedEvent = Parameters<NonNullable<EgressOptions['onRefused']>>[0]
type EgressAudit = Parameters<NonNullable<EgressOptions['audit']>>[0]

export type Handler = (request: IncomingMessage, response: ServerResponse) => void

export interface Origin {
  port: number
  /** Connections that are open now. */
  open(): number
  close(): Promise<void>
}

async function listening(server: Server | TcpServer): Promise<Origin> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 4_096, resolve))
  return {
    port: (server.address() as AddressInfo).port,
    open: () => sockets.size,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
}

/** An HTTP server on the loopback interface of this machine. */
export const startOrigin = (handler: Handler): Promise<Origin> => listening(createServer(handler))

/** A server that speaks whatever `handler` does. */
export const startTcp = (handler: (socket: Socket) => void): Promise<Origin> =>
  listening(
    createTcpServer({ allowHalfOpen: true }, (socket) => {
      handler(socket)
      // Without reading the end is never seen.
      socket.on('end', () => socket.end()).resume()
    }),
  )

export interface WatchedEgress extends Egress {
  forUser(userId: string): UserEgress
  audits: EgressAudit[]
  events: EgressRefusedEvent[]
  /** Every name that was resolved, in order. */
  asked: string[]
}

/** Egress whose names all lead to this machine, unless a test says otherwise. */
export function watchedEgress(
  options: Partial<EgressOptions> = {},
): WatchedEgress & { options: EgressOptions } {
  const audits: EgressAudit[] = []
  const events: EgressRefusedEvent[] = []
  const asked: string[] = []
  const all: EgressOptions = {
    allow: [],
    allowAddresses: ['127.0.0.1'],
    audit: (record) => audits.push(record),
    onRefused: (event) => events.push(event),
    ...options,
    resolve: async (host) => {
      asked.push(host)
      return options.resolve ? options.resolve(host) : ['127.0.0.1']
    },
  }
  const egress = createEgress(all)
  const forUser = (userId: string): UserEgress => {
    const way = egress.forUser(userId)
    if (way === undefined) throw new Error(`${userId} has no way out`)
    return way
  }
  return { forUser, audits, events, asked, options: all }
}
