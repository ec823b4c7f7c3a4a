/** The npm libraries that do something alike, each in a container of its own on the same engine. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

import type { BenchContext } from './context.ts'
import type { Way } from './measure.ts'

const run = promisify(execFile)
const FOLDER = fileURLToPath(new URL('peers/', import.meta.url))
/** The sandbox image without sbxd as its first process: both libraries bring one of their own. */
const IMAGE = 'sandlot/bench-peer:latest'

/** As much of `@mastra/docker` as we call. */
export interface MastraSandbox {
  start(): Promise<void>
  destroy(): Promise<void>
  readonly container: { id: string }
  executeCommand(
    command: string,
    args?: string[],
    options?: { timeout?: number },
  ): Promise<{ exitCode: number }>
}
interface MastraModule {
  DockerSandbox: new (options: { image: string; network: string }) => MastraSandbox
}

/** As much of `@openai/agents-core/sandbox/local` as we call. */
interface AgentsSession {
  exec(args: { cmd: string }): Promise<{ exitCode?: number | null }>
  close(): Promise<void>
}
interface AgentsModule {
  DockerSandboxClient: new (options: { image: string; networkMode: 'none' }) => {
    create(): Promise<AgentsSession>
  }
}

export interface Peers extends AsyncDisposable {
  /** One `true` in each. */
  calls: Way[]
  mastra: MastraSandbox
}

/** Installs the libraries the first time, from the lockfile beside them. */
export async function openPeers({ say, own }: Pick<BenchContext, 'say' | 'own'>): Promise<Peers> {
  const made = own(new AsyncDisposableStack())
  if (!existsSync(`${FOLDER}node_modules`)) {
    say('Installing the libraries to measure beside (once)')
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: FOLDER })
  }
  await makeImage()
  const { DockerSandbox } = await load<MastraModule>('@mastra/docker')
  const { DockerSandboxClient } = await load<AgentsModule>('@openai/agents-core/sandbox/local')
  const mastra = new DockerSandbox({ image: IMAGE, network: 'none' })
  made.defer(() => mastra.destroy())
  await mastra.start()
  const agents = await new DockerSandboxClient({ image: IMAGE, networkMode: 'none' }).create()
  made.defer(() => agents.close())
  return {
    mastra,
    calls: [
      {
        name: '@mastra/docker 0.3.0',
        async once() {
          const { exitCode } = await mastra.executeCommand('true')
          if (exitCode !== 0) throw new Error(`ended with ${exitCode}`)
        },
      },
      {
        name: '@openai/agents-core 0.20.0',
        async once() {
          const { exitCode } = await agents.exec({ cmd: 'true' })
          if (exitCode !== 0) throw new Error(`ended with ${exitCode}`)
        },
      },
    ],
    [Symbol.asyncDispose]: () => made.disposeAsync(),
  }
}

async function load<T>(name: string): Promise<T> {
  const path = createRequire(`${FOLDER}package.json`).resolve(name)
  return (await import(pathToFileURL(path).href)) as T
}

async function makeImage(): Promise<void> {
  const build = run('docker', ['build', '-q', '-t', IMAGE, '-'], {
    env: { ...process.env, DOCKER_BUILDKIT: '0' },
  })
  build.child.stdin?.end('FROM sandlot/sandbox:latest\nENTRYPOINT []\nUSER 0:0\n')
  await build
}
