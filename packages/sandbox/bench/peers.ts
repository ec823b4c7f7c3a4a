/** The npm libraries that do something alike, each in a container of its own on the same engine. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

import type { Way } from '../../../test/bench/measure.ts'
import { installPeers, loadPeer } from '../../../test/bench/peers.ts'

const run = promisify(execFile)
const FOLDER = new URL('peers/', import.meta.url)
/** The sandbox image without sbxd as its first process: both libraries bring one of their own. */
const IMAGE = 'sandlot/bench-peer:latest'

/** Used part of `@mastra/docker`. */
interface MastraSandbox {
  start(): Promise<void>
  destroy(): Promise<void>
  executeCommand(command: string): Promise<{ exitCode: number }>
}
interface MastraModule {
  DockerSandbox: new (options: { image: string; network: string }) => MastraSandbox
}

/** Used part of `@openai/agents-core/sandbox/local`. */
interface AgentsSession {
  exec(args: { cmd: string }): Promise<{ exitCode?: number | null }>
  close(): Promise<void>
}
interface AgentsModule {
  DockerSandboxClient: new (options: { image: string; networkMode: 'none' }) => {
    create(): Promise<AgentsSession>
  }
}

/** One `true` in each. */
export async function openPeers(made: AsyncDisposableStack): Promise<Way[]> {
  await installPeers(FOLDER)
  await makeImage()
  const { DockerSandbox } = await loadPeer<MastraModule>(FOLDER, '@mastra/docker')
  const { DockerSandboxClient } = await loadPeer<AgentsModule>(FOLDER, '@openai/agents-core/sandbox/local')
  const mastra = new DockerSandbox({ image: IMAGE, network: 'none' })
  made.defer(() => mastra.destroy())
  await mastra.start()
  const agents = await new DockerSandboxClient({ image: IMAGE, networkMode: 'none' }).create()
  made.defer(() => agents.close())
  const way = (name: string, run: () => Promise<number | null | undefined>): Way => ({
    name,
    async once() {
      const exitCode = await run()
      if (exitCode !== 0) throw new Error(`ended with ${exitCode}`)
    },
  })
  return [
    way('@mastra/docker 0.3.0', async () => (await mastra.executeCommand('true')).exitCode),
    way('@openai/agents-core 0.20.0', async () => (await agents.exec({ cmd: 'true' })).exitCode),
  ]
}

async function makeImage(): Promise<void> {
  const build = run('docker', ['build', '-q', '-t', IMAGE, '-'], {
    env: { ...process.env, DOCKER_BUILDKIT: '0' },
  })
  build.child.stdin?.end('FROM sandlot/sandbox:latest\nENTRYPOINT []\nUSER 0:0\n')
  await build
}
