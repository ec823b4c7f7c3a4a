/**
 * Processes of one of our servers, and a fake API for them. After the tests every process is stopped,
 * and none may have printed a secret.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { type PlayedAnswer, type PlayingServer, playingServer } from './playing-server.ts'
import { type RunningServer, startServer } from './stdio-server.ts'

export interface TestServers {
  /** The fake API, reset before each test. */
  readonly service: PlayingServer
  /** The first process. */
  readonly server: RunningServer
  /** Another process, with other settings. */
  start(env?: Record<string, string>): Promise<RunningServer>
}

export interface Served {
  /** URL of the program. */
  main: URL
  tool: string
  /** Environment of every process. */
  env: (serviceUrl: string) => Record<string, string>
  /** Further environment of the first process. */
  first: Record<string, string>
  usual: () => PlayedAnswer
  /** Texts that no process may print. */
  secrets: readonly (string | RegExp)[]
}

/** Call once, outside of every test. */
export function startTestServers({ main, tool, env, first, usual, secrets }: Served): TestServers {
  let service: PlayingServer | undefined
  let server: RunningServer | undefined
  const started: RunningServer[] = []
  const servers: TestServers = {
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
    server = await servers.start(first)
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
  return servers
}

function there<T>(one: T | undefined): T {
  if (one === undefined) throw new Error('not started yet')
  return one
}
