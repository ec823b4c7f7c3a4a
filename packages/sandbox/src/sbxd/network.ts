/** Connections with programs inside: outgoing ones for egress, and ours to a listening port. */
import type { Duplex } from 'node:stream'

import type { UserEgress } from '../egress/egress.ts'
import { SandboxError } from '../errors.ts'
import { createConnection, WINDOW_BYTES } from './connection.ts'
import { ByteReader, ByteWriter } from './protocol/bytes.ts'
import { FrameType } from './protocol/frames.ts'
import type { Channel, Link } from './link.ts'

/** Port of the egress proxy in a container. */
export const EGRESS_PORT = 3128

const EADDRINUSE = 98
/** After so long a silence of ours sbxd closes our connections. Pings are far more frequent. */
const SILENT_MS = 120_000

/**
 * Asks sbxd to listen on the loopback interface and to pass every connection to `egress`. Resolves
 * with the port, another one than requested when a program inside has taken that. Rejects with
 * `SandboxError`.
 */
export async function openEgress(
  link: Link,
  egress: UserEgress,
  askedPort: number,
  silentMs = SILENT_MS,
): Promise<number> {
  link.onInward((channel, payload) => {
    const made = createConnection(link, channel, new ByteReader(payload).u64())
    const answer = new ByteWriter().u32(0).u64(WINDOW_BYTES).done()
    link.send(FrameType.EGRESS_RESULT, 0, channel, answer)
    egress.serve(made.stream).catch(() => made.stream.destroy())
    return made.channel
  })
  link.onEgressRefused = (payload) => egress.refusedInside(new ByteReader(payload).u32())
  const ask = async (port: number): Promise<{ error: number; port: number }> => {
    const question = new ByteWriter()
      .u16(port)
      .u16(egress.connections)
      .u32(link.sendsPings ? silentMs : 0)
      .done()
    const { type, payload } = await link.request(FrameType.EGRESS_LISTEN, 0, question)
    if (type !== FrameType.EGRESS_RESULT)
      throw new SandboxError('protocol', 'sbxd answered EGRESS_LISTEN with something else')
    const reader = new ByteReader(payload)
    return { error: reader.u32(), port: reader.u16() }
  }
  let answer = await ask(askedPort)
  if (answer.error === EADDRINUSE && askedPort !== 0) answer = await ask(0)
  if (answer.error !== 0)
    throw new SandboxError(
      'start_failed',
      `The sandbox cannot listen for connections to the network (error ${answer.error})`,
    )
  return answer.port
}

/** For a program that listens without accepting. */
const CONNECT_MS = 10_000
const ECONNRESET = 104
const ECONNREFUSED = 111
const EUSERS = 87

/** See `Sandbox.connect`. */
export function connectPort(link: Link, port: number): Promise<Duplex> {
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new SandboxError('invalid_arguments', 'A port is a whole number from 1 to 65535')
  const { promise, resolve, reject } = Promise.withResolvers<Duplex>()
  const give = (error: SandboxError): void => {
    clearTimeout(timer)
    link.release(channel)
    reject(error)
  }
  let connected: Channel | undefined
  const channel = link.open({
    frame(type, flags, payload) {
      if (connected !== undefined) return connected.frame(type, flags, payload)
      if (type !== FrameType.PORT_RESULT)
        throw new SandboxError('protocol', 'sbxd answered PORT_CONNECT with something else')
      const reader = new ByteReader(payload)
      const error = reader.u32()
      if (error !== 0) return give(refused(port, error))
      clearTimeout(timer)
      const made = createConnection(link, channel, reader.u64())
      connected = made.channel
      // It may break before the caller has it; that must not end the process.
      made.stream.on('error', () => {})
      resolve(made.stream)
    },
    data() {
      throw new SandboxError('protocol', 'sbxd sent output on the channel of a connection')
    },
    lost(error) {
      if (connected !== undefined) return connected.lost(error)
      clearTimeout(timer)
      reject(error)
    },
  })
  const timer = setTimeout(() => {
    link.send(FrameType.CONNECTION_CLOSE, 0, channel)
    give(new SandboxError('timeout', `Nothing in the sandbox took the connection to port ${port}`))
  }, CONNECT_MS)
  link.send(FrameType.PORT_CONNECT, 0, channel, new ByteWriter().u16(port).u64(WINDOW_BYTES).done())
  return promise
}

/** See `Sandbox.ports`; includes our own. */
export async function listPorts(link: Link): Promise<number[]> {
  const { type, payload } = await link.request(FrameType.PORT_LIST)
  if (type !== FrameType.PORT_LISTED)
    throw new SandboxError('protocol', 'sbxd answered PORT_LIST with something else')
  const reader = new ByteReader(payload)
  return Array.from({ length: Math.min(reader.u32(), reader.left / 2) }, () => reader.u16())
}

function refused(port: number, error: number): SandboxError {
  if (error === ECONNREFUSED)
    return new SandboxError('not_found', `Nothing listens on port ${port} of the sandbox`)
  if (error === ECONNRESET)
    return new SandboxError('cancelled', 'The program inside has closed this connection')
  if (error === EUSERS)
    return new SandboxError('limit_reached', 'The sandbox has too many connections to its ports open')
  return new SandboxError('limit_reached', `Port ${port} of the sandbox cannot be reached (error ${error})`)
}
