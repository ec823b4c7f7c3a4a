/** A gate of a test's own, in this process, before the real engine or before a recording one. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { parseDockerHost } from '@sandlot/sandbox/backends/docker/connection'
import { DEFAULT_LIMITS } from '@sandlot/sandbox/limits'
import { createAudit } from '../src/audit.ts'
import { createEngine } from '../src/engine.ts'
import { createGate, listenOn } from '../src/gate.ts'
import { Operations } from '../src/operations.ts'

type OperationOptions = ConstructorParameters<typeof Operations>[0]

export interface TestGate {
  socket: string
  dockerHost: string
  /** Parsed lines of the audit log so far. */
  log: Record<string, unknown>[]
  close(): Promise<void>
}

export type GateChange = Partial<Omit<OperationOptions, 'engine' | 'audit'>> & {
  mostRequests?: number
  mostStreams?: number
}

export async function startGate(dockerHost: string | undefined, change: GateChange = {}): Promise<TestGate> {
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-gate-'))
  const socket = join(folder, 'run', 'engine', 'docker.sock')
  const log: Record<string, unknown>[] = []
  // A clock on which every line has a second of its own: nothing is withheld for being too much.
  let clock = 0
  const audit = createAudit(
    (line) => log.push(JSON.parse(line) as Record<string, unknown>),
    () => (clock += 1000),
  )
  const engine = createEngine(parseDockerHost(dockerHost))
  const { mostRequests, mostStreams = 64, ...operationChange } = change
  const operations = new Operations({
    engine,
    audit,
    deployment: 'dep',
    images: ['sandlot/sandbox:latest', 'sandlot/sandbox-full:latest'],
    runtime: undefined,
    limits: DEFAULT_LIMITS,
    seccompProfile: '{"defaultAction":"SCMP_ACT_ERRNO"}',
    most: { containers: 100, volumes: 100 },
    ...operationChange,
  })
  const gate = createGate({
    engine,
    operations,
    audit,
    mostStreams,
    ...(mostRequests === undefined ? {} : { mostRequests }),
  })
  await listenOn(gate, socket)
  return {
    socket,
    dockerHost: `unix://${socket}`,
    log,
    async close() {
      gate.closeAllConnections()
      await new Promise((resolve) => gate.close(resolve))
      engine.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
