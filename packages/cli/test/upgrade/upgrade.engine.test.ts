/**
 * Upgrades of a small clone: its versions are programs of a few lines that run, answer and end as
 * those of Sandlot do; what upgrades them is Sandlot's own.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parseCliConfig } from '../../src/config.ts'
import { databaseCheck } from '../../src/deployment/database.ts'
import { randomText } from '@sandlot/shared/base/ids'
import { LOCAL_PROCESS, nodeEnvironment } from '../../../../test/config.ts'
import { ROOT } from '../../../../test/source-files.ts'
import { freePort } from '../../../../test/e2e/processes.ts'
import { describeOnPostgres } from '../../../storage/test/support/on-postgres.ts'

let folder: string
let clone: string
let origin: string
let data: string
let port: number

const git = (where: string, ...args: string[]): string =>
  execFileSync('git', ['-C', where, '-c', 'user.name=t', '-c', 'user.email=t@example.org', ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim()

/** The first part of Sandlot's launcher, followed by a small script. */
const launcher = (): string => {
  const [first = ''] = readFileSync(join(ROOT, 'sandlot'), 'utf8').split('[[ $(uname')
  return `${first}
hold() { while [[ -e $SANDLOT_DATA/hold-$1 ]]; do sleep 0.02; done; }
case $1 in
  backup) hold backup; echo made >>"$SANDLOT_DATA/made"; [[ ! -e $SANDLOT_DATA/full ]] ;;
  up)
    [[ -z \${DATABASE_URL:-} ]] || psql -qc "insert into sessions.chat values ('opened by $(cat "$root/version")'); create table if not exists sessions.of_$(cat "$root/version")()" "$DATABASE_URL"
    cat "$root/version" >>"$SANDLOT_DATA/started"; hold "up-$(cat "$root/version")"; exec "$NODE" "$root/up.mjs" ;;
esac
`
}

const UP = `
import { mkdirSync, readFileSync, rmSync, writeFileSync, appendFileSync } from 'node:fs'
import { createServer } from 'node:http'
const data = process.env.SANDLOT_DATA
const version = readFileSync(new URL('version', import.meta.url), 'utf8').trim()
const started = readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ')[19]
const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
const mark = { pid: process.pid, started: boot + '/' + started }
appendFileSync(data + '/sessions.db', 'opened by ' + version + '\\n')
if (version === 'broken') process.exit(1)
const url = 'http://127.0.0.1:' + process.env.PORT
createServer((_, response) => response.end(JSON.stringify({ ready: true, reasons: [] }))).listen(process.env.PORT, '127.0.0.1', () => {
  mkdirSync(data + '/run', { recursive: true })
  writeFileSync(data + '/run/up.json', JSON.stringify({ up: mark, url, children: { service: mark } }))
})
process.on('SIGTERM', () => { rmSync(data + '/run/up.json'); process.exit(0) })
`

/** A version of the origin, tagged by its name. */
function release(name: string): void {
  writeFileSync(join(origin, 'version'), `${name}\n`)
  git(origin, 'add', '-A')
  git(origin, 'commit', '-qm', name)
  git(origin, 'tag', name)
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-upgrade-'))
  origin = join(folder, 'origin')
  clone = join(folder, 'clone')
  data = join(folder, 'data')
  port = await freePort()
  mkdirSync(origin)
  git(origin, 'init', '-q', '-b', 'main')
  writeFileSync(join(origin, 'sandlot'), launcher(), { mode: 0o755 })
  writeFileSync(join(origin, 'up.mjs'), UP)
  release('one')
  execFileSync('git', ['clone', '-q', origin, clone])
  mkdirSync(join(data, 'keys'), { recursive: true })
  writeFileSync(join(data, 'keys/deployment.json'), JSON.stringify({ id: 'test' }))
  writeFileSync(join(data, 'sessions.db'), 'a chat\n')
})
const children = new Set<ReturnType<typeof sandlot>>()
afterEach(async () => {
  for (const { child } of children) child.kill('SIGTERM')
  await Promise.all([...children].map(({ ended }) => ended))
  children.clear()
  const record = json(join(data, 'run/up.json'))
  const pid = (record as { up?: { pid: number } } | undefined)?.up?.pid
  if (pid !== undefined) process.kill(pid, 'SIGTERM')
  rmSync(folder, { recursive: true, force: true })
})

