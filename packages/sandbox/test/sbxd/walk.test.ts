/**
 * Files on a kernel without openat2(2), as gVisor's: the same answers, and nothing outside, by
 * another way.
 */
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { extent } from '../../../../test/campaign.ts'
import { createLocalProcessBackend } from '../../src/backends/local-process.ts'
import type { ConnectedSandbox } from '../../src/sbxd/client.ts'
import { buildSbxd, buildWalkingSbxd } from '../support/build-sbxd.ts'
import { fileTests } from '../contract/files.ts'
import { type BackendFixture, Bench } from '../contract/harness.ts'
import { localProcessFixture } from '../support/local-process-fixture.ts'

describe('the contract of files', () => {
  let fixture: BackendFixture
  let shared: { bench: Bench; sandbox: ConnectedSandbox }
  beforeAll(async () => {
    fixture = await localProcessFixture(buildWalkingSbxd)
    shared = await Bench.start(fixture)
  }, 120_000)
  afterAll(() => fixture.dispose(), 60_000)
  fileTests({
    it: test,
    apart: test.concurrent,
    fixture: () => fixture,
    bench: () => shared.bench,
    sandbox: () => shared.sandbox,
    ownProcesses: false,
    slow: false,
  })
})

const NAMES = ['a', 'b', 'c']
/** Locations of the entries: the top and one level below. */
const place = fc
  .array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 3 })
  .map((names) => names.join('/'))
const component = fc.constantFrom(...NAMES, '..', '.', '')
const target = fc.tuple(fc.constantFrom('', '', '', '/'), fc.array(component, { minLength: 1, maxLength: 5 }))
const thing = fc.oneof(
  fc.record({ kind: fc.constant('directory' as const), at: place }),
  fc.record({ kind: fc.constant('file' as const), at: place }),
  fc.record({
    kind: fc.constant('link' as const),
    at: place,
    to: target.map(([root, to]) => root + to.join('/') || '.'),
  }),
)
type Thing = typeof thing extends fc.Arbitrary<infer T> ? T : never

/** Impossible ones are left out: something is in the way, or a link leads outside. */
async function make(workspace: string, { at, ...each }: Thing): Promise<void> {
  const parent = await realpath(join(workspace, dirname(at))).catch(() => undefined)
  if (parent === undefined || !`${parent}/`.startsWith(`${await realpath(workspace)}/`)) return
  const path = join(parent, basename(at))
  try {
    if (each.kind === 'directory') await mkdir(path)
    else if (each.kind === 'file') await writeFile(path, `I am ${at}`, { flag: 'wx' })
    else await symlink(each.to, path)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code !== 'EEXIST' && code !== 'ENOTDIR') throw error
  }
}

const asked = fc
  .tuple(fc.array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 5 }), fc.constantFrom('', '/'))
  .map(([names, slash]) => names.join('/') + slash)

/** A supervisor of each kind on the same workspace. */
async function bothOn(folder: string): Promise<{ sandboxes: ConnectedSandbox[]; close(): Promise<void> }> {
  const made = await Promise.all(
    [buildSbxd, buildWalkingSbxd].map(async (build, place) => {
      const program = join(folder, `program-${place}`)
      await mkdir(program)
      const fixture = await localProcessFixture(buildSbxd)
      const backend = createLocalProcessBackend({ sbxd: await build(program), directory: folder })
      const spec = (): ReturnType<BackendFixture['spec']> => fixture.spec({ volume: 'workspace' })
      const { sandbox } = await Bench.start({ ...fixture, backend, spec })
      return { sandbox, backend, fixture }
    }),
  )
  return {
    sandboxes: made.map(({ sandbox }) => sandbox),
    async close() {
      for (const { backend, fixture } of made) {
        await backend.inventory.close()
        await fixture.dispose()
      }
    },
  }
}

/** The sandbox's answer for a path, errors as their codes. */
async function everythingAbout({ files }: ConnectedSandbox, path: string): Promise<unknown[]> {
  const code = (error: unknown): unknown =>
    error instanceof Error && 'code' in error ? error.code : String(error)
  return Promise.all([
    files.stat(path).catch(code),
    files.list(path).catch(code),
    files.read(path).then((data) => Buffer.from(data).toString(), code),
  ])
}

test('whatever links lead where, walking says what openat2 says', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-walk-'))
  const workspace = join(folder, 'workspace')
  const both = await bothOn(folder)
  try {
    await fc.assert(
      fc.asyncProperty(
        fc.array(thing, { minLength: 1, maxLength: 12 }),
        fc.array(asked, { minLength: 4, maxLength: 12 }),
        async (things, paths) => {
          const top = things.map(({ at }) => at.split('/')[0] ?? '')
          for (const name of new Set([...top, ...NAMES]))
            await rm(join(workspace, name), { recursive: true, force: true })
          for (const each of things) await make(workspace, each)
          const [plain, walking] = both.sandboxes
          if (!plain || !walking) throw new Error('two were made')
          for (const path of paths)
            expect(await everythingAbout(walking, path), path).toEqual(await everythingAbout(plain, path))
        },
      ),
      { numRuns: extent(60, 2_000) },
    )
  } finally {
    await both.close()
    await rm(folder, { recursive: true, force: true })
  }
}, 600_000)
