/**
 * What every goal works with: a deployment of its own, one sandbox that is warm, and the ways
 * around it.
 */
import { randomBytes } from 'node:crypto'

import Docker from 'dockerode'

import type { CommandExit, RunRequest, Sandbox } from '../src/sandbox.ts'
import type { Sandboxes, SandboxesOptions } from '../src/controller/sandboxes.ts'
import { type DockerFixture, dockerFixture } from '../test/support/docker-fixture.ts'

export interface BenchContext {
  samples: number
  /** How many sandboxes a goal with many of them makes. */
  many: number
  fixture: DockerFixture
  docker: Docker
  /** The controller of most goals. */
  sandboxes: Sandboxes
  /** Another one, over a deployment of its own that ends with the bench. */
  deployment: () => Promise<DockerFixture>
  say: (text: string) => void
  /** What a goal makes besides: disposed of by the goal, or with the bench that is interrupted. */
  own: <T extends AsyncDisposable>(made: T) => T
}

export async function openContext(
  options: { samples: number; many: number; say: (text: string) => void },
  change: Partial<SandboxesOptions> = {},
): Promise<BenchContext & AsyncDisposable> {
  const fixtures = [await dockerFixture()]
  const [fixture] = fixtures as [DockerFixture]
  const owned: AsyncDisposable[] = []
  return {
    ...options,
    fixture,
    docker: new Docker(),
    sandboxes: fixture.controller(change),
    async deployment() {
      const another = await dockerFixture()
      fixtures.push(another)
      return another
    },
    own(made) {
      owned.push(made)
      return made
    },
    async [Symbol.asyncDispose]() {
      for (const made of owned) await made[Symbol.asyncDispose]()
      for (const one of fixtures) await one.dispose()
    },
  }
}

/** Run a command to its end, throwing its output away. Throws unless it exits with 0. */
export async function runToEnd(sandbox: Sandbox, request: Omit<RunRequest, 'id'>): Promise<CommandExit> {
  const command = await sandbox.run({ id: newId(), autoAcknowledge: true, ...request })
  let bytes = 0
  for await (const chunk of command.output) bytes += chunk.data.length
  const exit = await command.exit
  if (exit.code !== 0) throw new Error(`ended with ${JSON.stringify(exit)} after ${bytes} bytes`)
  return exit
}

export function newId(): string {
  return randomBytes(16).toString('hex')
}