/** Runs a command like the launcher of the clone. */
function sandlot(...args: string[]) {
  const program = ['--conditions=sandlot-source', new URL('child.ts', import.meta.url).pathname]
  const child = spawn(process.execPath, [...program, clone, ...args], {
    env: environment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said += text))
  const ended = once(child, 'exit').then(([code]) => code as number | null)
  const running = { child, ended, said: () => said }
  children.add(running)
  return running
}

let settings: Record<string, string> = {}
afterEach(() => {
  settings = {}
})
const environment = (): Record<string, string> => ({
  ...nodeEnvironment(),
  PATH: process.env['PATH'] ?? '',
  HOME: folder,
  NODE: process.execPath,
  SANDLOT_DATA: data,
  ...LOCAL_PROCESS,
  PORT: String(port),
  ...settings,
})

/** The first version, running. */
async function runOne(): Promise<void> {
  const child = spawn(join(clone, 'sandlot'), ['up'], { env: environment(), stdio: 'ignore' })
  await expect.poll(() => json(join(data, 'run/up.json')), { timeout: 30_000 }).toBeDefined()
  child.unref()
}

function json(path: string): unknown {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined
}
const read = (name: string): string =>
  existsSync(join(data, name)) ? readFileSync(join(data, name), 'utf8') : ''
const version = (): string => readFileSync(join(clone, 'version'), 'utf8').trim()
const step = (): unknown =>
  (json(join(clone, '.sandlot-upgrade.json')) as { step?: string } | undefined)?.step
const hold = (what: string): void => writeFileSync(join(data, `hold-${what}`), '')
const letGo = (what: string): void => rmSync(join(data, `hold-${what}`))

/** Nothing of an upgrade is left. */
const isClean = (): boolean =>
  step() === undefined &&
  !existsSync(join(data, 'before-upgrade')) &&
  git(clone, 'status', '--porcelain') === ''

test('the newest version of the branch is taken over after a backup, and the branch with it', async () => {
  release('two')
  await runOne()
  const upgrading = sandlot('upgrade')
  await expect.poll(upgrading.said, { timeout: 20_000 }).toContain('Upgraded Sandlot from one to two.')
  expect({ made: read('made'), started: read('started'), version: version() }).toEqual({
    made: 'made\n',
    started: 'one\ntwo\n',
    version: 'two',
  })
  expect(git(clone, 'symbolic-ref', '--short', 'HEAD')).toBe('main')
  expect(isClean()).toBe(true)
  // It stays as long as the Sandlot that it started.
  expect(upgrading.child.exitCode).toBeNull()
  upgrading.child.kill('SIGTERM')
  expect(await upgrading.ended).toBe(0)
})

test('a version that does not become ready is taken back, with the data of before', async () => {
  release('broken')
  await runOne()
  const upgrading = sandlot('upgrade', 'broken', '--without-backup')
  await expect.poll(upgrading.said, { timeout: 20_000 }).toContain('Rolled back to one, with all its data.')
  expect(upgrading.said()).toContain('The upgrade to broken failed: it exited with code 1.')
  expect(read('sessions.db')).toBe('a chat\nopened by one\nopened by one\n')
  expect({ version: version(), clean: isClean(), made: read('made') }).toEqual({
    version: 'one',
    clean: true,
    made: '',
  })
  upgrading.child.kill('SIGTERM')
  expect(await upgrading.ended).toBe(1)
})

test('one that was not running is not running afterwards', async () => {
  release('two')
  expect(await sandlot('upgrade', '--from', origin).ended).toBe(0)
  expect({ version: version(), clean: isClean(), running: existsSync(join(data, 'run/up.json')) }).toEqual({
    version: 'two',
    clean: true,
    running: false,
  })
})

