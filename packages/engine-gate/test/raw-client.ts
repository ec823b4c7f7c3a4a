/** Bytes to a Unix socket and back: a client that keeps no rule of HTTP. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export interface RawAnswer {
  status: number
  head: string
  body: string
}

export async function openRaw(path: string): Promise<Socket> {
  const socket = connect({ path, allowHalfOpen: true })
  await once(socket, 'connect')
  return socket
}

/** Send bytes, and read until the other side closes. */
export async function raw(path: string, bytes: string): Promise<RawAnswer> {
  const socket = await openRaw(path)
  try {
    socket.write(bytes)
    return await readAnswer(socket)
  } finally {
    socket.destroy()
  }
}

export async function readAnswer(socket: Socket): Promise<RawAnswer> {
  let got = ''
  socket.setEncoding('latin1')
  for await (const chunk of socket as AsyncIterable<string>) got += chunk
  const at = got.indexOf('\r\n\r\n')
  return {
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(got)?.[1] ?? 0),
    head: at < 0 ? got : got.slice(0, at),
    body: at < 0 ? '' : got.slice(at + 4),
  }
}

/** A request after which the connection closes, unless the headers say otherwise. */
export function requestText(method: string, url: string, body = '', headers: string[] = []): string {
  const given = headers.join('\n')
  const length = /^(content-length|transfer-encoding)/im.test(given)
    ? []
    : [`Content-Length: ${Buffer.byteLength(body)}`]
  const close = /^connection/im.test(given) ? [] : ['Connection: close']
  return [`${method} ${url} HTTP/1.1`, 'Host: docker', ...length, ...headers, ...close, '', body].join('\r\n')
}
