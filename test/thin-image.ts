/**
 * Sandlot's own image without its build: of docker/Dockerfile the stage `sandlot`, so users and folders are those of the real
 * image. What that stage copies is mounted: Node of this checkout, and what `./sandlot up` has built. For tests of the
 * compose file.
 */
import { execFile } from 'node:child_process'
import { cpSync, existsSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { read, ROOT } from './source-files.ts'

const run = promisify(execFile)

const PROGRAMS: Record<string, string> = {
  '@sandlot/ai-agent': 'ai-agent',
  '@sandlot/backup': 'backup',
  '@sandlot/engine-gate': 'engine-gate',
  '@sandlot/service': 'service',
  '@sandlot/flights-mcp': 'mcp/flights-mcp',
  '@sandlot/google-calendar-mcp': 'mcp/google-calendar-mcp',
}

/** Sources that the stage `sandlot` of the real Dockerfile copies, and their paths for `buildThinImage`. */
const COPIES = [
  {
    line: 'COPY --from=node /node/bin/node /usr/local/bin/node\n',
    whole: 'COPY node /usr/local/bin/node\n',
    source: 'node',
    target: '/usr/local/bin/node',
  },
  {
    line: 'COPY --from=build /out/ /app/\n',
    whole: 'ADD others.tar /app/\nADD out.tar /app/\n',
    source: 'out',
    target: '/app',
  },
]

/** The stage `sandlot` of the real Dockerfile, without what it copies, or with it from the context. */
export function thinDockerfile({ copies = false } = {}): string {
  const last = /^FROM base AS sandlot$(.*?)^# --- backup:/ms.exec(read('docker/Dockerfile').text)?.[1]
  if (last === undefined) throw new Error('docker/Dockerfile has no stage sandlot')
  const stage = COPIES.reduce((text, { line, whole }) => text.replace(line, copies ? whole : ''), last)
  if (!copies && stage.includes('COPY')) throw new Error('docker/Dockerfile copies more than it used to')
  return `ARG BASE\nFROM \${BASE}\n${stage}`
}

/**
 * Make it under `tag`. Resolves with what must be mounted, as compose names volumes; it lies in `folder`. Rejects with
 * what docker said.
 */
export async function buildThinImage(tag: string, base: string, folder: string): Promise<string[]> {
  await collect(folder)
  await build(tag, base, folder, thinDockerfile())
  return COPIES.map(({ source, target }) => `${join(folder, source)}:${target}:ro`)
}

/**
 * The same with everything in it, for an engine that cannot mount `folder`, on that of PostgreSQL, whose programs a backup
 * needs. What has not changed is not built again.
 */
export async function buildWholeImage(tag: string, folder: string): Promise<void> {
  await collect(folder)
  await run('bash', ['-euc', PACK, 'bash', folder])
  const others = `USER 0:0\nSTOPSIGNAL SIGTERM\nENV PATH=$PATH:/usr/sbin:/sbin\nLABEL ${WHOLE}\n`
  const dockerfile = thinDockerfile({ copies: true }).replace('{BASE}\n', `{BASE}\n${others}`)
  await build(tag, 'sandlot/postgres:latest', folder, dockerfile)
}

/** Label of whole images. */
export const WHOLE = 'sandlot.test=whole-image'

/** Two archives of `out`: packages of others, and what changes. One file each, since Docker copies thousands slowly. */
const PACK = `cd "$1/out"
others=( -path '*/node_modules/*' ! -path '*/@sandlot*' ! -name '.modules.yaml' )
pack() { LC_ALL=C sort -z | tar --null --no-recursion -T - --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "../$1"; }
find . "\${others[@]}" -print0 | pack others.tar
find . ! '(' "\${others[@]}" ')' ! -name '.modules.yaml' ! -name '.pnpm-workspace-state*' -print0 | pack out.tar
rm -r "$1/out"`

async function build(tag: string, base: string, folder: string, dockerfile: string): Promise<void> {
  writeFileSync(join(folder, 'Dockerfile'), dockerfile)
  const thin = dockerfile.includes('COPY') ? [] : COPIES.map(({ source }) => source)
  writeFileSync(join(folder, '.dockerignore'), thin.join('\n'))
  await run('docker', ['build', '--network', 'none', '--build-arg', `BASE=${base}`, '-t', tag, folder], {
    env: { ...process.env, DOCKER_BUILDKIT: '0' },
    maxBuffer: 2 ** 26,
  })
}

/** Puts what the image copies into `folder`. */
async function collect(folder: string): Promise<void> {
  if (!existsSync(join(ROOT, 'packages/web/dist'))) throw new Error('nothing is built; run ./sandlot up once')
  const pnpm = (JSON.parse(read('package.json').text) as { packageManager: string }).packageManager
  const deploy = async ([name, place]: [string, string]): Promise<void> => {
    // The lockfile was verified when it was installed, and all of it is here; a test may have no network.
    const options = ['--config.trustLockfile=true', '--offline', `--filter=${name}`, '--prod', '--legacy']
    await run('npx', ['--offline', '-y', pnpm, ...options, 'deploy', join(folder, 'out', place)], {
      cwd: ROOT,
      env: { ...process.env, CI: 'true' },
      maxBuffer: 2 ** 26,
    })
  }
  await Promise.all(Object.entries(PROGRAMS).map(deploy))
  const changes = /^ && (find \/out [^]*?)\\\n && mkdir/m.exec(read('docker/Dockerfile').text)?.[1]
  if (changes === undefined) throw new Error('docker/Dockerfile no longer removes the backends of tests')
  await run('sh', ['-c', changes.replaceAll('/out', '"$1"'), 'sh', join(folder, 'out')])
  cpSync(join(ROOT, 'packages/web/dist'), join(folder, 'out/web/dist'), { recursive: true })
  for (const file of [
    'docker/healthcheck.mjs',
    'docker/as-engine-gate.sh',
    'docker/prepare-data.sh',
    'LICENSE',
  ])
    cpSync(join(ROOT, file), join(folder, 'out', file.split('/').at(-1) ?? file))
  cpSync(realpathSync(process.execPath), join(folder, 'node'))
}