describe('nothing is done, and a sentence says why', () => {
  test.each<[string, () => void, string[], RegExp]>([
    ['with the same version', () => undefined, [], /already installed/],
    [
      'with an older one',
      () => {
        release('two')
        git(clone, 'pull', '-q')
      },
      ['one'],
      /older than the installed one/,
    ],
    ['with one that is not there', () => undefined, ['seven'], /couldn't find remote ref|git ended/],
    [
      'in a clone with changes',
      () => {
        release('two')
        writeFileSync(join(clone, 'up.mjs'), 'changed')
      },
      [],
      /This clone has local changes/,
    ],
    [
      'where no backup can be made',
      () => {
        release('two')
        writeFileSync(join(data, 'full'), '')
      },
      [],
      /The backup failed/,
    ],
  ])('%s', async (_, prepare, args, reason) => {
    prepare()
    const upgrading = sandlot('upgrade', ...args)
    expect(await upgrading.ended).toBe(1)
    expect(upgrading.said()).toMatch(reason)
    expect({ step: step(), started: read('started') }).toEqual({ step: undefined, started: '' })
  })
})

describe('an upgrade that is killed', () => {
  /** Killed while it is at `at`, which `held` keeps it in. */
  async function killedAt(at: string, held: string, name = 'two'): Promise<void> {
    release(name)
    await runOne()
    hold(held)
    const upgrading = sandlot('upgrade', name)
    await expect.poll(step, { timeout: 20_000 }).toBe(at)
    upgrading.child.kill('SIGKILL')
    await upgrading.ended
    letGo(held)
  }

  test('while the backup is made has changed nothing, and the next one starts over', async () => {
    await killedAt('backup', 'backup')
    const next = sandlot('upgrade', 'two')
    await expect.poll(next.said, { timeout: 20_000 }).toContain('Upgraded Sandlot from one to two')
    expect(next.said()).toContain('before it changed anything')
    expect(isClean()).toBe(true)
  })

  test('while the new version starts resumes with the next up', async () => {
    await killedAt('start', 'up-two')
    const next = sandlot('up')
    await expect.poll(next.said, { timeout: 20_000 }).toContain('Upgraded Sandlot from one to two.')
    expect({ version: version(), clean: isClean() }).toEqual({ version: 'two', clean: true })
  })

  test('during the rollback resumes with the next up, and has the old data', async () => {
    await killedAt('restart', 'up-one', 'broken')
    const next = sandlot('up')
    await expect.poll(next.said, { timeout: 20_000 }).toContain('Rolled back to one')
    expect(read('sessions.db')).not.toContain('broken')
    expect({ version: version(), clean: isClean() }).toEqual({ version: 'one', clean: true })
  })

  /** The record as a process left it that is gone. */
  function left(at: string, more: { checkout: string }): void {
    const commit = (name: string) => ({ commit: git(clone, 'rev-parse', `${name}^{commit}`), name })
    const state = {
      step: at,
      checkout: git(clone, 'rev-parse', `${more.checkout}^{commit}`),
      owner: { pid: 4_194_304, started: 'an earlier boot/1' },
      from: { ...commit('one'), branch: 'main' },
      to: commit('two'),
      movesBranch: true,
      data,
      wasRunning: true,
    }
    writeFileSync(join(clone, '.sandlot-upgrade.json'), `${JSON.stringify(state)}\n`)
  }

  /** The copy that an upgrade makes, in part or whole. */
  function copied(name: string): void {
    mkdirSync(join(data, name))
    writeFileSync(join(data, name, 'sessions.db'), 'a chat\n')
  }

  test('while the data is copied has changed nothing', async () => {
    release('two')
    git(clone, 'fetch', '-q', '--tags')
    left('copy', { checkout: 'one' })
    copied('before-upgrade.partial')
    const next = sandlot('upgrade', 'two')
    await expect.poll(next.said, { timeout: 20_000 }).toContain('Upgraded Sandlot from one to two')
    expect(isClean()).toBe(true)
  })

  test('between two versions’ files has those of one before anything runs', async () => {
    release('two')
    git(clone, 'fetch', '-q', '--tags')
    left('switch', { checkout: 'two' })
    copied('before-upgrade')
    // Half of a checkout: one file is new, another cut off, and git holds its lock.
    writeFileSync(join(clone, 'version'), 'two\n')
    writeFileSync(join(clone, 'up.mjs'), UP.slice(0, 40))
    writeFileSync(join(clone, '.git/index.lock'), '')
    // Any command of the launcher will do; this one does nothing.
    execFileSync(join(clone, 'sandlot'), ['nothing'], { env: environment() })
    expect(git(clone, 'rev-parse', 'HEAD')).toBe(git(clone, 'rev-parse', 'two'))
    expect(git(clone, 'status', '--porcelain')).toMatch(/^(\?\? \.sandlot-upgrade\.json)?$/)
    const next = sandlot('up')
    await expect.poll(next.said, { timeout: 20_000 }).toContain('Upgraded Sandlot from one to two.')
    expect({ clean: isClean(), branch: git(clone, 'symbolic-ref', '--short', 'HEAD') }).toEqual({
      clean: true,
      branch: 'main',
    })
  })

  test('while data goes back has all of it after the next up', async () => {
    release('two')
    git(clone, 'fetch', '-q', '--tags')
    git(clone, 'checkout', '-q', 'two')
    left('undo', { checkout: 'one' })
    copied('before-upgrade')
    writeFileSync(join(data, 'sessions.db'), 'opened by two\n')
    const next = sandlot('up')
    await expect.poll(next.said, { timeout: 20_000 }).toContain('Rolled back to one')
    expect(read('sessions.db')).toBe('a chat\nopened by one\n')
    expect({ version: version(), clean: isClean() }).toEqual({ version: 'one', clean: true })
  })
})

describeOnPostgres('with PostgreSQL', (postgres) => {
  const psql = (statement: string): string =>
    execFileSync('psql', ['-qAtc', statement, settings['DATABASE_URL'] ?? ''], { encoding: 'utf8' }).trim()
  beforeEach(async () => {
    settings = { DATABASE_URL: await postgres.database(`upgrade_${randomText(8)}`) }
    psql("create schema sessions; create table sessions.chat as select 'a chat' as text")
  })

  test('a version that does not become ready is taken back, with the database of before', async () => {
    release('broken')
    await runOne()
    const upgrading = sandlot('upgrade', 'broken', '--without-backup')
    await expect.poll(upgrading.said, { timeout: 20_000 }).toContain('Rolled back to one, with all its data.')
    expect(psql('select text from sessions.chat')).toBe('a chat\nopened by one\nopened by one')
    expect(psql("select count(*) from pg_class where relname = 'of_broken'")).toBe('0')
    expect({ version: version(), clean: isClean() }).toEqual({ version: 'one', clean: true })
  })

  test('doctor says whether it answers, and which agents live', async () => {
    const check = () => databaseCheck(parseCliConfig(settings))
    expect(await check()).toMatchObject([
      {
        id: 'database',
        state: 'ok',
        message: expect.stringMatching(/^version \d+ answers; Sandlot has not been started/) as string,
      },
    ])
    psql(`create table sessions.replicas as select 'a-1' as id, 1 as draining,
      extract(epoch from clock_timestamp()) * 1000 as heartbeat_at`)
    expect(await check()).toMatchObject([
      { message: expect.stringContaining('agents: a-1 (draining)') as string },
    ])
    settings = { DATABASE_URL: 'postgres://127.0.0.1:9/nothing' }
    expect(await check()).toMatchObject([
      {
        id: 'database',
        state: 'failed',
        message: expect.stringMatching(/^connection to server at "127\.0\.0\.1".*refused$/) as string,
      },
    ])
  })

  test('nothing is done while another machine’s processes write', async () => {
    release('two')
    const other = spawn('psql', ['-c', 'select pg_sleep(30)', settings['DATABASE_URL'] ?? ''], {
      env: { ...environment(), PGAPPNAME: 'sandlot' },
      stdio: 'ignore',
    })
    const upgrading = sandlot('upgrade')
    expect(await upgrading.ended).toBe(1)
    other.kill()
    expect(upgrading.said()).toContain(
      'Other agents or services still use the same database (from this machine)',
    )
    expect({ version: version(), clean: isClean() }).toEqual({ version: 'one', clean: true })
  })
})
