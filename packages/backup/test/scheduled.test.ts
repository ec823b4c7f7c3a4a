/** Backups that are made by themselves, by the program as `up` starts it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { lockFile } from '@sandlot/storage/database/lock'
import { backupStatus, nextBackup } from '@sandlot/shared/admin/backup-status'
import { beforeEach, expect, test } from 'vitest'
import { LOCAL_PROCESS, nodeEnvironment } from '../../../test/config.ts'
import { BackupError } from '../src/backup-error.ts'
import { recorded } from '../src/schedule.ts'
import { DEPLOYMENT, makeDeployment } from './support/deployment.ts'
import { testFolder } from '../../../test/folders.ts'

let data: string
beforeEach(async () => {
  data = testFolder('scheduled')
  await makeDeployment(data)
})

function start(act: string, settings: Record<string, string>) {
  const program = new URL('../src/main.ts', import.meta.url).pathname
  const child = spawn(process.execPath, ['--conditions=sandlot-source', program, act], {
    env: {
      ...nodeEnvironment(),
      PATH: '/usr/bin:/bin',
      SANDLOT_DATA: data,
      ...LOCAL_PROCESS,
      SANDLOT_BACKUP_EVERY_HOURS: '24',
      SANDLOT_BACKUP_KEEP: '2',
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  const line = once(createInterface({ input: child.stdout }), 'line').then(
    ([text]) => JSON.parse(text as string) as Record<string, unknown>,
  )
  return { child, line, ended }
}

/** Its first line of log, after which it is ended. */
async function firstLine(settings: Record<string, string>): Promise<Record<string, unknown>> {
  const { child, line, ended } = start('scheduled', settings)
  await line
  child.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
  return line
}

/** Two that were made before. Returns their names. */
function earlier(folder: string): string[] {
  mkdirSync(folder)
  const old = ['20200101', '20200102'].map((day) => `sandlot-${DEPLOYMENT}-${day}T000000Z.tar`)
  for (const name of old) writeFileSync(join(folder, name), '')
  return old
}

const status = () => backupStatus.parse(JSON.parse(readFileSync(join(data, 'backup-status.json'), 'utf8')))

test('one is made at once where none was ever made, and the newest are kept', async () => {
  const folder = join(data, 'backups')
  const old = earlier(folder)
  const line = await firstLine({ SANDLOT_BACKUP_PASSPHRASE: 'correct horse battery' })
  expect(line).toMatchObject({ level: 30, removed: old.slice(0, 1), workspaces: 0 })
  expect(readdirSync(folder)).toEqual([old[1], String(line['file']).slice(folder.length + 1)])
  expect(status()).toMatchObject({ last: { file: line['file'] } })
  expect(status().failed).toBeUndefined()
  const { tries, settings, files } = status()
  expect(tries).toMatchObject([{ did: 'backup', by: 'schedule', file: line['file'] }])
  expect(settings).toEqual({ folder, keep: 2, everyMs: 24 * 3_600_000, inContainer: false })
  expect(files).toMatchObject([
    { file: line['file'] },
    { file: join(folder, old[1] ?? ''), at: '2020-01-02T00:00:00Z', bytes: 0 },
  ])
  // With compose the service reads it, as another user of the same group.
  expect(statSync(join(data, 'backup-status.json')).mode & 0o777).toBe(0o640)
})

test('for a schedule of others one is made, the newest are kept, and the exit code says if it was', async () => {
  const folder = join(data, 'backups')
  const old = earlier(folder)
  const made = start('once', { SANDLOT_BACKUP_PASSPHRASE: 'correct horse battery' })
  const { file } = await made.line
  expect(await made.ended).toEqual([0, null])
  expect(readdirSync(folder)).toEqual([old[1], String(file).slice(folder.length + 1)])
  const failed = start('once', {})
  expect(await failed.line).toMatchObject({ did: 'nothing', code: 'no_passphrase' })
  expect(await failed.ended).toEqual([3, null])
})

test('one that is refused or stopped leaves the record as it was', async () => {
  const last = { at: '2020-01-01T00:00:00.000Z', file: '/x', bytes: 1, workspaces: 0 }
  writeFileSync(join(data, 'backup-status.json'), JSON.stringify({ last }))
  const refused = async (settings: Record<string, string>): Promise<unknown> => {
    const { line, ended } = start('backup', settings)
    expect(await ended).toEqual([3, null])
    expect(status()).toEqual({ last })
    return (await line)['code']
  }
  expect(await refused({})).toBe('no_passphrase')
  mkdirSync(join(data, 'run'), { recursive: true })
  const lock = lockFile(join(data, 'run', 'backup.lock'))
  expect(await refused({ SANDLOT_BACKUP_PASSPHRASE: 'correct horse battery' })).toBe('running')
  lock?.release()
  const stopped = new BackupError('stopped', 'Sandlot stopped during the backup.', '')
  const settings = { folder: join(data, 'backups'), keep: 2, everyMs: null, inContainer: false }
  const record = { data, by: 'schedule', settings, deployment: DEPLOYMENT } as const
  await expect(recorded(record, () => Promise.reject(stopped))).rejects.toBe(stopped)
  expect(status()).toEqual({ last })
})

test('one of the schedule that is refused, because another runs, is recorded and retried an hour later', async () => {
  mkdirSync(join(data, 'run'), { recursive: true })
  const lock = lockFile(join(data, 'run', 'backup.lock'))
  const message = 'Another backup is in progress.'
  const settings = { SANDLOT_BACKUP_PASSPHRASE: 'correct horse battery' }
  expect(await firstLine(settings)).toMatchObject({ level: 50, msg: `Backup failed: ${message}` })
  lock?.release()
  const { failed, tries } = status()
  expect(failed).toMatchObject({ message })
  expect(tries).toMatchObject([{ did: 'fail', by: 'schedule', message }])
  const failedAt = Date.parse(failed?.at ?? '')
  expect(nextBackup(status(), 24 * 3_600_000, failedAt)).toBe(failedAt + 3_600_000)
})

test('without a passphrase none is made, and the record says so', async () => {
  writeFileSync(
    join(data, 'backup-status.json'),
    JSON.stringify({ last: { at: '2020-01-01T00:00:00.000Z', file: '/x', bytes: 1, workspaces: 0 } }),
  )
  expect(await firstLine({})).toMatchObject({
    level: 50,
    msg: expect.stringContaining('No passphrase') as string,
  })
  expect(status()).toMatchObject({
    last: { file: '/x' },
    failed: { message: expect.stringContaining('passphrase') as string },
  })
})
