/** A browser at the hosts of previews, and a program of this machine in place of one in a sandbox. */
import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { randomText } from '@sandlot/shared/base/ids'
import { expect } from 'vitest'
import { createWebSocketStream } from 'ws'
import type { Browser, Harness } from './harness.ts'
import { refusal } from './scripted-agent.ts'

/** Connections into the sandbox lead to `port` of this machine, at which a program listens. */
export function joinToProgram({ agent }: Harness, port: number): void {
  agent.ports = (user, ask) => {
    agent.received.push(`ports ${ask.do} ${user.role}`)
    if (ask.do === 'list') return { awake: true, ports: [port] }
    if (ask.port !== port) throw refusal('not_found', `Nothing listens on port ${ask.port} of the sandbox.`)
    const ticket = randomText(12)
    agent.streams.set(ticket, (socket) => {
      const outside = createWebSocketStream(socket)
      const inside = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
      outside.pipe(inside).pipe(outside)
      inside.on('error', () => outside.destroy())
      // The agent does this: the pipe passed on a clean end.
      inside.on('close', () => inside.readableEnded || outside.destroy())
      outside.on('error', () => inside.destroy()).on('close', () => inside.destroy())
    })
    return { ticket }
  }
}

interface Answer {
  status: number
  headers: IncomingMessage['headers']
  body: string
}

interface Asked {
  method?: string
  headers?: Record<string, string>
  body?: string
}

/** A request at a host of its own: no name has to lead there. */
export async function requestAt(
  { service }: Harness,
  host: string,
  path: string,
  { method = 'GET', headers = {}, body }: Asked = {},
): Promise<Answer> {
  const own = new URL(service.url)
  const sent = httpRequest({
    host: own.hostname,
    port: own.port,
    method,
    path,
    headers: { ...headers, host },
  })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) }
}

export async function entranceOf(harness: Harness, user: Browser, port: number): Promise<URL> {
  const url = new URL(harness.service.url)
  const given = await requestAt(harness, `localhost:${url.port}`, `/api/ports/${port}/open`, {
    headers: { cookie: user.cookie },
  })
  expect([given.status, given.body]).toEqual([303, ''])
  return new URL(given.headers.location ?? '')
}

/** A browser that was let in: its host and its cookie. */
export async function openPreview(
  harness: Harness,
  user: Browser,
  port: number,
): Promise<{ host: string; cookie: string }> {
  const { host, pathname, search } = await entranceOf(harness, user, port)
  const entered = await requestAt(harness, host, pathname + search)
  expect(entered).toMatchObject({ status: 303, headers: { location: '/' } })
  const [set = ''] = entered.headers['set-cookie'] ?? []
  expect(set).toMatch(/^sandlot_preview=\w+; Path=\/; HttpOnly; SameSite=Lax$/)
  return { host, cookie: set.split(';')[0] ?? '' }
}
