/** `call` against a real HTTP server: the address, the body, and each kind of failure. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { call, urlOf } from '../../src/net/call.ts'

let answer: (request: IncomingMessage, response: ServerResponse) => void
const server = createServer((request, response) => answer(request, response))
const browserFetch = globalThis.fetch
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  // A browser resolves addresses against its page.
  globalThis.fetch = (path, init) =>
    browserFetch(new URL(path instanceof Request ? path.url : path, origin), init)
})
afterAll(() => {
  globalThis.fetch = browserFetch
  server.close()
})

let asked: string[] = []
beforeEach(() => (asked = []))
const answering = (status: number, text: string) => {
  answer = (request, response) => {
    let body = ''
    request.on('data', (piece: Buffer) => (body += piece.toString()))
    request.on('end', () => {
      asked.push(`${request.method} ${request.url} ${body}`)
      response.writeHead(status).end(text)
    })
  }
}

test('the route, its encoded parameters and the body are sent', async () => {
  answering(204, '')
  await call('renameChat', { params: { id: 's/1 ?' }, body: { title: 'New' } })
  await call('removeShare', { params: { id: 'a', shareId: 'b' } })
  expect(asked).toEqual([
    'PATCH /api/sessions/s%2F1%20%3F {"title":"New"}',
    'DELETE /api/sessions/a/shares/b ',
  ])
})

test('a query leaves out what is undefined and repeats the name of an array', () => {
  expect(urlOf('zipFiles', { query: { path: ['a b', 'c&d'], download: undefined, most: 0 } })).toBe(
    '/api/files/zip?path=a+b&path=c%26d&most=0',
  )
  expect(urlOf('getImage', { params: { id: 'i' } })).toBe('/api/images/i')
})

test('fields of a later version stay, and break nothing', async () => {
  answering(200, '{"needed":true,"later":1}')
  expect(await call('getSetup')).toEqual({ needed: true, later: 1 })
})

test('an answer without the body that belongs to it is an error', async () => {
  answering(200, '')
  await expect(call('getMe')).rejects.toMatchObject({ name: 'ApiError', code: 'unexpected' })
})

test('a refusal is an error with its code, its message and the current state', async () => {
  answering(409, '{"code":"conflict","message":"Changed.","requestId":"r","current":{"name":"x"}}')
  const conflict = call('renameTeam', { params: { id: 't' }, body: { name: 'a', was: 'b' } })
  await expect(conflict).rejects.toMatchObject({ code: 'conflict', requestId: 'r', current: { name: 'x' } })
})

test('an answer that is not JSON is none of ours, also with status 200', async () => {
  answering(200, '<html>')
  await expect(call('getMe')).rejects.toMatchObject({ code: 'unexpected' })
  answering(401, '<html>')
  await expect(call('getMe')).rejects.toMatchObject({ code: 'unauthenticated' })
})

test('a lost connection is a network error, an aborted request is not', async () => {
  answer = (request) => request.destroy()
  await expect(call('getMe')).rejects.toMatchObject({ code: 'network' })
  const controller = new AbortController()
  answer = () => controller.abort()
  await expect(call('listTeams', { signal: controller.signal })).rejects.toMatchObject({ name: 'AbortError' })
})
