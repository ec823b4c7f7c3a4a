import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { installUnit, stopUnit } from '../../src/systemd/install-unit.ts'
import { parseCliConfig } from '../../src/config.ts'
import { createSteps } from '../../src/steps.ts'
import { testFolder } from '../../../../test/folders.ts'

const ROOT = process.getuid?.() === 0
const ANALYSES = spawnSync('systemd-analyze', ['--version'], { stdio: 'ignore' }).status === 0

let folder: string
let places: Parameters<typeof installUnit>[1]
let said: string
beforeEach(() => {
  folder = testFolder('install')
  places = { units: join(folder, 'units'), running: join(folder, 'running') }
  said = ''
  for (const path of ['units', 'running', '.sandlot/keys', 'bin'])
    mkdirSync(join(folder, path), { recursive: true })
  writeFileSync(join(folder, '.sandlot/keys/deployment.json'), '{}')
  program('sandlot', '')
  // Records commands, one per line; the unit is inactive until enabled.
  program(
    'bin/systemctl',
    `echo "$*" >>${folder}/commands; if [ "$1" = is-active ]; then echo inactive; exit 3; fi`,
  )
})

function program(path: string, text: string): void {
  writeFileSync(join(folder, path), `#!/bin/sh\n${text}\n`)
  chmodSync(join(folder, path), 0o755)
}

const unit = (): string => join(places.units, 'sandlot.service')
const commands = (): string[] => readFileSync(join(folder, 'commands'), 'utf8').trim().split('\n')

/** In the place of the service that the unit would start. */
let server: Server
beforeAll(async () => {
  server = createServer((_, response) => response.end('{"ready":true,"reasons":[]}')).listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => server.close())
const port = (): string => String((server.address() as AddressInfo).port)

function context(
  args: string[],
  environment: Record<string, string> = {},
): Parameters<typeof installUnit>[0] {
  const PATH = `${join(folder, 'bin')}:/usr/bin:/bin`
  return {
    config: parseCliConfig({ PATH, PORT: port(), ...environment }, folder),
    args,
    steps: createSteps({ live: false, write: (text) => (said += text) }),
    print: (text) => (said += `${text}\n`),
  }
}
const install = (args: string[] = [], environment: Record<string, string> = {}): Promise<number> =>
  installUnit(context(args, environment), places)

test('--print shows a unit that starts up at boot and ends it as down does, and writes nothing', async () => {
  rmSync(places.running, { recursive: true })
  expect(await install(['--print'], { PORT: '443', SANDLOT_BACKUP_DIR: '/mnt/other' })).toBe(0)
  const lines = said.split('\n')
  for (const line of [
    `ExecStart=${folder}/sandlot up`,
    'After=network-online.target docker.service',
    'KillMode=mixed',
    'TimeoutStopSec=90',
    'Restart=on-failure',
    `ReadWritePaths=${folder} ${folder}/.sandlot -/mnt/other -${homedir()}/.npm`,
    'AmbientCapabilities=CAP_NET_BIND_SERVICE',
  ])
    expect(lines).toContain(line)
  expect(existsSync(unit())).toBe(false)
})

test('a folder of keys elsewhere can be written too', async () => {
  const keys = join(folder, 'keys')
  mkdirSync(keys)
  writeFileSync(join(keys, 'deployment.json'), '{}')
  await install(['--print'], { SANDLOT_KEYS_DIR: keys })
  expect(said).toContain(`ReadWritePaths=${folder} ${folder}/.sandlot ${keys} -${homedir()}/.npm`)
})

test('an engine elsewhere is not waited for here', async () => {
  await install(['--print'], { DOCKER_HOST: 'tcp://engine.example.org:2376' })
  expect(said).not.toContain('docker.service')
})

test.skipIf(!ANALYSES)('systemd itself finds nothing wrong with the unit', async () => {
  await install(['--print'])
  const file = join(folder, 'sandlot.service')
  writeFileSync(file, said)
  const verified = await promisify(execFile)('systemd-analyze', ['verify', '--man=no', file])
  // It also complains of units of this machine that ours only orders itself after.
  expect(verified.stderr.split('\n').filter((line) => line.includes(file))).toEqual([])
})

test.skipIf(!ROOT)('installed twice it is the same; removed, it is gone, once', async () => {
  expect(await install()).toBe(0)
  const text = readFileSync(unit(), 'utf8')
  expect(said).toContain(text)
  expect(commands()).toEqual(['daemon-reload', 'enable --now sandlot.service'])
  expect(await install()).toBe(0)
  expect(said).toContain('The unit is already installed and unchanged.')
  expect(readFileSync(unit(), 'utf8')).toBe(text)
  expect(await install(['--remove'])).toBe(0)
  expect(existsSync(unit())).toBe(false)
  expect(commands().slice(-2)).toEqual(['disable --now sandlot.service', 'daemon-reload'])
  expect(await install(['--remove'])).toBe(0)
  expect(said).toContain('nothing was removed')
})

test.skipIf(!ROOT)('a unit that is somebody else’s is neither written over nor removed', async () => {
  writeFileSync(unit(), '[Service]\nExecStart=/bin/true\n')
  await expect(install()).rejects.toThrow('was not written by this command')
  await expect(install(['--remove'])).rejects.toThrow('was not written by this command')
  writeFileSync(unit(), '# Written by ./sandlot install in /elsewhere\n')
  await expect(install()).rejects.toThrow('belongs to another Sandlot, in /elsewhere')
  expect(existsSync(join(folder, 'commands'))).toBe(false)
})

test.skipIf(!ROOT)(
  'settings that only this shell has are named, because the unit does not get them',
  async () => {
    writeFileSync(join(folder, '.env'), `PORT=${port()}\n`)
    await install([], { OPENAI_MODEL: 'some-model' })
    expect(said).toContain('set in this shell but not in .env: OPENAI_MODEL')
  },
)

test.skipIf(!ROOT)(
  'what a unit of this checkout runs is ended and started by systemd, where that may be',
  async () => {
    const stop = () => stopUnit(context([]), places)
    expect(await stop()).toBeUndefined()
    await install()
    expect(await stop()).toBeUndefined()
    program('bin/systemctl', `echo "$*" >>${folder}/commands; if [ "$1" = is-active ]; then echo active; fi`)
    const start = await stop()
    expect(commands().at(-1)).toBe('stop sandlot.service')
    await start?.()
    expect(commands().at(-1)).toBe('start sandlot.service')

    chownSync(join(folder, '.sandlot'), 65_534, 65_534)
    await expect(stop()).rejects.toMatchObject({
      message: expect.stringContaining('Nothing was done'),
      fix: 'As root: systemctl stop sandlot. As nobody: this command again. As root: systemctl start sandlot.',
    })
    expect(commands().at(-1)).toBe('is-active sandlot.service')
    writeFileSync(unit(), '# Written by ./sandlot install in /elsewhere\n')
    expect(await stop()).toBeUndefined()
  },
)

test('where systemd does not run, or nothing was ever started, it says so', async () => {
  rmSync(places.running, { recursive: true })
  await expect(install()).rejects.toThrow('does not use systemd')
  rmSync(join(folder, '.sandlot'), { recursive: true })
  await expect(install(['--print'])).rejects.toThrow('No Sandlot found in')
  expect(await install(['--yes'])).toBe(2)
})
