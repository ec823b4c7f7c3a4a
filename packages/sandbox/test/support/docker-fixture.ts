import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'

import { type ExpectStatic, test } from 'vitest'

import { createDockerBackend, type DockerBackendOptions } from '../../src/backends/docker/backend.ts'
import type { Sandbox } from '../../src/sandbox.ts'
import { testConfig } from './config.ts'
import { type Deployment, makeDeployment } from './deployment.ts'

const run = promisify(execFile)

/** The docker command, as an operator behind our back. Returns what it printed, trimmed. */
export async function docker(...args: string[]): Promise<string> {
  const { stdout } = await run('docker', args, { maxBuffer: 64 * 1024 * 1024 })
  return stdout.trim()
}

export interface DockerFixture extends Omit<Deployment, 'close'> {
  /** Ids of this deployment's containers, whatever their state. */
  containers(): Promise<string[]>
  volumes(): Promise<string[]>
  /** Close the controllers, remove this deployment's containers and volumes and the ledger. */
  dispose(): Promise<void>
}

export interface DockerFixtureOptions {
  /** A `DOCKER_HOST` value; default the engine that the tests run against. */
  host?: string
  /** When a hanging engine is given up. */
  circuit?: DockerBackendOptions['circuit']
}

/** A deployment of its own on the local engine. Call `dispose` at the end, whatever happened. */
export async function dockerFixture(options: DockerFixtureOptions = {}): Promise<DockerFixture> {
  const host = options.host ?? testConfig.dockerHost
  const on = (...args: string[]): Promise<string> =>
    docker(...(host === undefined ? [] : ['--host', host]), ...args)
  const { close, ...made } = await makeDeployment(testConfig.image, (deployment) =>
    createDockerBackend({
      deployment,
      dockerHost: host,
      circuit: options.circuit,
      copyImage: testConfig.image,
    }),
  )
  const { backend, deployment } = made
  const label = `label=sandlot.deployment=${deployment}`
  const lines = (text: string): string[] => text.split('\n').filter(Boolean)
  const containers = async (): Promise<string[]> =>
    lines(await on('ps', '-aq', '--no-trunc', '--filter', label))
  const volumes = async (): Promise<string[]> => lines(await on('volume', 'ls', '-q', '--filter', label))
  return {
    ...made,
    containers,
    volumes,
    async dispose() {
      await close()
      // Two hundred at once keep an engine from answering until its breaker opens.
      for (const ids of groups(await backend.list({})))
        await Promise.all(ids.map(({ id }) => backend.remove(id)))
      const left = await containers() // whatever it is that the backend does not see
      if (left.length > 0) await on('rm', '-f', ...left)
      for (const volumes of groups(await backend.inventory.volumes.list()))
        await Promise.all(volumes.map(({ name }) => backend.inventory.volumes.remove(name)))
      await backend.inventory.close()
    },
  }
}

function groups<T>(all: readonly T[]): T[][] {
  const SIZE = 12
  return Array.from({ length: Math.ceil(all.length / SIZE) }, (_, i) => all.slice(i * SIZE, (i + 1) * SIZE))
}

/**
 * A test with a deployment of its own, which runs while others of its file do: most of its time it
 * waits for the engine. Its `expect` is the one that is given.
 */
export function deployed(
  title: string,
  body: (given: { fixture: DockerFixture; expect: ExpectStatic }) => Promise<void>,
  timeoutMs?: number,
): void {
  test.concurrent(
    title,
    async ({ expect }) => {
      const fixture = await dockerFixture()
      try {
        await body({ fixture, expect })
      } finally {
        await fixture.dispose()
      }
    },
    timeoutMs,
  )
}

export interface ShellResult {
  code: number | undefined
  signal: string | undefined
  output: string
}

/** Run shell text to its end and gather both streams as one text. */
export async function shell(sandbox: Sandbox, command: string): Promise<ShellResult> {
  const running = await sandbox.run({ id: randomBytes(16).toString('hex'), command, merge: true })
  const chunks: Uint8Array[] = []
  for await (const chunk of running.output) {
    chunks.push(chunk.data)
    // sbxd keeps what is not acknowledged, and lets the command wait when that is a whole window.
    running.acknowledge({ stdout: chunk.offset + chunk.data.length })
  }
  const exit = await running.exit
  running.acknowledge(exit.bytes)
  return { code: exit.code, signal: exit.signal, output: Buffer.concat(chunks).toString() }
}
