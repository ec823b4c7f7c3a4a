/** Findings about the machine that will run sandboxes. Creates one sandbox and removes it. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { release, tmpdir } from 'node:os'
import { join } from 'node:path'

import type { SandboxLimits, SandboxProfile } from '../backend.ts'
import { createDockerBackend } from '../backends/docker/backend.ts'
import type { EngineTls } from '../backends/docker/connection.ts'
import { describeEngine, hasImage } from '../backends/docker/describe.ts'
import { SandboxError } from '../errors.ts'
import { createFileLedger } from '../controller/file-ledger.ts'
import { createSandboxes } from '../controller/sandboxes.ts'
import { engineKind, judgeEngine } from './engine.ts'
import { check, type Finding, inOrder, report } from '#shared/base/finding'
import { judgeDisk, judgeHost } from './host.ts'
import { judgeProof, probeSandbox } from '../controller/proof.ts'

interface MachineOptions {
  /** A `DOCKER_HOST` value; default the usual Unix socket. */
  dockerHost?: string
  tls?: EngineTls
  image: string
  limits?: SandboxLimits
  runtime?: string
  /** Default `default`. */
  profile?: SandboxProfile
}

const BUILD_IMAGES = 'docker/build-images.sh'

type EngineOptions = Pick<MachineOptions, 'dockerHost' | 'tls' | 'image' | 'runtime'>

/** All findings, `must` first. Never rejects: a failed query is a finding. */
export function examineMachine(options: MachineOptions): Promise<Finding[]> {
  return examine(options, (at) => probe(options, at))
}

/** `examineMachine` next to sandboxes in use: creates none. */
export function examineEngine(options: EngineOptions): Promise<Finding[]> {
  const { image } = options
  return examine(options, async (at) => [
    check('must', 'image', 'Sandbox image', await hasImage(image, at), {
      ok: image,
      bad: `${image} is not on the engine`,
      fix: BUILD_IMAGES,
    }),
  ])
}

async function examine(
  { dockerHost, tls, runtime }: EngineOptions,
  further: (at: Pick<EngineOptions, 'dockerHost' | 'tls'>) => Promise<Finding[]>,
): Promise<Finding[]> {
  const at = { dockerHost, tls }
  try {
    const engine = await describeEngine(at)
    // The kernel of a virtual machine (Docker Desktop), or of a host behind a gate, is not this
    // one.
    const here =
      engine.local &&
      engineKind(engine) !== 'Docker Desktop' &&
      (engine.info.KernelVersion ?? release()) === release()
    const findings = [
      ...judgeEngine(engine, runtime),
      ...(await further(at)),
      ...(await judgeHost(here)),
      ...(await judgeDisk(here ? engine.info.DockerRootDir : undefined)),
    ]
    return inOrder(findings)
  } catch (error) {
    return [cannot('engine', 'Docker engine', error)]
  }
}

/** Creates a sandbox as for a user, in a temporary deployment of its own. */
async function probe(
  options: MachineOptions,
  at: { dockerHost?: string; tls?: EngineTls },
): Promise<Finding[]> {
  const deployment = `doctor-${randomBytes(4).toString('hex')}`
  const backend = createDockerBackend({ ...at, deployment })
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-doctor-'))
  const sandboxes = createSandboxes({
    backend,
    ledger: createFileLedger(join(folder, 'ledger.json')),
    deploymentKey: randomBytes(32),
    deploymentId: deployment,
    image: options.image,
    limits: options.limits,
    runtime: options.runtime,
    profileFor: () => options.profile ?? 'default',
  })
  try {
    const { quota, pause } = await backend.inventory.capabilities()
    const from = performance.now()
    const sandbox = await sandboxes.acquire('doctor')
    const took = Math.round(performance.now() - from)
    const proof = await probeSandbox(sandbox)
    const { memory, processes } = await sandbox.stat()
    return [
      check('must', 'sandbox', 'A sandbox', true, {
        ok: `made and reached over its own stream in ${took} ms, without a log`,
        bad: '',
        fix: '',
      }),
      ...judgeProof(proof, options.profile),
      check('warn', 'quota', 'Disk budget', quota === 'hard', {
        ok: 'a wall: the file system enforces it',
        bad: 'watched: a fast writer can pass it by what the disk writes in a moment',
        fix: 'Put the engine’s data root on xfs mounted with pquota for a wall; docs/disk.md says how far it can be passed.',
      }),
      check('warn', 'pause', 'Pausing', pause, {
        ok: 'idle sandboxes cost no CPU',
        bad: 'this engine cannot pause containers: idle sandboxes are stopped instead',
        fix: 'Use an engine with the cgroup freezer.',
      }),
      report(
        'cost',
        'Cost of a sandbox in which nothing runs',
        `${(memory.bytes / 1024 / 1024).toFixed(1)} MiB inside, ${processes.count === 1 ? 'one process' : `${processes.count} processes`}`,
      ),
      report('kernel', 'Kernel of a sandbox', proof.get('kernel')?.slice(0, 100) ?? 'not said'),
    ]
  } catch (error) {
    return [cannot('sandbox', 'A sandbox', error)]
  } finally {
    await sandboxes.close()
    for (const { id } of await backend.list({}).catch(() => [])) await backend.remove(id)
    for (const { name } of await backend.inventory.volumes.list().catch(() => []))
      await backend.inventory.volumes.remove(name)
    await backend.inventory.close()
    await rm(folder, { recursive: true, force: true })
  }
}

function cannot(id: string, name: string, error: unknown): Finding {
  const message = error instanceof Error ? error.message.replace(/\.$/, '') : String(error)
  const missing = error instanceof SandboxError && /image/.test(message)
  return {
    id,
    group: 'must',
    name,
    message,
    state: 'failed',
    fix: missing ? BUILD_IMAGES : 'Start the engine, or ./sandlot up, which does.',
  }
}
