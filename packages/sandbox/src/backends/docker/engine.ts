import http from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import { inspect } from 'node:util'

import Docker from 'dockerode'

import type { BackendHealth } from '../../backend.ts'
import { SandboxError } from '../../errors.ts'
import { orAborted } from '#shared/async/or-aborted'
import { type CircuitOptions, CircuitBreaker } from '../circuit-breaker.ts'
import { attach, pingVersion } from './attach.ts'
import type { EngineAddress } from './connection.ts'
import { deadlineError, toSandboxError } from './engine-error.ts'
import { once } from './once.ts'

/** The newest known API version. A newer engine is asked for this one. */
const NEWEST_API = '1.52'

/** Time limits in milliseconds. Create and start include making a volume, mounts and namespaces. */
export const DEADLINE = { ping: 5_000, read: 15_000, change: 60_000, attach: 15_000 } as const

export interface Engine {
  readonly address: EngineAddress
  /** Negotiated once, at the first call; a failure is not remembered. */
  apiVersion(signal?: AbortSignal): Promise<string>
  /**
   * One unary call: `run` receives dockerode and a signal that aborts at the deadline or with the
   * caller's own. Rejects with a `SandboxError` only. `doing` completes “could not …” and “did not
   * … within”.
   */
  call<T>(
    doing: string,
    deadlineMs: number,
    run: (docker: Docker, signal: AbortSignal) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T>
  /** The raw attach stream of a container, with Docker's framing. */
  attach(id: string, signal?: AbortSignal): Promise<Socket>
  /** Result of the last calls; contacts nothing. */
  health(): BackendHealth
}

/**
 * One engine at one address. Opens nothing before the first call, and keeps nothing open between
 * calls. While it is silent, calls fail at once.
 */
export function createEngine(address: EngineAddress, circuit?: CircuitOptions): Engine {
  const breaker = new CircuitBreaker(
    `the Docker engine at ${address.shown}`,
    (signal) => pingVersion(address, signal),
    circuit,
  )
  async function withDeadline<T>(
    doing: string,
    deadlineMs: number,
    signal: AbortSignal | undefined,
    run: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const deadline = AbortSignal.timeout(deadlineMs)
    try {
      const either = signal ? AbortSignal.any([signal, deadline]) : deadline
      // dockerode ignores the signal in some calls, so the wait ends with it as well.
      return await orAborted(run(either), either, () => new Error('aborted', { cause: either.reason }))
    } catch (error) {
      if (error instanceof SandboxError) throw error
      if (signal?.aborted)
        throw new SandboxError('cancelled', `Stopped waiting for the Docker engine to ${doing}.`, {
          cause: error,
        })
      if (deadline.aborted) throw deadlineError(address, doing, deadlineMs)
      throw toSandboxError(error, address, doing)
    }
  }

  // Shared by all callers, so no caller's signal may end it.
  const negotiate = once(async () => {
    const offered = await withDeadline('answer', DEADLINE.ping, undefined, (signal) =>
      pingVersion(address, signal),
    )
    const apiVersion = older(offered, NEWEST_API)
    return { apiVersion, docker: new Docker(dockerOptions(address, apiVersion)) }
  })

  return {
    address,
    apiVersion: async () => (await negotiate()).apiVersion,
    call: (doing, deadlineMs, run, signal) =>
      breaker.run(async (either) => {
        const { docker } = await negotiate()
        return withDeadline(doing, deadlineMs, either, (inner) => run(docker, inner))
      }, signal),
    attach: (id, signal) =>
      breaker.run(async (either) => {
        const { apiVersion } = await negotiate()
        return withDeadline('attach to the sandbox', DEADLINE.attach, either, (inner) =>
          attach(address, apiVersion, id, inner),
        )
      }, signal),
    health: () => breaker.health(),
  }
}

/**
 * All fields are set, because docker-modem fills missing ones from the environment. A connection
 * per call: a reused one may have gone silent without a close, and then every call on it waits for
 * its deadline.
 */
function dockerOptions(
  address: EngineAddress,
  apiVersion: string,
): Docker.DockerOptions & { agent: http.Agent } {
  const version = `v${apiVersion}`
  const secure = address.kind === 'tcp' && address.tls !== undefined
  const agent = terse(secure ? new https.Agent({ keepAlive: false }) : new http.Agent({ keepAlive: false }))
  if (address.kind === 'unix') {
    return {
      version,
      agent,
      socketPath: address.socketPath,
      host: undefined,
      port: undefined,
      protocol: 'http',
      ca: undefined,
      cert: undefined,
      key: undefined,
    }
  }
  return {
    version,
    agent,
    socketPath: undefined,
    host: address.host,
    port: address.port,
    protocol: address.tls ? 'https' : 'http',
    ca: address.tls?.ca,
    cert: address.tls?.cert,
    key: address.tls?.key,
  }
}

/**
 * docker-modem formats every request for an unused log, with this agent and so with every other
 * pending request in it.
 */
function terse(agent: http.Agent): http.Agent {
  return Object.assign(agent, { [inspect.custom]: () => 'Agent' })
}

function older(a: string, b: string): string {
  const [majorA = 0, minorA = 0] = a.split('.').map(Number)
  const [majorB = 0, minorB = 0] = b.split('.').map(Number)
  return majorA < majorB || (majorA === majorB && minorA <= minorB) ? a : b
}
