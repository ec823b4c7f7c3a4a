/**
 * Sandlot's own image without its build: Node of this checkout, what `./sandlot up` has built, and of docker/Dockerfile
 * the last stage, so users, folders and modes are those of the real image. For tests of the compose file.
 */
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { read, ROOT } from './source-files.ts'

const run = promisify(execFile)

const PROGRAMS: Record<string, string> = {
  '@sandlot/ai-agent': 'ai-agent',
  '@sandlot/engine-gate': 'engine-gate',
  '@sandlot/service': 'service',
  '@sandlot/flights-mcp': 'mcp/flights-mcp',
  '@sandlot/google-calendar-mcp': 'mcp/google-calendar-mcp',
}

/** The last stage of the real Dockerfile, with a build context in the place of the stages before. */
export function thinDockerfile(): string {
  const [, last] = read('docker/Dockerfile').text.split(/^FROM base$/m)
  if (last === undefined) throw new Error('docker/Dockerfile has no last stage')
  const stage = last
    .replace(/^COPY --from=node \S+ /m, 'COPY node ')
    .replace(/^COPY --from=build \/out\/ /m, 'COPY out/ ')
  if (stage.includes('--from=')) throw new Error('docker/Dockerfile copies more than it used to')
  return `ARG BASE\nFROM \${BASE}\n${stage}`
}

/** Make it under `tag`. Rejects with what docker said. */
export async function buildThinImage(tag: string, base: string): Promise<void> {
  if (!existsSync(join(ROOT, 'packages/web/dist'))) throw new Error('nothing is built; run ./sandlot up once')
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-thin-'))
  try {
    const pnpm = (JSON.parse(read('package.json').text) as { packageManager: string }).packageManager
    for (const [name, place] of Object.entries(PROGRAMS)) {
      const target = join(folder, 'out', place)
      const args = ['-y', pnpm, `--filter=${name}`, '--prod', '--legacy', 'deploy', target]
      await run('npx', args, { cwd: ROOT, env: { ...process.env, CI: 'true' }, maxBuffer: 2 ** 26 })
    }
    cpSync(join(ROOT, 'packages/web/dist'), join(folder, 'out/web/dist'), { recursive: true })
    for (const file of [
      'docker/healthcheck.mjs',
      'docker/as-engine-gate.sh',
      'docker/prepare-data.sh',
      'LICENSE',
    ])
      cpSync(join(ROOT, file), join(folder, 'out', file.split('/').at(-1) ?? file))
    cpSync(realpathSync(process.execPath), join(folder, 'node'))
    writeFileSync(join(folder, 'Dockerfile'), thinDockerfile())
    await run('docker', ['build', '--network', 'none', '--build-arg', `BASE=${base}`, '-t', tag, folder], {
      env: { ...process.env, DOCKER_BUILDKIT: '0' },
      maxBuffer: 2 ** 26,
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
