import { once } from 'node:events'
import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { dirname } from 'node:path'

/**
 * Listen on a Unix socket for its owner and its group. A socket that nobody answers on was left by a gate that was
 * killed, and is replaced; rejects when another gate answers.
 */
export async function listenOn(server: Server, path: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 })
  if (await answers(path)) throw new Error(`Another gate listens on ${path}.`)
  rmSync(path, { force: true })
  // The group may connect from the first moment on, and others never.
  const before = process.umask(0o117)
  try {
    server.listen(path)
    await once(server, 'listening')
  } finally {
    process.umask(before)
  }
  chmodSync(path, 0o660)
}

export function answers(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect(path)
  socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  return promise.finally(() => socket.destroy())
}
