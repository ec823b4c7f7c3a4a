/** Stage of the rows: a controller, an attacker's real sandbox and a neighbour's, on a real engine. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

import type { DockerFixture } from '../../packages/sandbox/test/support/docker-fixture.ts'
import type { SandboxBackend } from '../../packages/sandbox/src/backend.ts'
import { DEFAULT_LIMITS } from '../../packages/sandbox/src/limits.ts'
import type { Sandbox } from '../../packages/sandbox/src/sandbox.ts'
import type { Sandboxes } from '../../packages/sandbox/src/controller/sandboxes.ts'
import { ToolCaller } from './tool-call.ts'

/** Parts of a fixture that every engine has. */
type Fixture = Pick<
  DockerFixture,
  'deployment' | 'deploymentKey' | 'backend' | 'ledger' | 'controller' | 'dispose'
>

/** Answers about sandboxes that only their engine gives. */
export interface StageEngine {
  name: 'docker' | 'kubernetes'
  fixture: Fixture
  /** Everything that it tells an operator of a sandbox. */
  describe(id: string): Promise<string>
  /** Stored output of process 1. */
  log(id: string): Promise<string>
  /** Paths of its files for one sandbox on the host; none where this process may not look. */
  hostFiles(id: string): Promise<string[]>
  /** Bytes free on the disk that holds its data, where that can be asked. */
  freeBytes(): Promise<number | undefined>
}

export interface Stage {
  engine: StageEngine
  fixture: Fixture
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
  engine: StageEngine,
  backend: SandboxBackend = engine.fixture.backend,
): Promise<Stage> {
  const { fixture } = engine
  try {
    const controller = fixture.controller({ backend, limits: STAGE_LIMITS })
    const me = new ToolCaller(controller, ATTACKER)
    const neighbour = new ToolCaller(controller, NEIGHBOUR)
    await Promise.all([mustBeReal(me), mustBeReal(neighbour)])
    const architecture = (await me.shell('uname -m')).output.trim()
    return {
      engine,
      fixture,
      controller,
      me,
      neighbour,
      architecture,
      sandbox: () => controller.acquire(ATTACKER),
      neighbourSandbox: () => controller.acquire(NEIGHBOUR),
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

/** A file of the host, or an empty text where it cannot be read. */
export async function hostText(path: string): Promise<string> {
  return existsSync(path) ? readFile(path, 'utf8') : ''
}
