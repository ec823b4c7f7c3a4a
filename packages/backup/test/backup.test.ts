/** Backups of a Sandlot on a real disk, and what a restore finds. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { createLocalProcessBackend } from '@sandlot/sandbox/backends/local-process'
import { SandboxError } from '@sandlot/sandbox/errors'
import { BACKUP_STATUS_FILE, backupStatus } from '@sandlot/shared/admin/backup-status'
import { poolName, slotLabels } from '../../sandbox/src/names.ts'
import { tarOf } from '../src/tar-process.ts'
import { openSqliteWriter } from '../../storage/src/database/sqlite-file.ts'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { randomFrom, sample } from '../../../test/campaign.ts'
import { makeBackup, type MadeBackup, type OpenWorkspaces, removeOld } from '../src/backup.ts'
import { BackupError } from '../src/backup-error.ts'
import { restoreBackup } from '../src/restore.ts'
import { recorded } from '../src/schedule.ts'
import { DEPLOYMENT, makeDeployment, sessionIn } from './support/deployment.ts'
import { testFolder } from '../../../test/folders.ts'

const PASSPHRASE = 'correct horse battery staple'

let folder: string
let data: string
let to: string
beforeEach(async () => {
  folder = testFolder('backup')
  data = join(folder, 'data')
  to = join(folder, 'backups')
  await makeDeployment(data)
})

type Workspaces = { workspaces?: OpenWorkspaces }
const backup = (
  options: { to?: string; keys?: string; settings?: string[] } & Workspaces = {},
): Promise<MadeBackup> =>
  makeBackup({
    data,
    to,
    passphrase: PASSPHRASE,
    settings: [],
    workspaces: undefined,
    version: '0.1.0',
    doing: () => undefined,
    ...options,
  })

const restore = (file: string, options: { data?: string; passphrase?: string } & Workspaces = {}) =>
  restoreBackup({
    file,
    data: join(folder, 'restored'),
    passphrase: PASSPHRASE,
    workspaces: undefined,
    engineFolder: undefined,
    doing: () => undefined,
    ...options,
  })

/** The parts of a data folder that belong into a backup, with the content of small files. */
function filesIn(root: string): Record<string, string> {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true })
  const files = entries.filter(
    (entry) => entry.isFile() && !entry.parentPath.endsWith('/run') && !/\.db[-.]/.test(entry.name),
  )
  return Object.fromEntries(
    files.map(({ parentPath, name }) => {
      const path = join(parentPath, name)
      return [path.slice(root.length + 1), /\.db/.test(name) ? 'a database' : readFileSync(path, 'utf8')]
    }),
  )
}

const problem = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'it did not fail',
    (error: unknown) => (error instanceof BackupError ? error.code : error),
  )

test('a restore makes the same Sandlot, once', async () => {
  const settings = join(folder, '.env')
  writeFileSync(settings, 'OPENAI_API_KEY=sk-secret\n')
  const before = filesIn(data)
  const { file, bytes } = await backup({ settings: [settings, join(folder, 'absent.json')] })
  expect(statSync(file)).toMatchObject({ size: bytes })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const restored = await restore(file)
  const there = join(folder, 'restored')
  expect(restored).toMatchObject({
    version: '0.1.0',
    workspaces: 0,
    settings: join(there, 'restored-settings'),
  })
  expect(filesIn(there)).toEqual({ ...before, 'restored-settings/.env': 'OPENAI_API_KEY=sk-secret\n' })
  expect(statSync(join(there, 'keys', 'deployment.json')).mode & 0o777).toBe(0o600)
  expect(await sessionIn(there)).toMatchObject({ userId: 'u' })
  expect(await problem(restore(file))).toBe('not_empty')
})

test('keys of another folder, or behind a link, are in it too, and come back where they are by default', async () => {
  const before = filesIn(data)
  const keys = join(folder, 'keys of [all], once')
  renameSync(join(data, 'keys'), keys)
  const link = join(data, 'keys')
  symlinkSync(keys, link)
  const made = [await backup({ keys }), await backup({ keys: link, to: join(folder, 'others') })]
  rmSync(keys, { recursive: true })
  for (const [number, { file }] of made.entries()) {
    const restored = join(folder, `restored-${number}`)
    await restore(file, { data: restored })
    expect(filesIn(restored)).toEqual(before)
  }
})

test('nothing in the file tells a key or a setting, and tar can list it', async () => {
  const settings = join(folder, '.env')
  writeFileSync(settings, 'OPENAI_API_KEY=sk-secret\n')
  const { file } = await backup({ settings: [settings] })
  const bytes = readFileSync(file)
  for (const secret of ['a secret key', 'sk-secret', PASSPHRASE]) expect(bytes.includes(secret)).toBe(false)
  const listed = execFileSync('tar', ['-tf', file], { encoding: 'utf8' }).trim().split('\n')
  expect(listed).toEqual([
    'sessions.db.zst',
    'accounts.db.zst',
    'data.tar.zst.sealed',
    'settings.tar.zst.sealed',
    'manifest.json',
  ])
})

