import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'

import { expect } from 'vitest'

import type { RunningCommand } from '../../src/sandbox.ts'
import type { Suite } from '../support/contract.ts'
import { newId, sh } from './harness.ts'

/** Says its port, then serves connections one after another, each as this says of `c`. */
const serve = (how: string, family = 'AF_INET', host = '127.0.0.1'): string[] => [
  'python3',
  '-uc',
  `import socket\ns = socket.socket(socket.${family})\ns.bind(("${host}", 0))\ns.listen(64)\nprint(s.getsockname()[1])\nwhile True:\n c, _ = s.accept()\n ${how}`,
]
const ECHO = `
 while True:
  d = c.recv(65536)
  if not d: break
  c.sendall(d)
 c.close()`

export function portTests({ it, sandbox, ownProcesses }: Suite): void {
  const listening = async (command: string[]): Promise<{ port: number; server: RunningCommand }> => {
    const server = await sandbox().run({ id: newId(), command, autoAcknowledge: true })
    for await (const { data } of server.output) return { port: Number(Buffer.from(data).toString()), server }
    throw new Error('the server said no port')
  }
  const ended = async (stream: Duplex): Promise<unknown> => {
    if (stream.destroyed) return stream.errored
    const failed = once(stream, 'error').then(([error]) => error as unknown)
    stream.resume()
    return Promise.race([failed, once(stream, 'close').then(() => 'closed')])
  }

  it('connects to a program that listens, with all its bytes and both ends', async () => {
    const { port, server } = await listening(serve(ECHO))
    const stream = await sandbox().ports.connect(port)
    const data = randomBytes(5_000_000)
    const echoed = buffer(stream)
    stream.end(data)
    expect(
      createHash('sha256')
        .update(await echoed)
        .digest('hex'),
    ).toBe(createHash('sha256').update(data).digest('hex'))
    // The next connection is another one.
    const again = await sandbox().ports.connect(port)
    again.end('hello')
    expect(await text(again)).toBe('hello')
    await server.cancel(0)
  })

  it('connects to either address of localhost, and says where nothing listens', async (context) => {
    const { port, server } = await listening(serve(ECHO))
    await server.cancel(0)
    await server.exit
    const nothing = { code: 'not_found', message: `Nothing listens on port ${port} of the sandbox` }
    await expect(sandbox().ports.connect(port)).rejects.toMatchObject(nothing)
    for (const bad of [0, 65_536, 1.5])
      await expect((async () => sandbox().ports.connect(bad))()).rejects.toMatchObject({
        code: 'invalid_arguments',
      })
    const hasSix = await sh(sandbox(), 'grep -q " lo$" /proc/net/if_inet6')
    if (hasSix.code !== 0) return context.skip('the sandbox has no IPv6')
    const other = await listening(serve('c.sendall(b"six"); c.close()', 'AF_INET6', '::1'))
    const six = await sandbox().ports.connect(other.port)
    six.end()
    expect(await text(six)).toBe('six')
    await other.server.cancel(0)
  })

  it('waits with what the program does not read, and lets others through', async () => {
    const { port, server } = await listening(serve('globals().setdefault("held", []).append(c)'))
    const stuck = await sandbox().ports.connect(port)
    let taken = 0
    while (stuck.write(Buffer.alloc(65_536)) && ++taken < 1_000);
    expect(taken).toBeLessThan(1_000)
    const other = await listening(serve(ECHO))
    const stream = await sandbox().ports.connect(other.port)
    stream.end('through')
    expect(await text(stream)).toBe('through')
    stuck.destroy()
    await Promise.all([server.cancel(0), other.server.cancel(0)])
  })

  it('a connection that breaks inside breaks here, and one that is destroyed here breaks inside', async () => {
    const reset = 'c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\\1\\0\\0\\0\\0\\0\\0\\0"); c.close()'
    const { port, server } = await listening(serve(reset))
    expect(
      await sandbox()
        .ports.connect(port)
        .then(ended, (error: unknown) => error),
    ).toMatchObject({
      code: 'cancelled',
    })
    await server.cancel(0)
    const tells = `
 try: print("got", len(c.recv(10)))
 except ConnectionError: print("reset")`
    const other = await sandbox().run({ id: newId(), command: serve(tells), autoAcknowledge: true })
    const said = other.output[Symbol.asyncIterator]()
    let printed = ''
    const next = async (): Promise<string> => {
      while (!printed.includes('\n')) printed += Buffer.from((await said.next()).value?.data ?? []).toString()
      const line = printed.slice(0, printed.indexOf('\n'))
      printed = printed.slice(line.length + 1)
      return line
    }
    const stream = await sandbox().ports.connect(Number(await next()))
    stream.destroy()
    expect(await next()).toBe('reset')
    await other.cancel(0)
  })

  it('lists the ports on which programs listen, where it has its own', async () => {
    const { port, server } = await listening(serve(ECHO))
    const all = await listening(serve(ECHO, 'AF_INET6', '::'))
    const known = await sandbox().ports.list()
    if (ownProcesses) expect(known).toEqual([port, all.port].toSorted((a, b) => a - b))
    else expect(known).toEqual([])
    await Promise.all([server.cancel(0), all.server.cancel(0)])
  })
}
