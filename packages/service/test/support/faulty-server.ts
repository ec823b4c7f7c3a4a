/** A program of its own: a server whose listeners fail in each way that a listener can. */
import { Server } from 'node:http'
import { containOwnErrors, endOwner, runFor } from '../../src/http/own-errors.ts'
import { makeLog } from '../../src/log.ts'

const fail = (): never => {
  throw new Error('a fault')
}
process.on('uncaughtException', (error) => endOwner(error) || process.exit(1))
process.on('SIGUSR2', fail)

const server = new Server()
containOwnErrors(
  server,
  makeLog('silent', (text) => text),
)
server.on('request', (request, response) => {
  if (request.url === '/') return response.end('here')
  if (request.url === '/listener') fail()
  if (request.url === '/timer') setTimeout(fail, 1)
  if (request.url === '/tick') process.nextTick(fail)
  if (request.url === '/promise') void Promise.resolve().then(fail)
  if (request.url === '/body') request.on('data', fail)
  if (request.url === '/socket') request.socket.once('close', fail).destroy()
  return undefined
})
server.on('upgrade', ({ url }, socket) =>
  runFor(socket, () => {
    if (url === '/listener') fail()
    if (url === '/promise') void Promise.resolve().then(fail)
    socket.on('data', fail)
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: odd\r\n\r\n')
  }),
)
server.listen(0, '127.0.0.1', () => process.stdout.write(`${JSON.stringify(server.address())}\n`))