test('of compose, where the service has a folder of its own, both are in one, and the folder stays whose it is', async () => {
  mkdirSync(join(data, 'service', 'keys'), { recursive: true })
  chmodSync(join(data, 'service'), 0o700)
  for (const name of readdirSync(data).filter((each) => each.startsWith('accounts.db')))
    renameSync(join(data, name), join(data, 'service', name))
  writeFileSync(join(data, 'service', 'keys', 'push'), 'of the service')
  const { file } = await backup()
  const there = join(folder, 'restored')
  mkdirSync(there, { mode: 0o750 })
  await restore(file)
  expect(Object.keys(filesIn(there)).toSorted()).toEqual([
    'accounts.db',
    'keys/deployment.json',
    'keys/push',
    'sandlot.json',
    'sessions.db',
  ])
  expect(statSync(there).mode & 0o777).toBe(0o750)
})

describe('a backup that cannot be restored', () => {
  afterEach(() => {
    // Whatever was wrong with it, nothing was written but the lock.
    expect(filesIn(join(folder, 'restored'))).toEqual({})
  })
  beforeEach(() => mkdirSync(join(folder, 'restored')))

  test('that was cut, wherever', async () => {
    const { file, bytes } = await backup()
    const places = [0, 1, 511, 512, 1_024, bytes - 1_025, bytes - 1_024, bytes - 512, bytes - 1]
    const random = randomFrom('cut')
    const drawn = Array.from({ length: 40 }, () => Math.floor(random() * bytes))
    for (const at of [...places, ...sample('cut', drawn, 8)]) {
      const cut = join(folder, 'cut.tar')
      copyFileSync(file, cut)
      truncateSync(cut, at)
      expect(await problem(restore(cut)), `cut at ${at} of ${bytes}`).toBe(at < 1_024 ? 'no_backup' : 'cut')
    }
  })

  test('that has another byte in a part', async () => {
    const { file } = await backup()
    const bytes = readFileSync(file)
    const at = 512 + 100
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at)
    writeFileSync(file, bytes)
    expect(await problem(restore(file))).toBe('damaged')
  })

  test('with another passphrase, or by no backup', async () => {
    const { file } = await backup()
    expect(await problem(restore(file, { passphrase: 'another one' }))).toBe('wrong_passphrase')
    expect(await problem(restore(join(data, 'sessions.db')))).toBe('no_backup')
    expect(await problem(restore(join(folder, 'missing.tar')))).toBe('no_backup')
  })

  test('of a newer version', async () => {
    const database = openSqliteWriter(join(data, 'sessions.db'))
    database.exec("insert into kysely_migration values ('999_later', '2030')")
    database.close()
    const { file } = await backup()
    const error = await restore(file).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'newer', message: expect.stringContaining('999_later') as string })
  })
})

describe('on a full disk', () => {
  let disk: string
  beforeEach(() => {
    disk = join(folder, 'disk')
    mkdirSync(disk)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'sandlot-test', disk])
  })
  afterEach(() => void execFileSync('umount', [disk]))

  /** Incompressible bytes. */
  const noise = (bytes: number): Buffer => {
    const random = randomFrom('noise')
    return Buffer.from(Array.from({ length: bytes }, () => Math.floor(random() * 256)))
  }

  test('no backup is made, and nothing of it stays', async () => {
    writeFileSync(join(data, 'sandlot.json'), noise(4 * 1024 ** 2))
    expect(await problem(backup({ to: disk }))).toBe('no_space')
    expect(readdirSync(disk)).toEqual([])
  })

  test('nothing is restored, and the same restore succeeds where there is room', async () => {
    // Larger than the first write of tar, so that the disk becomes full in between.
    writeFileSync(join(data, 'sandlot.json'), noise(2 * 1024 ** 2))
    const { file } = await backup()
    writeFileSync(join(disk, 'other'), Buffer.alloc(2 * 1024 ** 2))
    expect(await problem(restore(file, { data: join(disk, 'data') }))).toBe('no_space')
    expect(filesIn(join(disk, 'data'))).toEqual({})
    rmSync(join(disk, 'other'))
    await restore(file, { data: join(disk, 'data') })
  })
})

test('what a killed restore left is begun anew, and its files are gone', async () => {
  const { file } = await backup()
  const there = join(folder, 'restored')
  mkdirSync(there)
  writeFileSync(join(there, 'restoring'), JSON.stringify({ deployment: DEPLOYMENT, volumes: [] }))
  writeFileSync(join(there, 'sessions.db'), 'half of it')
  writeFileSync(join(there, 'left'), 'of the first try')
  await restore(file)
  expect(filesIn(there)).toEqual(filesIn(data))
})

test('what a killed backup left is removed by the next one, and nothing of others', async () => {
  mkdirSync(join(to, `.making-${DEPLOYMENT}-abc`), { recursive: true })
  writeFileSync(join(to, `sandlot-${DEPLOYMENT}-20260101T000000Z.tar.partial`), '')
  writeFileSync(join(to, 'sandlot-other-20260101T000000Z.tar.partial'), '')
  const { file } = await backup()
  expect(readdirSync(to).toSorted()).toEqual(
    [file.slice(to.length + 1), 'sandlot-other-20260101T000000Z.tar.partial'].toSorted(),
  )
})

