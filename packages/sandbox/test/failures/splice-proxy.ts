/** A proxy in front of a Unix socket whose connections can be made to go silent, or be cut. */
import { connect, createServer, type Socket } from 'node:net'

export interface SpliceProxy {
  /** For `DOCKER_HOST`. */
  host: string
  /**
   * Nothing passes on the connections of now any more, in either direction, and nobody closes them;
   * new ones work.
   */
  silence(): void
  /**
   * Close the engine's side of the silent ones: what its kernel does when nobody acknowledges any
   * more.
   */
  giveUp(): void
  /** Cut the connections of now on both sides. */
  reset(): void
  close(): Promise<void>
}

interface Pair {
  client: Socket
  engine: Socket
}

/** Listen at `path` and pass everything on to the socket at `target`. */
export async function startSpliceProxy(path: string, target: string): Promise<SpliceProxy> {
  const pairs = new Set<Pair>()
  const silenced = new Set<Pair>()
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const engine = connect({ path: target, allowHalfOpen: true })
    const pair = { client, engine }
    pairs.add(pair)
    client.on('close', () => {
      pairs.delete(pair)
      // Like a network that drops packets: the other side is not notified.
      if (!silenced.has(pair)) engine.destroy()
    })
    engine.on('close', () => {
      if (!silenced.has(pair)) client.destroy()
    })
    client.on('error', () => {})
    engine.on('error', () => {})
    client.pipe(engine)
    engine.pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return {
    host: `unix://${path}`,
    silence() {
      for (const pair of pairs) {
        silenced.add(pair)
        pair.client.unpipe(pair.engine).pause()
        pair.engine.unpipe(pair.client).pause()
      }
    },
    giveUp() {
      for (const { engine } of silenced) engine.destroy()
    },
    reset() {
      for (const { client, engine } of pairs) {
        client.destroy()
        engine.destroy()
      }
    },
    async close() {
      for (const { client, engine } of [...pairs, ...silenced]) {
        client.destroy()
        engine.destroy()
      }
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
