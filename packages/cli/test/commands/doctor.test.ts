/** `./sandlot doctor` as people and scripts meet it, on a machine without sandboxes. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Environment } from '@sandlot/shared/config'
import { beforeEach, expect, test } from 'vitest'
import { LOCAL_PROCESS, nodeEnvironment } from '../../../../test/config.ts'
import { doctor } from '../../src/commands/doctor.ts'
import { parseCliConfig } from '../../src/config.ts'
import { createSteps } from '../../src/steps.ts'
import { testFolder } from '../../../../test/folders.ts'

interface Printed {
  ok: boolean
  checks: { number: number; id: string; group: string; state: string; message: string; fix?: string }[]
}

let folder: string
let port: number
beforeEach(async () => {
  folder = testFolder('doctor')
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  port = typeof address === 'object' && address !== null ? address.port : 0
  server.close()
  await once(server, 'close')
})

async function run(args: string[], settings: Environment = {}): Promise<{ code: number; lines: string[] }> {
  const lines: string[] = []
  const environment = { ...nodeEnvironment(), PORT: String(port), ...LOCAL_PROCESS }
  const code = await doctor({
    config: parseCliConfig({ ...environment, ...settings }, folder),
    args,
    steps: createSteps({ live: false, write: () => undefined }),
    print: (text) => lines.push(...text.split('\n')),
  })
  return { code, lines }
}

/** A key without a model is a mistake; without either the demo model answers. */
const MISTAKE = { OPENAI_API_KEY: 'key' }

test('the last line counts what failed, and the exit code is 0 where all holds that must', async () => {
  const { code, lines } = await run([])
  const marked = (mark: string): number =>
    lines.filter((line) => /^ *\d+\. (.)/.exec(line)?.[1] === mark).length
  // A full disk or a port that somebody has just taken are failures too.
  const failed = marked('✗')
  expect(code).toBe(failed === 0 ? 0 : 1)
  expect(lines).toContainEqual(expect.stringMatching(/^ *\d+\. ! Isolation: /))
  expect(lines.at(-1)).toMatch(
    failed === 0
      ? `All required checks passed; ${marked('!')} recommended`
      : `failed, of ${marked('✓') + marked('!') + marked('?') + failed} checks`,
  )
})

test.each<[string, Environment]>([
  ['as it is', {}],
  ['with a mistake', MISTAKE],
])(
  '%s: checks are numbered from 1 without a gap, and each failure is followed by what mends it',
  async (_what, settings) => {
    const { lines } = await run([], settings)
    const checks = lines.filter((line) => /^ *\d+\. /.test(line))
    expect(checks.map((line) => Number.parseInt(line, 10))).toEqual(checks.map((_, place) => place + 1))
    const failed = checks.filter((line) => /^ *\d+\. [✗!]/.test(line))
    expect(failed.length).toBeGreaterThan(0)
    const fixes = lines.flatMap((line, place) => (/^ +→ \S/.test(line) ? [lines[place - 1]] : []))
    expect(fixes).toEqual(failed)
  },
)

test('what must hold and does not ends with exit code 1, for scripts too', async () => {
  expect((await run([], MISTAKE)).code).toBe(1)
  const { code, lines } = await run(['--json'], MISTAKE)
  const { ok, checks } = JSON.parse(lines.join('\n')) as Printed
  expect({ code, ok }).toEqual({ code: 1, ok: false })
  expect(checks.find(({ id }) => id === 'model')).toMatchObject({ group: 'must', state: 'failed' })
})

test('for scripts everything has its number and its id, and what failed what mends it', async () => {
  const { code, lines } = await run(['--json'])
  const { ok, checks } = JSON.parse(lines.join('\n')) as Printed
  const holds = !checks.some(({ group, state }) => group === 'must' && state === 'failed')
  expect({ code, ok }).toEqual({ code: holds ? 0 : 1, ok: holds })
  expect(checks.find(({ id }) => id === 'node')).toMatchObject({ group: 'must', state: 'ok' })
  expect(checks.map(({ number }) => number)).toEqual(checks.map((_, place) => place + 1))
  expect(new Set(checks.map(({ id }) => id)).size).toBe(checks.length)
  const order = ['must', 'warn', 'report']
  const groups = checks.map(({ group }) => order.indexOf(group))
  expect(groups).toEqual(groups.toSorted((one, other) => one - other))
  for (const { state, fix } of checks) expect(fix !== undefined).toBe(state === 'failed')
})

test('certificates that are not there are a finding, and none where no engine is needed', async () => {
  const wrong = { DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: join(folder, 'missing') }
  const settings = async (backend: string): Promise<unknown> => {
    const { lines } = await run(['--json'], { ...wrong, ...LOCAL_PROCESS, SANDLOT_SANDBOX: backend })
    return (JSON.parse(lines.join('\n')) as Printed).checks.find(({ id }) => id === 'settings')
  }
  expect(await settings('docker')).toMatchObject({
    group: 'must',
    state: 'failed',
    message: expect.stringContaining('DOCKER_CERT_PATH: there is no folder') as string,
  })
  expect(await settings('local-process')).toBeUndefined()
})

test('an argument that it does not know is answered with its usage and exit code 2', async () => {
  const { code, lines } = await run(['--jason'])
  expect(code).toBe(2)
  expect(lines).toEqual(['Unknown argument "--jason". Usage: ./sandlot doctor [--json]'])
})

test('it tells when the last backup was made, and warns where there is none, one failed, or its file is gone', async () => {
  const data = join(folder, 'data')
  const finding = async (): Promise<string | undefined> => {
    const { lines } = await run([], { SANDLOT_DATA: data })
    return lines.find((line) => line.includes('Last backup'))?.replace(/^ *\d+\. /, '')
  }
  const record = (status: unknown): void =>
    writeFileSync(join(data, 'backup-status.json'), JSON.stringify(status))
  // Sandlot was never started: there is nothing to back up.
  expect(await finding()).toBeUndefined()
  mkdirSync(data)
  writeFileSync(join(data, 'sessions.db'), '')
  expect(await finding()).toBe('! Last backup: none was ever made')
  const last = { at: '2026-11-27T06:00:00.000Z', file: join(data, 'a.tar'), bytes: 3_000_000, workspaces: 2 }
  record({ last })
  expect(await finding()).toContain(
    `! Last backup: ${last.at}, 2.9 MiB, read again whole: ${last.file} is not there`,
  )
  writeFileSync(last.file, '')
  expect(await finding()).toBe(`✓ Last backup: ${last.at}, 2.9 MiB, read again whole: ${last.file}`)
  record({ last, failed: { at: '2026-11-28T06:00:00.000Z', message: 'The disk is full.' } })
  expect(await finding()).toContain('the one of 2026-11-28T06:00:00.000Z failed: The disk is full.')
})

test('providers of sign-in that cannot be read are a finding', async () => {
  const checks = async (text: string) => {
    const { lines } = await run(['--json'], { SANDLOT_OIDC: text })
    return (JSON.parse(lines.join('\n')) as Printed).checks.find(({ id }) => id === 'sign-in')
  }
  expect(await checks('{')).toMatchObject({ group: 'must', state: 'failed' })
  expect(await checks('')).toBeUndefined()
})
