/** An error of one connection ends that connection; one of the process ends the process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nodeEnvironment } from '../../../../test/config.ts'

let program: ChildProcess
let port: number

beforeEach(async () => {
  const file = join(import.meta.dirname, '../support/faulty-server.ts')
  program = spawn(process.execPath, ['--conditions=sandlot-source', file], {
    env: nodeEnvironment(),
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [line] = (await once(program.stdout ?? program, 'data')) as [Buffer]
  port = (JSON.parse(line.toString()) as { port: number }).port
})
afterEach(() => void program.kill('SIGKILL'))

/** Sends the bytes and returns what is read until the connection ends. */
async function exchange(...pieces: string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let read = ''
  socket.on('error', () => undefined)
  socket.setEncoding('latin1').on('data', (piece: string) => {
    read += piece
    const next = pieces.shift()
    if (next !== undefined) socket.write(next)
  })
  socket.write(pieces.shift() ?? '')
  await once(socket, 'close')
  return read
}
const request = (path: string, ...headers: string[]): string =>
  [`GET ${path} HTTP/1.1`, 'host: x', ...headers, '', ''].join('\r\n')
const UPGRADE = ['connection: upgrade', 'upgrade: odd']

test.each([
  ['in a listener', [request('/listener')]],
  ['in a later request of the same connection', [request('/'), request('/listener')]],
  ['in a timer', [request('/timer')]],
  ['in a tick', [request('/tick')]],
  ['in a promise', [request('/promise')]],
  ['in a body', [request('/body', 'content-length: 2') + 'hi']],
  ['of a socket that has closed', [request('/socket')]],
  ['in an upgrade', [request('/listener', ...UPGRADE)]],
  ['in a promise of an upgrade', [request('/promise', ...UPGRADE)]],
  ['in a socket that was upgraded', [request('/', ...UPGRADE), 'more']],
])('an error %s ends its connection, and no other', async (_where, pieces) => {
  const other = connect(port, '127.0.0.1')
  await exchange(...pieces)
  other.write(request('/', 'connection: close'))
  const [answer] = (await once(other, 'data')) as [Buffer]
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 OK/)
  expect(program.exitCode).toBeNull()
})

test('an error of no connection ends the process', async () => {
  program.kill('SIGUSR2')
  expect(await once(program, 'exit')).toEqual([1, null])
})
