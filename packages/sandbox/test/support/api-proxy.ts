/** A proxy between one agent and a real API server, which can answer for it, hold, delay and cut what passes. */
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

import { WebSocket, WebSocketServer } from 'ws'

export interface Reply {
  status: number
  headers?: Record<string, string>
  body: object
}

export interface ApiProxy {
  /** `https://127.0.0.1:…`; its certificate is the API server's own. */
  readonly server: string
  /** Requests for which `reply` returns an answer receive it and are not forwarded, until `restore`. */
  answer(reply: (request: IncomingMessage) => Reply | undefined): void
  /** Delays everything that watches show by so many milliseconds from now on. */
  delayWatches(ms: number): void
  /** Ends the current streams and watches; new ones are possible. */
  endStreams(): void
  /** Holds all traffic, new connections included, without closing them. */
  hold(): void
  /** Passes everything again, held data included. */
  restore(): void
  /**
   * Resolves when a request or a stream of the agent has sent this text, which passes. Its answer is
   * held until `restore`, and on a stream everything after it.
   */
  holdAnswerTo(text: string): Promise<void>
  close(): Promise<void>
}

/** Bytes of a stream in which a text is searched over the borders of its messages. */
const SEARCHED = 6_000
/** A WebSocket's codes for an end without one, and without a close. */
const NO_CODE = 1_005
const NO_CLOSE = 1_006

