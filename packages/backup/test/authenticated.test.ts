/** A backup that was changed is not restored: of a manifest every byte, of a part its hash, and no older format instead. */
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { extent, randomFrom, sample } from '../../../test/campaign.ts'
import { poolName, slotLabels } from '../../sandbox/src/names.ts'
import { openSqliteWriter } from '../../storage/src/database/sqlite-file.ts'
import { type Entry, readEntries, readEntry, writeArchive } from '../src/archive.ts'
import { makeBackup } from '../src/backup.ts'
import { BackupError } from '../src/backup-error.ts'
import { checkArchive, isSigned, MANIFEST, type Manifest, manifestText } from '../src/manifest.ts'
import { restoreBackup } from '../src/restore.ts'
import { type BackupKeys, openSealing } from '../src/sealing.ts'
import { makeDeployment, sessionIn } from './support/deployment.ts'

const PASSPHRASE = 'correct horse battery staple'
/** Made with `makeDeployment` and this passphrase by the version before, which signed nothing. */
const EARLIER = join(import.meta.dirname, 'fixtures', 'of-0.1.0-format-1.tar')

let folder: string
let original: string
let other: string
let keys: BackupKeys
let here: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-authenticated-'))
  original = await backup('one')
  other = await backup('other')
  keys = await openSealing(PASSPHRASE, (await manifestIn(original)).sealing, true)
}, 60_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))
beforeEach(() => {
  here = mkdtempSync(join(folder, 'case-'))
})

async function backup(name: string): Promise<string> {
  const data = join(folder, name, 'data')
  await makeDeployment(data)
  const about = { settings: [], workspaces: undefined, version: '0.1.0', doing: () => undefined }
  return (await makeBackup({ ...about, data, to: join(folder, name), passphrase: PASSPHRASE })).file
}

const textIn = async (file: string, name = MANIFEST): Promise<Buffer> => {
  const entry = (await readEntries(file)).get(name) as Entry
  return buffer(Readable.from(readEntry(file, entry)))
}
const manifestIn = async (file: string): Promise<Manifest> =>
  JSON.parse((await textIn(file)).toString()) as Manifest