test('of those made by themselves the newest are kept, and nobody else’s file is touched', () => {
  mkdirSync(to)
  const mine = ['20260101', '20260102', '20260103'].map((day) => `sandlot-${DEPLOYMENT}-${day}T000000Z.tar`)
  const incomplete = mine.map((name) => name.replace('20260', '20270').replace('.tar', '-incomplete.tar'))
  for (const name of [...mine, ...incomplete, 'sandlot-other-20250101T000000Z.tar', 'notes.tar'])
    writeFileSync(join(to, name), '')
  expect(removeOld(to, DEPLOYMENT, 2)).toEqual([incomplete[0], mine[0]])
  expect(readdirSync(to)).toHaveLength(6)
})

test('where there is no Sandlot nothing is made', async () => {
  rmSync(data, { recursive: true })
  expect(await problem(backup())).toBe('no_deployment')
  expect(readdirSync(folder)).toEqual([])
})

test('a workspace whose copy breaks is copied again, and of the longer first attempt nothing stays', async () => {
  const slot = 'abcdefgh'
  const name = poolName(DEPLOYMENT, slot)
  const volumes = join(folder, 'volumes')
  const { inventory } = createLocalProcessBackend({ sbxd: 'none', directory: volumes })
  const labels = slotLabels(DEPLOYMENT, { slot, uid: 30_000, volume: name })
  mkdirSync(join(folder, 'home'))
  writeFileSync(join(folder, 'home', 'file'), 'kept')
  await inventory.copies.write({ name, labels }, tarOf(['-C', join(folder, 'home'), '.']))
  let attempts = 0
  async function* read(volume: string): AsyncGenerator<Buffer> {
    attempts += 1
    if (attempts === 1) {
      yield randomBytes(1_000_000)
      throw new SandboxError('engine_unavailable', 'The stream ended.', { unreachable: true })
    }
    yield* inventory.copies.read(volume)
  }
  const workspaces = async () => ({ ...inventory, copies: { ...inventory.copies, read } })
  const made = await backup({ workspaces })
  expect(made.workspaces).toBe(1)
  expect(made.bytes).toBeLessThan(1_000_000)
  await inventory.volumes.remove(name)
  await restore(made.file, { workspaces })
  expect(readFileSync(join(volumes, name, 'file'), 'utf8')).toBe('kept')
  await inventory.close()
})

test('a workspace that cannot be read is left out and named, and everything else is restored', async () => {
  const { inventory } = createLocalProcessBackend({ sbxd: 'none', directory: join(folder, 'volumes') })
  const names = ['aaaaaaaa', 'bbbbbbbb'].map((slot) => poolName(DEPLOYMENT, slot))
  mkdirSync(join(folder, 'home'))
  for (const [place, name] of names.entries()) {
    const labels = slotLabels(DEPLOYMENT, { slot: name.slice(-8), uid: 30_000 + place, volume: name })
    await inventory.copies.write({ name, labels }, tarOf(['-C', join(folder, 'home'), '.']))
  }
  const [lost = '', whole = ''] = names
  async function* read(volume: string): AsyncGenerator<Buffer> {
    if (volume === lost) {
      yield randomBytes(1_000_000)
      throw new SandboxError('workspace_unreachable', 'The node is lost.')
    }
    yield* inventory.copies.read(volume)
  }
  const workspaces = async () => ({ ...inventory, copies: { ...inventory.copies, read } })
  const silent = () =>
    Promise.reject(new SandboxError('engine_unavailable', 'No answer.', { unreachable: true }))
  const dead = async () => {
    let lists = 0
    const list = () => (lists++ === 0 ? inventory.volumes.list() : silent())
    const broken = async function* (): AsyncGenerator<Buffer> {
      yield await silent()
    }
    return {
      ...inventory,
      volumes: { ...inventory.volumes, list },
      copies: { ...inventory.copies, read: broken },
      close: async () => undefined,
    }
  }
  await expect(backup({ workspaces: dead })).rejects.toThrow('No answer.')
  const record = {
    data,
    by: 'operator',
    deployment: DEPLOYMENT,
    settings: { folder: to, keep: 1, everyMs: null, inContainer: false },
  } as const
  const made = await recorded(record, () => backup({ workspaces }))
  expect(made).toMatchObject({ workspaces: 1, leftOut: [{ name: lost, message: 'The node is lost.' }] })
  const status = backupStatus.parse(JSON.parse(readFileSync(join(data, BACKUP_STATUS_FILE), 'utf8')))
  expect(status.last?.file).toBe(made.file)
  expect(made.file).toMatch(/Z-incomplete\.tar$/)
  expect(status.failed?.message).toContain(`everything but 1 workspaces: ${lost} (The node is lost.)`)
  for (const name of names) await inventory.volumes.remove(name)
  const restored = await restore(made.file, { data: join(folder, 'restored'), workspaces })
  expect(restored).toMatchObject({ workspaces: 1, leftOut: [lost] })
  expect((await inventory.volumes.list()).map(({ name }) => name)).toEqual([whole])
  await inventory.close()
})
