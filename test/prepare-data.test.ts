/** Data of an earlier version, whose service and ai-agent were one user in compose, stays in use. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { ROOT } from './source-files.ts'
import { testFolder } from './folders.ts'

const reason = process.getuid?.() === 0 ? undefined : 'only root can give files to others'
const skipped = reason === undefined ? '' : ` (skipped: ${reason})`

let data: string
beforeEach(() => void (data = testFolder('data')))

/** Creates a file of the earlier version; its content is its name. */
function put(name: string, mode = 0o644): void {
  const path = join(data, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, name)
  chmodSync(path, mode)
  chownSync(path, 10_001, 10_001)
}

const prepare = (...keys: string[]): string =>
  execFileSync('/bin/sh', [join(ROOT, 'docker/prepare-data.sh'), data, ...keys], {
    encoding: 'utf8',
    stdio: 'pipe',
  })

/** Path → owner, group and mode of everything. */
function owners(): Record<string, string> {
  const names = readdirSync(data, { recursive: true, encoding: 'utf8' }).toSorted()
  return Object.fromEntries(
    ['', ...names].map((name) => {
      const { uid, gid, mode } = statSync(join(data, name))
      return [name, `${uid}:${gid} ${(mode & 0o777).toString(8)}`]
    }),
  )
}

test.skipIf(reason)(`an empty folder becomes ai-agent’s, and has one of the service’s${skipped}`, () => {
  prepare()
  expect(owners()).toEqual({
    '': '10001:10001 750',
    service: '10003:10003 700',
    'service/keys': '10003:10003 700',
  })
})

test.skipIf(reason)(
  `the service’s files of an earlier version move, and a second run changes nothing${skipped}`,
  () => {
    for (const name of ['accounts.db', 'accounts.db-wal', 'accounts.db-shm', 'accounts.db.before-002_x'])
      put(name)
    for (const name of ['sessions.db', 'sessions.db-wal', 'sessions.db.before-003_y', 'run/agent.lock'])
      put(name)
    for (const name of ['keys/deployment.json', 'keys/service-cookies', 'uploads/u/1']) put(name, 0o600)
    prepare()
    const after = owners()
    expect(after).toMatchObject({
      'keys/deployment.json': '10001:10001 600',
      'run/agent.lock': '10001:10001 600',
      // Its writer sets the mode when it starts.
      'sessions.db': '10001:10001 644',
      'sessions.db.before-003_y': '10001:10001 600',
      'service/accounts.db': '10003:10003 644',
      'service/keys/service-cookies': '10003:10003 600',
      'service/uploads/u/1': '10003:10003 600',
    })
    for (const name of ['accounts.db', 'accounts.db-wal', 'accounts.db.before-002_x', 'keys/service-cookies'])
      expect(readFileSync(join(data, 'service', name), 'utf8')).toBe(name)
    expect(Object.keys(after).filter((name) => /^(accounts|uploads|keys\/service)/.test(name))).toEqual([])
    expect(existsSync(join(data, 'service/accounts.db-shm'))).toBe(false)

    prepare()
    expect(owners()).toEqual(after)
  },
)

test.skipIf(reason)(
  `in a folder of keys each process has its own, both have the token, and no name leads elsewhere${skipped}`,
  () => {
    for (const name of ['keys/deployment.json', 'keys/push', 'elsewhere']) put(name, 0o644)
    symlinkSync(join(data, 'elsewhere'), join(data, 'keys/previews'))
    const keys = join(data, 'keys')
    prepare('')
    expect(existsSync(join(keys, 'agent-token'))).toBe(false)
    // Files in the data folder belong to the service by now.
    put('keys/push', 0o644)
    const elsewhere = join(data, 'mounted')
    renameSync(keys, elsewhere)
    prepare(elsewhere)
    expect(statSync(elsewhere).mode & 0o7777).toBe(0o1770)
    expect(owners()).toMatchObject({
      mounted: '10001:10001 770',
      'mounted/deployment.json': '10001:10001 600',
      'mounted/push': '10003:10003 600',
      'mounted/agent-token': '10001:10001 640',
      elsewhere: '10001:10001 644',
    })
    const token = readFileSync(join(elsewhere, 'agent-token'), 'utf8')
    expect(token).toMatch(/^[\w+/]{64}$/)
    prepare(elsewhere)
    expect(readFileSync(join(elsewhere, 'agent-token'), 'utf8')).toBe(token)
  },
)

test.skipIf(reason)(`interrupted after the log of accounts.db, it moves accounts.db too${skipped}`, () => {
  put('accounts.db')
  put('service/accounts.db-wal')
  prepare()
  expect(readdirSync(join(data, 'service')).toSorted()).toEqual(['accounts.db', 'accounts.db-wal', 'keys'])
})

test.skipIf(reason)(`a new accounts.db of an earlier version replaces nothing${skipped}`, () => {
  put('service/accounts.db')
  put('accounts.db')
  put('accounts.db-wal')
  prepare()
  expect(readFileSync(join(data, 'service/accounts.db'), 'utf8')).toBe('service/accounts.db')
  expect(existsSync(join(data, 'service/accounts.db-wal'))).toBe(false)
  expect(existsSync(join(data, 'accounts.db'))).toBe(true)
})

test.skipIf(reason)(
  `PostgreSQL’s password is made once, and the address with it is for its readers${skipped}`,
  () => {
    const [folder, cluster] = [join(data, 'database'), join(data, 'cluster')]
    for (const path of [folder, cluster]) mkdirSync(path)
    const script = join(ROOT, 'docker/postgres/prepare-database.sh')
    const run = (): string => {
      execFileSync('/bin/sh', [script, folder, cluster], { stdio: 'pipe' })
      return readFileSync(join(folder, 'url'), 'utf8').trim()
    }
    const url = new URL(run())
    expect(url.password).toMatch(/^[A-Za-z0-9_-]{32}$/)
    expect(url.searchParams.get('host')).toBe(`${folder}/run`)
    expect(owners()).toMatchObject({
      cluster: '10005:10005 700',
      'database/password': '10005:10005 600',
      'database/run': '10005:10005 755',
      'database/url': '10001:10001 440',
    })
    const after = owners()
    expect(run()).toBe(url.href)
    expect(owners()).toEqual(after)
  },
)
