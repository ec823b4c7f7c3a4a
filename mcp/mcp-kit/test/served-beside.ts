/**
 * For a test file of one of our servers: a server that plays the service it asks, and the server
 * itself as processes beside it. At the end every process is ended, and none of them may have
 * printed a secret.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { type PlayedAnswer, type PlayingServer, playingServer } from './playing-server.ts'
import { type RunningServer, startServer } from './stdio-server.ts'

export interface ServedBeside {
  /** Plays the service; before each test it answers as usual, and has seen nothing. */
  readonly service: PlayingServer
  /** The first process; there from the first test on. */
  readonly server: RunningServer
  /** Another process, with other settings. */
  start(env?: Record<string, string>): Promise<RunningServer>
}

export interface Served {
  /** URL of the program. */
  main: URL
  tool: string
  /** What every process is given. */
  env: (serviceUrl: string) => Record<string, string>
  /** What the first one is given besides. */
  first: Record<string, string>
  usual: () => PlayedAnswer
  /** What no process may print. */
  secrets: readonly (string | RegExp)[]
}

/** Call once, outside of every test. */
export function servedBeside({ main, tool, env, first, usual, secrets }: Served): ServedBeside {
  let service: PlayingServer | undefined
  let server: RunningServer | undefined
  const started: RunningServer[] = []
  const beside: ServedBeside = {
    get service() {
      return there(service)
    },
    get server() {
      return there(server)
    },
    async start(more = {}) {
      const one = await startServer(main, tool, { ...env(there(service).url), ...more })
      started.push(one)
      return one
    },
  }
  beforeAll(async () => {
    service = await playingServer()
    server = await beside.start(first)
  })
  beforeEach(() => service?.play(usual()))
  afterEach(() => void service?.seen.splice(0))
  afterAll(async () => {
    for (const one of started) {
      await one.close()
      for (const secret of secrets) {
        if (typeof secret === 'string') expect(one.printed()).not.toContain(secret)
        else expect(one.printed()).not.toMatch(secret)
      }
    }
    await service?.close()
  })
  return beside
}

function there<T>(one: T | undefined): T {
  if (one === undefined) throw new Error('not started yet')
  return one
}
