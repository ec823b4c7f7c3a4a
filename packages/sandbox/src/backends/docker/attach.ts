import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import { connect as connectNet, isIP, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'

import { SandboxError } from '../../errors.ts'
import { type SharedBufferStream, connectSharedBuffer } from '../../sbxd/shared-buffer.ts'
import type { EngineAddress } from './connection.ts'

/**
 * An unexpected HTTP answer, with the fields of dockerode's errors, so that one function reads
 * both.
 */
class EngineAnswerError extends Error {
  override readonly name = 'EngineAnswerError'
  readonly statusCode: number
  readonly json: { message: string }

  constructor(statusCode: number, message: string) {
    super(`HTTP ${statusCode}: ${message}`)
    this.statusCode = statusCode
    this.json = { message }
  }
}

/**
 * API version from `GET /_ping`, for example `1.41`. Rejects with the socket's own error, or with
 * `engine_unavailable` when something other than an engine answers.
 */
export function pingVersion(address: EngineAddress, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = open(address, 'GET', '/_ping', {}, signal)
    request.on('error', reject)
    request.on('response', (response) => {
      // The engine gate, or a proxy, answers for a silent engine, with a better reason than ours.
      if ((response.statusCode ?? 0) >= 500) return void refusal(response).then(reject, reject)
      response.resume()
      const version = response.headers['api-version']
      if (response.statusCode === 200 && typeof version === 'string' && /^\d+\.\d+$/.test(version))
        resolve(version)
      else {
        const what = `What listens at ${address.shown} does not answer like a Docker engine (HTTP ${response.statusCode ?? 0}).`
        reject(new SandboxError('engine_unavailable', `${what} Point DOCKER_HOST at one.`))
      }
    })
    request.end()
  })
}

/**
 * A change without a body in request or answer, past docker-modem, which is slow: for calls that a
 * user waits for. Rejects with the socket's own error, or with an `EngineAnswerError` for a status
 * other than 2xx.
 */
export function post(address: EngineAddress, path: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = open(address, 'POST', path, { 'Content-Length': '0' }, signal)
    request.on('error', reject)
    request.on('response', (response) => {
      const status = response.statusCode ?? 0
      if (status < 200 || status > 299) return void refusal(response).then(reject, reject)
      response.resume()
      resolve()
    })
    request.end()
  })
}

/**
 * Attaches to a container's stdin and stdout and returns the raw socket of the upgrade, with
 * Docker's own framing on reads; it can lend its bytes. Not through docker-modem, whose hijack
 * sends its JSON options into the container's stdin and whose duplex has no back-pressure. `signal`
 * cancels only the opening.
 */
export function attach(
  address: EngineAddress,
  apiVersion: string,
  id: string,
  signal: AbortSignal,
): Promise<Socket & SharedBufferStream> {
  const path = `/v${apiVersion}/containers/${encodeURIComponent(id)}/attach?stream=1&stdin=1&stdout=1&stderr=1`
  return new Promise((resolve, reject) => {
    const socket = connect(address)
    const request = http.request({
      method: 'POST',
      path,
      headers: { Host: 'docker', Connection: 'Upgrade', Upgrade: 'tcp', 'Content-Length': '0' },
      signal,
      createConnection: () => socket,
    })
    request.on('error', reject)
    request.on('upgrade', (_response: IncomingMessage, _socket: Socket, head: Buffer) => {
      if (head.length > 0) socket.unshift(head)
      socket.setTimeout(0)
      socket.setNoDelay(true)
      if (address.kind === 'tcp') socket.setKeepAlive(true, 15_000)
      resolve(socket)
    })
    request.on('response', (response) => {
      refusal(response).then(reject, reject)
    })
    request.end()
  })
}

function connect(address: EngineAddress): Socket & SharedBufferStream {
  return connectSharedBuffer(
    (onread) => {
      if (address.kind === 'unix') return connectNet({ path: address.socketPath, onread })
      const { host, port, tls } = address
      if (!tls) return connectNet({ host, port, onread })
      const options = { host, port, ...(isIP(host) ? {} : { servername: host }), ...tls, onread }
      return connectTls(options)
    },
    { paced: address.kind === 'unix' || address.tls === undefined },
  )
}

async function refusal(response: IncomingMessage): Promise<Error> {
  const status = response.statusCode ?? 0
  // An engine without upgrades streams at once; it is far older than any supported one.
  if (status === 200) {
    response.destroy()
    return new SandboxError(
      'engine_unavailable',
      'The Docker engine does not upgrade attach streams. Use Docker Engine 20.10 or newer.',
    )
  }
  const body = (await text(response)).slice(0, 2_000)
  try {
    const json: unknown = JSON.parse(body)
    if (typeof json === 'object' && json !== null && 'message' in json && typeof json.message === 'string') {
      return new EngineAnswerError(status, json.message)
    }
  } catch {
    // Not JSON: the text is the message.
  }
  return new EngineAnswerError(status, body.trim() || 'no message')
}

function open(
  address: EngineAddress,
  method: string,
  path: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): http.ClientRequest {
  const common = { method, path, headers, signal, agent: false as const }
  if (address.kind === 'unix') {
    const named = { Host: 'docker', ...headers }
    return http.request({ ...common, headers: named, socketPath: address.socketPath })
  }
  // Without a Host header of ours: Node checks the certificate against that header, where there is
  // one, and not against the address.
  const target = { ...common, host: address.host, port: address.port }
  return address.tls ? https.request({ ...target, ...address.tls }) : http.request(target)
}