/** In front of the API server at `upstream` (`https://…`). `pki`: folder of the test cluster's certificates. */
export async function startApiProxy(upstream: string, pki: string): Promise<ApiProxy> {
  const pem = (name: string): Buffer => readFileSync(join(pki, name))
  const tls = { key: pem('apiserver.key'), cert: pem('apiserver.crt') }
  const proxy = new Proxying(upstream, pem('ca.crt'))
  const sockets = new Set<Socket>()
  const server = https.createServer(tls, (asked, answer) => {
    answer.on('error', () => undefined)
    proxy.forward(asked, answer).catch(() => answer.destroy())
  })
  server.on('upgrade', (asked, socket, head) => {
    proxy.join(asked, socket, head).catch(() => socket.destroy())
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    server: `https://127.0.0.1:${port}`,
    answer: (reply) => void (proxy.reply = reply),
    delayWatches: (ms) => void (proxy.delayMs = ms),
    endStreams: () => proxy.endStreams(),
    hold: () => proxy.hold(),
    restore: () => proxy.restore(),
    holdAnswerTo: (text) => new Promise((found) => void proxy.waited.add({ text, found })),
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

class Proxying {
  readonly #upstream: string
  readonly #agent: https.Agent
  readonly #accepts = new WebSocketServer({ noServer: true })
  readonly #gates = new Set<Gate>()
  /** Functions that end the current streams and watches. */
  readonly #ends = new Set<() => void>()
  readonly waited = new Set<{ text: string; found: () => void }>()
  reply: (request: IncomingMessage) => Reply | undefined = () => undefined
  delayMs = 0
  #held = false

  constructor(upstream: string, ca: Buffer) {
    this.#upstream = upstream
    this.#agent = new https.Agent({ ca, keepAlive: true })
  }

  async forward(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const gate = this.#newGate(answer)
    const body = await buffer(asked)
    await gate.passed()
    const reply = this.reply(asked)
    if (reply !== undefined) {
      answer.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers })
      return void answer.end(JSON.stringify(reply.body))
    }
    if (this.#finds(`${asked.method} ${asked.url} ${body.toString('latin1')}`)) gate.hold()
    const url = new URL(asked.url ?? '', this.#upstream)
    const sent = https.request(url, { agent: this.#agent, method: asked.method, headers: asked.headers })
    sent.on('error', () => answer.destroy())
    answer.on('close', () => sent.destroy())
    sent.on('response', (got) => void this.#answer(got, answer, gate, url.searchParams.has('watch')))
    sent.end(body)
  }

  async #answer(got: IncomingMessage, answer: ServerResponse, gate: Gate, watch: boolean): Promise<void> {
    const end = (): void => void answer.destroy()
    if (watch) this.#ends.add(end)
    answer.on('close', () => this.#ends.delete(end))
    got.on('error', end)
    await gate.passed()
    answer.writeHead(got.statusCode ?? 0, got.headers)
    if (watch) answer.flushHeaders()
    const inOrder = new Chain(gate)
    got.on('data', (piece: Buffer) => {
      const due = watch ? performance.now() + this.delayMs : 0
      inOrder.add(async () => {
        // A delay that was reset no longer counts.
        while (this.delayMs > 0 && performance.now() < due) await sleep(20)
        answer.write(piece)
      })
    })
    got.on('end', () => inOrder.add(() => void answer.end()))
  }

  /** Joins a WebSocket of the agent to one of the API server. */
  async join(asked: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => socket.destroy())
    const gate = this.#newGate(socket)
    await gate.passed()
    const refuse = (status: number, body: string): void =>
      void socket.end(
        `HTTP/1.1 ${status} Refused\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n${body}`,
      )
    const reply = this.reply(asked)
    if (reply !== undefined) return refuse(reply.status, JSON.stringify(reply.body))
    const { authorization, 'sec-websocket-protocol': protocol } = asked.headers
    const far = new WebSocket(new URL(asked.url ?? '', this.#upstream), protocol, {
      agent: this.#agent,
      headers: authorization === undefined ? {} : { authorization },
      perMessageDeflate: false,
    })
    far.on('error', () => socket.destroy())
    far.on(
      'unexpected-response',
      (_, got) => void buffer(got).then((body) => refuse(got.statusCode ?? 500, String(body))),
    )
    socket.on('close', () => far.terminate())
    far.once('open', () => {
      far.pause()
      this.#accepts.handleUpgrade(asked, socket, head, (near) =>
        this.#splice(near, far, gate, this.#newGate(socket)),
      )
    })
  }

  #splice(near: WebSocket, far: WebSocket, upGate: Gate, downGate: Gate): void {
    const end = (): void => near.terminate()
    this.#ends.add(end)
    near.on('error', end)
    near.on('close', () => {
      this.#ends.delete(end)
      far.terminate()
    })
    const up = new Chain(upGate)
    const down = new Chain(downGate)
    let sent = ''
    near.on('message', (data: Buffer) => {
      sent += data.toString('latin1')
      if (this.#finds(sent)) downGate.hold()
      sent = sent.slice(-SEARCHED)
      up.add(() => far.send(data))
    })
    far.on('message', (data: Buffer) => down.add(() => near.send(data)))
    far.on('close', (code, reason) =>
      down.add(() => (code === NO_CODE || code === NO_CLOSE ? end() : near.close(code, reason))),
    )
    far.resume()
  }

  /** Resolves the waiters for texts in `sent`. True: there was one. */
  #finds(sent: string): boolean {
    const found = [...this.waited].filter(({ text }) => sent.includes(text))
    for (const one of found) {
      this.waited.delete(one)
      one.found()
    }
    return found.length > 0
  }

  #newGate(of: Duplex | ServerResponse): Gate {
    const gate = new Gate()
    if (this.#held) gate.hold()
    this.#gates.add(gate)
    of.on('close', () => this.#gates.delete(gate))
    return gate
  }

  endStreams(): void {
    for (const end of this.#ends) end()
  }

  hold(): void {
    this.#held = true
    for (const gate of this.#gates) gate.hold()
  }

  restore(): void {
    this.#held = false
    this.reply = () => undefined
    this.waited.clear()
    for (const gate of this.#gates) gate.release()
  }
}

/** Passes things, or holds them. */
class Gate {
  #waiting: PromiseWithResolvers<void> | undefined

  hold(): void {
    this.#waiting ??= Promise.withResolvers<void>()
  }

  release(): void {
    this.#waiting?.resolve()
    this.#waiting = undefined
  }

  async passed(): Promise<void> {
    while (this.#waiting !== undefined) await this.#waiting.promise
  }
}

/** Does one thing after the other, each when it may pass. */
class Chain {
  readonly #gate: Gate
  #last = Promise.resolve()

  constructor(gate: Gate) {
    this.#gate = gate
  }

  add(pass: () => void | Promise<void>): void {
    this.#last = this.#last.then(() => this.#gate.passed()).then(pass)
  }
}
