/** Shared by all goals: a deployment of its own, one sandbox that is warm, and the ways to compare with. */
import { randomBytes } from 'node:crypto'

import Docker from 'dockerode'

import type { BenchArguments } from '../../../test/bench/run.ts'
import type { CommandExit, RunRequest, Sandbox } from '../src/sandbox.ts'
import type { Sandboxes } from '../src/controller/sandboxes.ts'
import { type DockerFixture, dockerFixture } from '../test/support/docker-fixture.ts'

export interface BenchContext extends BenchArguments {
  fixture: DockerFixture
  docker: Docker
  /** The controller of most goals. */
  sandboxes: Sandboxes
  /** Another one, over a deployment of its own that ends with the bench. */
  deployment: () => Promise<DockerFixture>
  /** Peers that a goal makes: disposed of by the goal, or with the bench that is interrupted. */
  own: <T extends AsyncDisposable>(made: T) => T
}

export async function openContext(args: BenchArguments, stack: AsyncDisposableStack): Promise<BenchContext> {
  const deployment = async (): Promise<DockerFixture> => {
    const made = await dockerFixture()
    stack.defer(() => made.dispose())
    return made
  }
  const fixture = await deployment()
  return {
    ...args,
    fixture,
    docker: new Docker(),
    sandboxes: fixture.controller(),
    deployment,
    own: (made) => stack.use(made),
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
