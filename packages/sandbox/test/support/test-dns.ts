import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'

export interface TestDns {
  /** Every name that was asked for, in lower case, in order. */
  asked: string[]
  port: number
  resolve(host: string): Promise<string[]>
  close(): void
}

/**
 * A name server on the loopback interface that logs what it is asked. `answer` gives IPv4
 * addresses; none = no such name.
 */
export async function startDns(answer: (name: string) => readonly string[]): Promise<TestDns> {
  const asked: string[] = []
  const socket = createSocket('udp4')
  socket.on('message', (query, from) => {
    const { name, end } = readName(query)
    asked.push(name)
    const addresses = answer(name)
    const head = Buffer.from(query.subarray(0, 12))
    head.writeUInt16BE(addresses.length > 0 ? 0x8180 : 0x8183, 2)
    head.writeUInt16BE(addresses.length, 6)
    head.writeUInt32BE(0, 8)
    const answers = addresses.map((address) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]),
    )
    socket.send(Buffer.concat([head, query.subarray(12, end + 4), ...answers]), from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const resolver = new Resolver({ timeout: 20_000, tries: 1 })
  const { port } = socket.address()
  resolver.setServers([`127.0.0.1:${port}`])
  return { asked, port, resolve: (host) => resolver.resolve4(host), close: () => socket.close() }
}

/** The name of the first question, and where it ends. */
function readName(query: Buffer): { name: string; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 }
}
