/**
 * The package as somebody else gets it: packed, put into a project that has nothing else,
 * type-checked and run.
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { docker } from './support/docker-fixture.ts'

const run = promisify(execFile)
const PACKAGE = fileURLToPath(new URL('..', import.meta.url))
const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const COMPILER_OPTIONS = {
  strict: true,
  noEmit: true,
  target: 'esnext',
  module: 'nodenext',
  allowImportingTsExtensions: true,
  types: ['node'],
}

interface Manifest {
  packageManager?: string
  exports: Record<string, unknown>
  dependencies: Record<string, string>
}

let project: string
let manifest: Manifest
const deployment = `test-${randomBytes(4).toString('hex')}`

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'sandlot-library-'))
  const { packageManager = '' } = await manifestOf(ROOT)
  await run('npx', ['-y', packageManager, 'pack', '--pack-destination', project], { cwd: PACKAGE })
  const [tarball = ''] = (await readdir(project)).filter((name) => name.endsWith('.tgz'))
  const installed = join(project, 'node_modules/@sandlot/sandbox')
  await mkdir(installed, { recursive: true })
  await run('tar', ['-xzf', join(project, tarball), '--strip-components=1', '-C', installed])
  manifest = await manifestOf(installed)
  // Like an installation without a registry: the names of the packed manifest, and no others.
  for (const name of Object.keys(manifest.dependencies)) {
    await mkdir(join(project, 'node_modules', name, '..'), { recursive: true })
    await symlink(join(PACKAGE, 'node_modules', name), join(project, 'node_modules', name))
  }
  await mkdir(join(project, 'node_modules/@types'))
  await symlink(join(ROOT, 'node_modules/@types/node'), join(project, 'node_modules/@types/node'))
  await writeFile(join(project, 'package.json'), '{"type":"module"}')
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions: COMPILER_OPTIONS }))
  await cp(join(PACKAGE, 'examples'), join(project, 'examples'), { recursive: true })
  await writeFile(join(project, 'readme.ts'), await firstOfReadme(installed))
}, 120_000)
afterAll(async () => {
  const kept = await readFile(join(project, 'of-example/deployment.json'), 'utf8').catch(() => '{}')
  const { id } = JSON.parse(kept) as { id?: string }
  for (const name of [deployment, ...(id === undefined ? [] : [id])]) await removeDeployment(name)
  await rm(project, { recursive: true, force: true })
})

async function manifestOf(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest
}

/** The code that the README begins with, for a deployment of the test's own. */
async function firstOfReadme(installed: string): Promise<string> {
  const readme = await readFile(join(installed, 'README.md'), 'utf8')
  const code = /^```ts\n([\s\S]*?)^```$/m.exec(readme)?.[1] ?? ''
  const own = code.replace("deploymentId = 'demo'", `deploymentId = '${deployment}'`)
  expect(own).not.toBe(code)
  return own
}

async function removeDeployment(name: string): Promise<void> {
  const filter = ['--filter', `label=sandlot.deployment=${name}`]
  const lines = (text: string): string[] => text.split('\n').filter(Boolean)
  const containers = lines(await docker('ps', '-aq', ...filter))
  if (containers.length > 0) await docker('rm', '-f', ...containers)
  const volumes = lines(await docker('volume', 'ls', '-q', ...filter))
  if (volumes.length > 0) await docker('volume', 'rm', ...volumes)
}

const program = async (...args: string[]): Promise<string> =>
  (await run(process.execPath, args, { cwd: project, timeout: 60_000 })).stdout

test('it depends on exact versions from a registry, not on this workspace', () => {
  expect(Object.values(manifest.dependencies).filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual(
    [],
  )
})

test('every name that it offers can be imported, and what the README and the examples do type-checks', async () => {
  const built = (await readdir(join(project, 'node_modules/@sandlot/sandbox/dist'), { recursive: true }))
    .filter((name) => name.endsWith('.js'))
    .map((name) => `./${name.slice(0, -'.js'.length)}`)
  const named = Object.keys(manifest.exports).filter((name) => !name.includes('*'))
  const modules = [...named, ...built].map((name) => `@sandlot/sandbox/${name.slice('./'.length)}`)
  expect(modules).toContain('@sandlot/sandbox/sandboxes')
  await writeFile(join(project, 'all.mjs'), modules.map((name) => `import '${name}'\n`).join(''))
  await program('all.mjs')
  const tsc = join(ROOT, 'node_modules/.bin/tsc')
  const { stdout } = await run(tsc, ['-p', project]).catch((error: { stdout: string }) => error)
  expect(stdout).toBe('')
}, 120_000)

test('the code that the README begins with does what it says', async () => {
  expect(await program('readme.ts')).toBe('stdout: hello\n')
})

test('the first example runs', async () => {
  expect(await program('examples/1-run.ts', 'of-example')).toContain('exited with 3, 10 bytes printed')
})