/** The same archive with these entries in place of its own, or beside them. */
async function rewritten(file: string, entries: Record<string, Buffer>): Promise<string> {
  const path = join(here, 'rewritten.tar')
  rmSync(path, { force: true })
  const archive = await writeArchive(`${path}.partial`)
  const own = await readEntries(file)
  for (const [name, bytes] of Object.entries(entries))
    if (!own.has(name)) await archive.add(name, Readable.from([bytes]))
  for (const [name, entry] of own)
    await archive.add(name, entries[name] ? Readable.from([entries[name]]) : readEntry(file, entry))
  await archive.seal()
  await archive.publish(path)
  return path
}
const withManifest = (file: string, manifest: object): Promise<string> =>
  rewritten(file, { [MANIFEST]: Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`) })

const problem = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'it did not fail',
    (error: unknown) => (error instanceof BackupError ? error.code : error),
  )
const restore = (file: string, unauthenticated = false) =>
  restoreBackup({
    file,
    data: join(here, 'restored'),
    passphrase: PASSPHRASE,
    unauthenticated,
    workspaces: undefined,
    engineFolder: undefined,
    doing: () => undefined,
  })
const nothingWritten = (): void => expect(readdirSync(here)).not.toContain('restored')
/** Derives keys again only for an unsigned format, as a restore does: that takes long. */
const check = (file: string): Promise<unknown> =>
  problem(
    checkArchive(file, async (manifest) =>
      isSigned(manifest) ? keys : openSealing(PASSPHRASE, manifest.sealing, false),
    ),
  )

/** A person made administrator in a backup, with hash and sizes as they are then. */
async function withAdministrator(
  file: string,
): Promise<{ parts: Record<string, Buffer>; manifest: Manifest }> {
  const path = join(here, 'accounts.db')
  writeFileSync(path, zstdDecompressSync(await textIn(file, 'accounts.db.zst')))
  const database = openSqliteWriter(path)
  database.exec(
    `insert into auth_user (id, name, email, emailVerified, createdAt, updatedAt, role)
     values ('u_eve', 'Eve', 'eve@example.org', 1, '2026-01-01', '2026-01-01', 'admin')`,
  )
  database.close()
  const raw = readFileSync(path)
  const bytes = zstdCompressSync(raw)
  const manifest = await manifestIn(file)
  for (const part of manifest.parts)
    if (part.name === 'accounts.db.zst')
      Object.assign(part, {
        bytes: bytes.length,
        rawBytes: raw.length,
        sha256: createHash('sha256').update(bytes).digest('hex'),
      })
  return { parts: { 'accounts.db.zst': bytes }, manifest }
}

test('what is read back is what was made', async () => {
  expect(await check(original)).toBe('it did not fail')
  expect(await restore(original)).toMatchObject({ unproven: undefined })
  expect(await sessionIn(join(here, 'restored'))).toMatchObject({ userId: 'u' })
})

test('any other byte in the manifest is refused', async () => {
  const { at, bytes } = (await readEntries(original)).get(MANIFEST) as Entry
  const changed = join(here, 'changed.tar')
  const random = randomFrom('manifest bytes')
  const places = Array.from({ length: bytes }, (_, place) => place)
  for (const place of sample('manifest bytes', places, 150)) {
    copyFileSync(original, changed)
    const file = readFileSync(changed)
    file.writeUInt8(file.readUInt8(at + place) ^ (1 << Math.floor(random() * 8)), at + place)
    writeFileSync(changed, file)
    expect(await check(changed), `byte ${place}`).toMatch(/^(damaged|newer)$/)
  }
  // A single bit makes 2 or 1 of the format, and then no signature is expected.
  const manifest = await manifestIn(original)
  for (const format of [1, 2])
    expect(await check(await withManifest(original, { ...manifest, format }))).toBe('damaged')
})

test('any other value, member or order in it is refused, and so is the same one written otherwise', async () => {
  const manifest = await manifestIn(original)
  type Json = Record<string, unknown> | unknown[]
  const placesIn = (value: unknown, path: (string | number)[] = []): (string | number)[][] =>
    typeof value !== 'object' || value === null
      ? [path]
      : [path, ...Object.entries(value).flatMap(([key, inner]) => placesIn(inner, [...path, key]))]
  const places = placesIn(manifest).filter((path) => path.length > 0)
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...places),
      fc.oneof(fc.jsonValue(), fc.constant('gone'), fc.constant('more')),
      async (path, value) => {
        const copy = structuredClone(manifest)
        const last = path.at(-1) ?? ''
        const within = path
          .slice(0, -1)
          .reduce<Json>((at, key) => Reflect.get(at, key) as Json, copy as never)
        const before = JSON.stringify(copy)
        if (value === 'gone') Reflect.deleteProperty(within, last)
        else if (value === 'more') Reflect.set(within, `${last}_`, 1)
        else Reflect.set(within, last, value)
        fc.pre(JSON.stringify(copy) !== before)
        expect(await check(await withManifest(original, copy))).toMatch(/^(damaged|newer|no_backup)$/)
      },
    ),
    { numRuns: extent(60, 1_000) },
  )
  const compact = Buffer.from(JSON.stringify(manifest))
  expect(await check(await rewritten(original, { [MANIFEST]: compact }))).toBe('damaged')
})

test('entries of another backup, the whole manifest of another or another passphrase’s are refused', async () => {
  const names = [...(await readEntries(original)).keys()]
  for (const name of names) {
    const swapped = await rewritten(original, { [name]: await textIn(other, name) })
    expect(await problem(restore(swapped)), name).toBe('damaged')
  }
  const wrong = restoreBackup({
    file: original,
    data: join(here, 'restored'),
    passphrase: 'another one',
    workspaces: undefined,
    engineFolder: undefined,
    doing: () => undefined,
  })
  expect(await problem(wrong)).toBe('wrong_passphrase')
  nothingWritten()
}, 60_000)

describe('a person made administrator, with hashes made again', () => {
  test('is refused, also as a backup of an earlier format or without a signature', async () => {
    const { parts, manifest } = await withAdministrator(original)
    const { mac: _, ...unsigned } = manifest
    for (const claimed of [
      manifest,
      unsigned,
      { ...unsigned, format: 1 },
      { ...manifest, format: 2, dialect: 'postgres' },
    ])
      for (const unauthenticated of [false, true]) {
        const file = await rewritten(original, {
          ...parts,
          [MANIFEST]: Buffer.from(`${JSON.stringify(claimed, undefined, 2)}\n`),
        })
        const expected = claimed.format !== 3 && !unauthenticated ? 'unauthenticated' : 'damaged'
        expect(await problem(restore(file, unauthenticated)), JSON.stringify(claimed.format)).toBe(expected)
        nothingWritten()
      }
  }, 60_000)
})

describe('of an earlier version', () => {
  test('is restored only on the word of a person, who reads a warning', async () => {
    const refused = restore(EARLIER)
    await expect(refused).rejects.toMatchObject({
      code: 'unauthenticated',
      message: expect.stringMatching(/roles.*may have been changed/) as string,
      fix: expect.stringContaining('--unauthenticated') as string,
    })
    nothingWritten()
    expect(await restore(EARLIER, true)).toMatchObject({
      unproven: expect.stringMatching(/roles.*may have been changed/) as string,
    })
    expect(await sessionIn(join(here, 'restored'))).toMatchObject({ userId: 'u' })
  })

  test('could have been changed by anybody, which is why it is not restored unasked', async () => {
    const { parts, manifest } = await withAdministrator(EARLIER)
    const text = Buffer.from(JSON.stringify(manifest))
    await restore(await rewritten(EARLIER, { ...parts, [MANIFEST]: text }), true)
    const database = openSqliteWriter(join(here, 'restored', 'accounts.db'))
    expect(database.prepare('select role from auth_user').all()).toEqual([{ role: 'admin' }])
    database.close()
  })

  test('does not become a signed one by its format', async () => {
    const manifest = await manifestIn(EARLIER)
    for (const format of [3, 4]) {
      const file = await withManifest(EARLIER, { ...manifest, format, mac: '0'.repeat(64) })
      expect(await problem(restore(file, true))).toBe(format === 4 ? 'newer' : 'damaged')
    }
    nothingWritten()
  })
})

describe('a workspace', () => {
  const SLOT = 'abcdefgh'
  const own = poolName('test-backup', SLOT)
  const labels = slotLabels('test-backup', { slot: SLOT, uid: 30_001, volume: own })
  const signedWith = async (name: string, volume: { name: string; labels: object }): Promise<string> => {
    const { format: _, mac: __, ...about } = await manifestIn(original)
    const empty = createHash('sha256').digest('hex')
    const part = { name, bytes: 0, rawBytes: 0, sha256: empty, kind: 'workspace', volume }
    const text = manifestText(
      { ...about, parts: [...about.parts, part] } as never,
      keys.manifest ?? expect.fail(),
    )
    return rewritten(original, { [name]: Buffer.alloc(0), [MANIFEST]: Buffer.from(text) })
  }
  const fileOf = (name: string): string => `workspaces/${name}.tar.zst`

  test('has a name of its deployment', async () => {
    expect(await check(await signedWith(fileOf(own), { name: own, labels }))).toBe('it did not fail')
  })

  const foreign = [
    'other',
    '../../etc',
    '/etc',
    poolName('other', SLOT),
    `${own}-0123456789abcdef-1`,
    `${own}/..`,
    own.toUpperCase(),
    '',
  ]
  test.each(foreign)('called "%s" is refused', async (name) => {
    expect(await check(await signedWith(fileOf(name), { name, labels }))).toBe('damaged')
  })

  test.each([
    { 'sandlot.deployment': 'other' },
    { 'sandlot.role': 'backup' },
    { 'sandlot.slot': 'zzzzzzzz' },
    { 'sandlot.volume': 'other' },
  ])('with the labels %o is refused', async (change) => {
    const changed = { ...labels, ...change }
    expect(await check(await signedWith(fileOf(own), { name: own, labels: changed }))).toBe('damaged')
    expect(await check(await signedWith('sessions.db.zst', { name: own, labels }))).toBe('damaged')
  })
})
