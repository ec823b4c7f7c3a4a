/** Stage of the rows: a controller, an attacker's real sandbox and a neighbour's, on the real engine. */
import { existsSync } from 'node:fs'
import { readdir, readFile, statfs } from 'node:fs/promises'
import { join } from 'node:path'

import {
  docker,
  dockerFixture,
  type DockerFixture,
} from '../../packages/sandbox/test/support/docker-fixture.ts'
import type { SandboxBackend } from '../../packages/sandbox/src/backend.ts'
import { DEFAULT_LIMITS } from '../../packages/sandbox/src/limits.ts'
import type { Sandbox } from '../../packages/sandbox/src/sandbox.ts'
import type { Sandboxes } from '../../packages/sandbox/src/controller/sandboxes.ts'
import { ToolCaller } from './tool-call.ts'

export interface Stage {
  fixture: DockerFixture
  controller: Sandboxes
  /** The attacker's tools. */
  me: ToolCaller
  /** Somebody else's, in another sandbox of the same controller. */
  neighbour: ToolCaller
  /** The attacker's sandbox as it is now. */
  sandbox(): Promise<Sandbox>
  neighbourSandbox(): Promise<Sandbox>
  /** `uname -m` of the sandbox. */
  architecture: string
  /** The engine's data, where this process may look at it. */
  engineFolder: string | undefined
  /** A third user, for a row that ruins its sandbox; removed with the rest. */
  other(name: string): ToolCaller
  close(): Promise<void>
}

/** Half of the default memory, so that filling it takes half the time. */
export const STAGE_LIMITS = {
  ...DEFAULT_LIMITS,
  memoryBytes: 1024 ** 3,
  tmpBytes: 128 * 1024 ** 2,
}

const ATTACKER = 'attacker'
const NEIGHBOUR = 'neighbour'

/** Throws unless both are real sandboxes: sbxd is process 1, no capabilities, a system call filter. */
export async function openStage(
  backendOf: (fixture: DockerFixture) => SandboxBackend = ({ backend }) => backend,
): Promise<Stage> {
  const fixture = await dockerFixture()
  try {
    const controller = fixture.controller({ backend: backendOf(fixture), limits: STAGE_LIMITS })
    const me = new ToolCaller(controller, ATTACKER)
    const neighbour = new ToolCaller(controller, NEIGHBOUR)
    await Promise.all([mustBeReal(me), mustBeReal(neighbour)])
    const architecture = (await me.shell('uname -m')).output.trim()
    return {
      fixture,
      controller,
      me,
      neighbour,
      architecture,
      sandbox: () => controller.acquire(ATTACKER),
      neighbourSandbox: () => controller.acquire(NEIGHBOUR),
      engineFolder: await engineFolder(),
      other: (name) => new ToolCaller(controller, name),
      close: () => fixture.dispose(),
    }
  } catch (error) {
    await fixture.dispose()
    throw error
  }
}

async function mustBeReal(caller: ToolCaller): Promise<void> {
  const { output } = await caller.shell(
    'cat /proc/1/comm; grep -E "^(CapEff|Seccomp|NoNewPrivs):" /proc/self/status',
  )
  const facts = output.trim().replaceAll('\t', ' ').split('\n')
  const expected = ['sbxd', 'CapEff: 0000000000000000', 'NoNewPrivs: 1', 'Seccomp: 2']
  if (JSON.stringify(facts) !== JSON.stringify(expected))
    throw new Error(`This is no sandbox that hostile input may be tried in:\n${output}`)
}

/** Only when the engine runs on this machine and its folder can be read. */
async function engineFolder(): Promise<string | undefined> {
  const folder = await docker('info', '--format', '{{.DockerRootDir}}')
  const readable = existsSync(join(folder, 'containers'))
  return readable ? folder : undefined
}

/** Paths of the engine's files for one container on the host; retries while a folder changes. */
export async function hostFiles(stage: Stage, containerId: string): Promise<string[]> {
  if (stage.engineFolder === undefined) return []
  const upper = await upperFolder(containerId)
  const folders = [join(stage.engineFolder, 'containers', containerId), upper]
  const found = await Promise.all(
    folders.map(async (folder) => {
      const names = await readdir(folder, { recursive: true })
      return names.map((name) => join(folder, name))
    }),
  )
  return found.flat().toSorted()
}

const uppers = new Map<string, Promise<string>>()
function upperFolder(containerId: string): Promise<string> {
  const known =
    uppers.get(containerId) ?? docker('inspect', '--format', '{{.GraphDriver.Data.UpperDir}}', containerId)
  uppers.set(containerId, known)
  return known
}

/** Bytes free on the disk that holds the engine's data, where that can be asked. */
export async function freeBytes(stage: Stage): Promise<number | undefined> {
  if (stage.engineFolder === undefined) return undefined
  const { bavail, bsize } = await statfs(stage.engineFolder)
  return bavail * bsize
}

/** The profile that a container was really made with. */
export async function loadedProfile(containerId: string): Promise<unknown> {
  const options: unknown = JSON.parse(
    await docker('inspect', '--format', '{{json .HostConfig.SecurityOpt}}', containerId),
  )
  const text = Array.isArray(options)
    ? options.map(String).find((option) => option.startsWith('seccomp='))
    : undefined
  return JSON.parse(text?.slice('seccomp='.length) ?? 'null')
}

/** A file of the host, or an empty text where it cannot be read. */
export async function hostText(path: string): Promise<string> {
  return existsSync(path) ? readFile(path, 'utf8') : ''
}
