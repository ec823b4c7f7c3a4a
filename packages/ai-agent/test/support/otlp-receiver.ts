/** A small OTLP receiver on loopback: takes traces as protobuf and decodes them by hand. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ReceivedSpan {
  traceId: string
  spanId: string
  /** Empty: none. */
  parentId: string
  name: string
  attributes: Record<string, unknown>
  failed: boolean
  /** Nanoseconds. */
  tookNs: bigint
}

export interface OtlpReceiver extends AsyncDisposable {
  endpoint: string
  spans: ReceivedSpan[]
  /** Attributes of the resource. */
  resource: Record<string, unknown>
  /** Every path and body, for what must not be in it. */
  requests: { path: string; headers: NodeJS.Dict<string | string[]>; body: Buffer }[]
}

/** A field of a message: its number, and its value by the wire type. */
type Field = [number: number, value: bigint | Buffer]

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = []
  const requests: OtlpReceiver['requests'] = []
  const resource: Record<string, unknown> = {}
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const body = Buffer.concat(parts)
      requests.push({ path: request.url ?? '', headers: request.headers, body })
      for (const ofResource of messages(body, 1)) {
        for (const told of messages(ofResource, 1)) Object.assign(resource, attributes(told, 1))
        spans.push(...messages(ofResource, 2).flatMap((scope) => messages(scope, 2).map(toSpan)))
      }
      response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    resource,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function toSpan(span: Buffer): ReceivedSpan {
  const all = fields(span)
  const hex = (wanted: number): string => bytes(all, wanted)[0]?.toString('hex') ?? ''
  const number = (wanted: number): bigint =>
    all.map(([at, value]) => (at === wanted && typeof value === 'bigint' ? value : 0n)).find(Boolean) ?? 0n
  const status = bytes(all, 15)[0]
  return {
    traceId: hex(1),
    spanId: hex(2),
    parentId: hex(4),
    name: bytes(all, 5)[0]?.toString('utf8') ?? '',
    attributes: attributes(span, 9),
    failed: status !== undefined && fields(status).some(([at, value]) => at === 3 && value === 2n),
    tookNs: number(8) - number(7),
  }
}

function attributes(message: Buffer, at: number): Record<string, unknown> {
  return Object.fromEntries(
    messages(message, at).map((pair) => {
      const [key] = bytes(fields(pair), 1)
      const [value] = bytes(fields(pair), 2)
      return [key?.toString('utf8') ?? '', value === undefined ? undefined : anyValue(value)]
    }),
  )
}

function anyValue(message: Buffer): unknown {
  const [first] = fields(message)
  if (first === undefined) return undefined
  const [kind, value] = first
  if (typeof value === 'bigint') {
    if (kind === 4) return Buffer.from(new BigUint64Array([value]).buffer).readDoubleLE()
    return kind === 2 ? value === 1n : Number(value)
  }
  return kind === 5 ? messages(value, 1).map(anyValue) : value.toString('utf8')
}

const messages = (message: Buffer, wanted: number): Buffer[] => bytes(fields(message), wanted)

function bytes(all: readonly Field[], wanted: number): Buffer[] {
  return all.flatMap(([at, value]) => (at === wanted && typeof value !== 'bigint' ? [value] : []))
}

/** The fields of one message, in order. */
function fields(message: Buffer): Field[] {
  const found: Field[] = []
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++)
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  while (at < message.length) {
    const tag = Number(varint())
    const [number, type] = [tag >> 3, tag & 7]
    if (type === 0) found.push([number, varint()])
    else if (type === 1) {
      found.push([number, message.readBigUInt64LE(at)])
      at += 8
    } else if (type === 2) {
      const length = Number(varint())
      found.push([number, message.subarray(at, at + length)])
      at += length
    } else if (type === 5) at += 4
    else throw new Error(`a field of wire type ${type}`)
  }
  return found
}
