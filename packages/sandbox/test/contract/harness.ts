import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'

import type { BackendSandbox, SandboxBackend, SandboxSpec } from '../../src/backend.ts'
import { connectSandbox, type ConnectedSandbox } from '../../src/sbxd/client.ts'
import { deriveSandboxKey, deriveStateKey } from '../../src/controller/key.ts'
import type { CommandExit, RunningCommand, RunRequest, Sandbox } from '../../src/sandbox.ts'

/** Requirements of the suite for a backend under test. */
export interface BackendFixture {
  backend: SandboxBackend
  /** A spec with a name, slot and volume of its own. */
  spec(change?: Partial<SandboxSpec>): SandboxSpec
  /** Remove everything that was made, also after a failure. */
  dispose(): Promise<void>
}

export interface SuiteOptions {
  name: string
  open(): Promise<BackendFixture>
  /** Title of a test → why it cannot hold here. */
  skips?: Record<string, string>
  /** A sandbox has its own PID namespace: tests may kill everything in it. Default false. */
  ownProcesses?: boolean
  /** Its streams are another backend's, which the whole suite has run on. Default false. */
  lifecycleOnly?: boolean
  /**
   * Only the groups that soon show whether this build works: for one that is slow. Default false.
   */
  quick?: boolean
  /** Reason why an ordinary run has no groups about sbxd. Default: it has all. */
  sbxdElsewhere?: string
  /** A command takes so long that of thousands of cases only hundreds are tried. Default false. */
  slow?: boolean
}

const deploymentKey = randomBytes(32)
/** Seals the sessions of a slot here. */
export const stateKeyOf = (slot: string): Uint8Array => deriveStateKey(deploymentKey, slot)

export const newId = (): string => randomBytes(16).toString('hex')

/** One running sandbox and ways to talk to it. */
export class Bench {
  readonly fixture: BackendFixture
  readonly spec: SandboxSpec
  readonly container: BackendSandbox
  epoch = 1
  #keyId: string | undefined

  constructor(fixture: BackendFixture, spec: SandboxSpec, container: BackendSandbox) {
    this.fixture = fixture
    this.spec = spec
    this.container = container
  }

  static async start(
    fixture: BackendFixture,
    change?: Partial<SandboxSpec>,
  ): Promise<{ bench: Bench; sandbox: ConnectedSandbox }> {
    const spec = fixture.spec(change)
    const bench = new Bench(fixture, spec, await fixture.backend.create(spec))
    return { bench, sandbox: await bench.connect() }
  }

  /** One more stream to its sbxd, started if it does not run. */
  async open(): Promise<Duplex> {
    const { stream, keyId } = await this.fixture.backend.open(this.container)
    this.#keyId = keyId
    return stream
  }

  async connect(change: Partial<Parameters<typeof connectSandbox>[0]> = {}): Promise<ConnectedSandbox> {
    const stream = change.stream ?? (await this.open())
    if (this.#keyId === undefined) throw new Error('This stream was opened elsewhere')
    return connectSandbox({
      id: this.container.id,
      key: deriveSandboxKey(deploymentKey, this.#keyId),
      stateKey: stateKeyOf(this.spec.slot),
      epoch: this.epoch,
      heartbeatMs: 0,
      ...change,
      stream,
    })
  }

  async remove(): Promise<void> {
    await this.fixture.backend.remove(this.container.id)
    await this.fixture.backend.inventory.volumes.remove(this.spec.volume)
  }
}

/** A spec's pool name, and so its volume's: `sbx-<deployment>-<slot>`. */
export const deploymentOf = ({ volume, slot }: Pick<SandboxSpec, 'volume' | 'slot'>): string =>
  volume.slice('sbx-'.length, -slot.length - 1)

export interface Result extends CommandExit {
  out: string
  err: string
}

/** Everything a command prints, and how it ends. */
export async function finish(command: RunningCommand): Promise<Result> {
  const parts: Record<'stdout' | 'stderr', Uint8Array[]> = { stdout: [], stderr: [] }
  for await (const chunk of command.output) parts[chunk.stream].push(chunk.data)
  const exit = await command.exit
  return { ...exit, out: Buffer.concat(parts.stdout).toString(), err: Buffer.concat(parts.stderr).toString() }
}

/** Run to the end. */
export async function sh(
  sandbox: Sandbox,
  command: RunRequest['command'],
  options: Partial<RunRequest> = {},
): Promise<Result> {
  return finish(await sandbox.run({ id: newId(), command, autoAcknowledge: true, ...options }))
}

/**
 * Processes inside whose command line contains `marker`, as seen from inside. The search itself
 * does not contain it.
 */
export async function survivors(sandbox: Sandbox, marker: string): Promise<string[]> {
  const { out } = await sh(
    sandbox,
    'printf %s "$M1$M2" | grep -alzFf - /proc/[0-9]*/cmdline 2>/dev/null | sed "s,/cmdline,,"; true',
    { env: { M1: marker.slice(0, 3), M2: marker.slice(3) } },
  )
  return out.split('\n').filter(Boolean)
}

/** A number for `sleep` that nobody else uses, so that its process can be found. */
export const marker = (): string => `9${Math.floor(Math.random() * 1e6)}.${Math.floor(Math.random() * 1e6)}1`
