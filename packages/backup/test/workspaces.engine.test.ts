/** Workspaces of a real engine, into a backup and back, while something writes in one of them. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { SANDBOX_IMAGE } from '@sandlot/sandbox/controller/images'
import { randomText } from '@sandlot/shared/base/ids'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { poolName, slotLabels } from '../../sandbox/src/names.ts'
import { makeBackup } from '../src/backup.ts'
import { restoreBackup } from '../src/restore.ts'
import { makeDeployment } from './support/deployment.ts'

const run = promisify(execFile)
const docker = async (...args: string[]): Promise<string> => (await run('docker', args)).stdout.trim()

let folder: string
// A name by which `./sandlot test` knows what an interrupted run left, and removes it.
let deployment: string
let volume: string
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-workspaces-'))
  deployment = `test-${randomText(8)}`
  const [slot, uid] = ['abcdefgh', 30_123]
  volume = poolName(deployment, slot)
  const labels = slotLabels(deployment, { slot, uid, volume })
  const flags = Object.entries(labels).flatMap(([name, value]) => ['--label', `${name}=${value}`])
  await docker('volume', 'create', ...flags, volume)
  await makeDeployment(join(folder, 'data'), deployment)
})
afterEach(async () => {
  const filter = `label=sandlot.deployment=${deployment}`
  const containers = (await docker('ps', '-aq', '--filter', filter)).split('\n').filter(Boolean)
  if (containers.length > 0) await docker('rm', '-f', ...containers)
  await docker('volume', 'rm', '-f', volume)
  rmSync(folder, { recursive: true, force: true })
})

/** Output of a shell in the volume. */
const inVolume = (script: string, ...flags: string[]): Promise<string> =>
  docker(
    'run', '--rm', '--network', 'none', '-u', '0', '--entrypoint', 'sh', '--label', `sandlot.deployment=${deployment}`,
    ...flags, '-v', `${volume}:/w`, '-w', '/w', SANDBOX_IMAGE, '-c', script,
  ) // prettier-ignore

const common = () => ({
  passphrase: 'correct horse battery',
  workspaces: async (id: string) =>
    createDockerBackend({ deployment: id, copyImage: SANDBOX_IMAGE }).inventory,
  doing: () => undefined,
})
const backup = () =>
  makeBackup({
    ...common(),
    data: join(folder, 'data'),
    to: join(folder, 'backups'),
    settings: [],
    version: '0.1.0',
  })
const restore = (file: string, data: string) =>
  restoreBackup({ ...common(), file, data: join(folder, data), engineFolder: undefined })

test('files of a workspace in use come back as they were, with owners, modes and links', async () => {
  const make = [
    'umask 027; mkdir -p a/b; echo hello > a/b/file; ln -s b/file a/link; ln a/b/file a/hard',
    'head -c 3000000 /dev/urandom > large; chown -R 30123:30123 .; chmod 4750 a/b; touch -d 2020-01-02 a/b/file',
  ]
  await inVolume(make.join('; '))
  const look =
    "find . ! -name growing -printf '%p %M %U:%G %s %T@ %l\\n' | sort; sha256sum large; stat -c %h a/hard"
  const before = await inVolume(look)
  await inVolume('while :; do echo more >> growing; done', '-d')

  const made = await backup()
  expect(made.workspaces).toBe(1)
  expect(await docker('ps', '-aq', '--filter', 'label=sandlot.role=backup')).toBe('')
  // While the volume is there, nothing is put over it.
  await expect(restore(made.file, 'early')).rejects.toMatchObject({ code: 'not_empty' })
  await docker(
    'rm',
    '-f',
    ...(await docker('ps', '-q', '--filter', `label=sandlot.deployment=${deployment}`)).split('\n'),
  )
  await docker('volume', 'rm', volume)

  expect(await restore(made.file, 'restored')).toMatchObject({ workspaces: 1 })
  // The folder itself has been changed by the file that grows.
  const rows = (text: string): string[] => text.split('\n').filter((row) => !row.startsWith('. '))
  expect(rows(await inVolume(look))).toEqual(rows(before))
  const labels: unknown = JSON.parse(await docker('volume', 'inspect', '-f', '{{json .Labels}}', volume))
  expect(labels).toEqual(slotLabels(deployment, { slot: 'abcdefgh', uid: 30_123, volume }))
})

test('a volume that cannot be filled is taken back, with all that was written', async () => {
  const { file } = await backup()
  await docker('volume', 'rm', volume)
  const failing = {
    ...common(),
    workspaces: async (id: string) =>
      createDockerBackend({ deployment: id, copyImage: 'sandlot/no-such-image' }).inventory,
  }
  const data = join(folder, 'restored')
  await expect(restoreBackup({ ...failing, file, data, engineFolder: undefined })).rejects.toThrow(/image/)
  expect(await docker('volume', 'ls', '-q', '--filter', `name=${volume}`)).toBe('')
  expect(execFileSync('ls', [data], { encoding: 'utf8' })).toBe('run\n')
})
