/**
 * The whole way of a connection on this machine: a program, the listener of a real sbxd (a plain
 * process, no Docker), the stream, the proxy, a server.
 */
import { connect, type Socket } from 'node:net'

import { afterAll, afterEach, beforeAll, expect, vi } from 'vitest'

import type { ConnectedSandbox } from '../../src/sbxd/client.ts'
import type { EgressOptions } from '../../src/egress/egress.ts'
import { buildSbxd } from './build-sbxd.ts'
import { type BackendFixture, Bench, sh } from '../contract/harness.ts'
import {
  type Handler,
  type Origin,
  startOrigin,
  startTcp,
  type WatchedEgress,
  watchedEgress,
} from './egress-fixture.ts'
import { localProcessFixture } from './local-process-fixture.ts'

export const WAIT = { timeout: 60_000, interval: 20 }

export interface Way {
  sandbox: ConnectedSandbox
  bench: Bench
  egress: WatchedEgress
  /** The listener's. */
  port: number
}

export interface Ways {
  /** A sandbox of its own for a user called ann, with this way out. */
  open(options: Partial<EgressOptions>): Promise<Way>
  /** An HTTP server. */
  origin(handler: Handler): Promise<Origin>
  /** A server that speaks whatever `handler` does. */
  tcp(handler: (socket: Socket) => void): Promise<Origin>
  /** Also to be done after the test, before what was made earlier is taken away. */
  after(cleanup: () => Promise<void>): void
}

/**
 * Opens connections for the tests of one file and closes them after each. Call it once, outside of
 * any test.
 */
export function egressWays(): Ways {
  vi.setConfig({ testTimeout: 120_000 })
  let fixture: BackendFixture
  beforeAll(async () => {
    fixture = await localProcessFixture(buildSbxd)
  }, 120_000)
  afterAll(() => fixture.dispose())

  const cleanups: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
  })
  const closing = (made: Origin): Origin => {
    cleanups.push(() => made.close())
    return made
  }
  return {
    async open(options) {
      const { bench, sandbox } = await Bench.start(fixture)
      cleanups.push(() => bench.remove())
      const egress = watchedEgress(options)
      await sandbox.openEgress(egress.forUser('ann'))
      const { out } = await sh(sandbox, 'echo ${HTTP_PROXY##*:}')
      return { sandbox, bench, egress, port: Number(out) }
    },
    origin: async (handler) => closing(await startOrigin(handler)),
    tcp: async (handler) => closing(await startTcp(handler)),
    after: (cleanup) => void cleanups.push(cleanup),
  }
}

/** Say these bytes to the proxy and read until it closes. */
export async function say(
  port: number,
  text: string | Buffer,
  options: { end?: boolean } = {},
): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  const over = new Promise<void>((resolve) => {
    socket.once('error', (error) => {
      chunks.push(Buffer.from(`\n${(error as NodeJS.ErrnoException).code}`))
      resolve()
    })
    socket.once('end', resolve)
  })
  socket.write(text)
  if (options.end) socket.end()
  await over
  socket.destroy()
  return Buffer.concat(chunks).toString('latin1')
}

export const get = (host: string, path = '/', ...headers: string[]): string =>
  [`GET http://${host}${path} HTTP/1.1`, `Host: ${host}`, ...headers, '', ''].join('\r\n')

/** Everything that was open for connections is given back. */
export async function nothingLeft({ egress }: Way, ...origins: Origin[]): Promise<void> {
  await vi.waitFor(() => expect(origins.map((one) => one.open())).toEqual(origins.map(() => 0)), WAIT)
  expect(egress.audits.every((record) => record.ms >= 0)).toBe(true)
}
