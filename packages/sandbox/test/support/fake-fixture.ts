import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import {
  createFakeEngine,
  type FailPoint,
  type FakeController,
  type FakeEngine,
} from '../../src/backends/fake.ts'
import { SandboxError } from '../../src/errors.ts'
import { createFileLedger } from '../../src/controller/file-ledger.ts'
import { LABEL } from '../../src/names.ts'
import type { SandboxLedger } from '../../src/ledger.ts'
import { ownerTag, parseName } from '../../src/names.ts'
import { createSandboxes, type Sandboxes, type SandboxesOptions } from '../../src/controller/sandboxes.ts'
import { buildSbxd } from './build-sbxd.ts'

export const DEPLOYMENT = 'test'

export interface Started {
  hands: FakeController
  sandboxes: Sandboxes
}

/** An engine of its own with a ledger of its own. */
export interface FakeFixture {
  engine: FakeEngine
  deploymentKey: Uint8Array
  folder: string
  ledgerFile: string
  ledger: SandboxLedger
  /**
   * A controller, as after a start; the ones before it go on living unless they crashed or were
   * closed.
   */
  start(change?: Partial<SandboxesOptions>, failPoint?: FailPoint): Started
  /** Problems of engine and ledger, a sentence each. `mostWarm` slots may be warm. */
  problems(mostWarm: number): Promise<string[]>
  dispose(): Promise<void>
}

let binary: Promise<string> | undefined

/** Compile sbxd, once per test file; that takes a while on a busy machine. */
export function compiledSbxd(): Promise<string> {
  binary ??= mkdtemp(join(tmpdir(), 'sandlot-sbxd-')).then(buildSbxd)
  return binary
}

export async function removeSbxd(): Promise<void> {
  const made = binary
  // Another test file in this process makes its own.
  binary = undefined
  if (made) await rm(dirname(await made), { recursive: true, force: true })
}

export async function fakeFixture(leaseSeconds = 0): Promise<FakeFixture> {
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-fake-'))
  const engine = createFakeEngine({
    sbxd: await compiledSbxd(),
    directory: join(folder, 'volumes'),
    leaseSeconds,
  })
  const deploymentKey = randomBytes(32)
  const ledgerFile = join(folder, 'ledger.json')
  const ledger = createFileLedger(ledgerFile)
  const started: Started[] = []
  return {
    engine,
    deploymentKey,
    folder,
    ledgerFile,
    ledger,
    start(change = {}, failPoint) {
      const hands = engine.controller(ledger, failPoint)
      const sandboxes = createSandboxes({
        backend: hands.backend,
        ledger: hands.ledger,
        deploymentKey,
        deploymentId: DEPLOYMENT,
        image: 'none',
        graceMs: 0,
        ...change,
      })
      const one = { hands, sandboxes }
      started.push(one)
      return one
    },
    problems: (mostWarm) => problems(engine, ledger, mostWarm),
    async dispose() {
      for (const { sandboxes } of started) await sandboxes.close()
      await engine.backend.inventory.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function problems(engine: FakeEngine, ledger: SandboxLedger, mostWarm: number): Promise<string[]> {
  const found: string[] = []
  const rows = await ledger.list()
  const containers = await engine.backend.list({})
  const volumes = new Set((await engine.backend.inventory.volumes.list()).map(({ name }) => name))
  const warm = rows.filter(({ state }) => state === 'warm').length
  if (warm > mostWarm) found.push(`${warm} slots are warm`)
  for (const row of rows) if (row.state === 'condemned') found.push(`slot ${row.slot} is condemned for ever`)
  for (const container of containers) {
    const row = rows.find(({ slot }) => slot === container.labels[LABEL.slot])
    const name = parseName(DEPLOYMENT, container.name)
    const others = containers.filter((other) => other.labels[LABEL.slot] === container.labels[LABEL.slot])
    if (others.length > 1) found.push(`slot ${container.labels[LABEL.slot]} has ${others.length} containers`)
    if (name?.kind === 'pool' && row?.state !== 'warm') found.push(`${container.name} is a leak`)
    if (!volumes.has(container.labels[LABEL.volume] ?? '')) found.push(`${container.name} has no volume`)
  }
  for (const volume of volumes) {
    const users = rows.filter((row) => row.volume === volume).length
    const inUse = containers.some(({ labels }) => labels[LABEL.volume] === volume)
    if (users > 1) found.push(`${volume} is in ${users} slots`)
    if (users === 0 && !inUse) found.push(`${volume} is nobody’s`)
  }
  return found
}

/** The slot that the engine says is this user's. */
export async function slotsOnEngine(fixture: FakeFixture, user: string): Promise<string[]> {
  const owner = ownerTag(fixture.deploymentKey, user)
  const containers = await fixture.engine.backend.list({})
  return containers.flatMap(({ name }) => {
    const parsed = parseName(DEPLOYMENT, name)
    return parsed?.kind === 'claimed' && parsed.owner === owner ? [parsed.slot] : []
  })
}

/**
 * Acquire, say whose it is, and read whose it was: a workspace that two users ever share shows it.
 */
export async function visit(sandboxes: Sandboxes, user: string): Promise<'new' | 'known'> {
  const { files } = await sandboxes.acquire(user)
  let owner: string | undefined
  try {
    owner = Buffer.from(await files.read('owner')).toString()
  } catch (error) {
    if (!(error instanceof SandboxError && error.code === 'not_found')) throw error
  }
  if (owner !== undefined && owner !== user) throw new Error(`${user} sees the files of ${owner}`)
  if (owner === undefined) await files.write('owner', Buffer.from(user))
  return owner === undefined ? 'new' : 'known'
}
