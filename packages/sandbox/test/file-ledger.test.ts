import { lutimes, mkdtemp, readdir, readFile, rm, symlink, unlink, utimes, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterEach, beforeEach, expect, test } from 'vitest'

import { createFileLedger } from '../src/file-ledger.ts'
import { testLedger, warmSlot } from './ledger-contract.ts'

testLedger('file', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-ledger-'))
  const file = join(folder, 'deep', 'ledger.json')
  return {
    ledger: createFileLedger(file),
    reopen: async () => createFileLedger(file),
    dispose: () => rm(folder, { recursive: true }),
  }
})

let folder: string
let file: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandlot-ledger-'))
  file = join(folder, 'ledger.json')
})
afterEach(() => rm(folder, { recursive: true }))

test.each([
  '',
  '{',
  '[]',
  '{"version":2,"epoch":0,"slots":[]}',
  '{"version":1,"epoch":0,"slots":[{"slot":"x"}]}',
])('a ledger that reads %j is refused and not overwritten', async (text) => {
  await writeFile(file, text)
  const ledger = createFileLedger(file)
  await expect(ledger.nextEpoch()).rejects.toMatchObject({ code: 'ledger' })
  expect(await readFile(file, 'utf8')).toBe(text)
})

test('a failed change leaves the ledger usable and as it was', async () => {
  const ledger = createFileLedger(file)
  await ledger.add(warmSlot('aaaaaaaa', 30_000))
  await expect(ledger.add(warmSlot('aaaaaaaa', 30_000))).rejects.toMatchObject({ code: 'exists' })
  expect(await ledger.list()).toHaveLength(1)
})

/** No process has this id: pid_max is at most 2^22. */
const deadPid = 2 ** 22 + 1
const holder = (pid: number, host = hostname()): string => JSON.stringify({ pid, host, token: 'aa' })
const minuteAgo = (): number => Date.now() / 1_000 - 60

test('the lock of a process that died is broken', async () => {
  await symlink(holder(deadPid), `${file}.lock`)
  expect(await createFileLedger(file).nextEpoch()).toBeGreaterThan(0)
  expect(await readdir(folder)).toEqual(['ledger.json'])
})

test.each([
  ['a process that lives', holder(process.pid)],
  ['another machine', holder(deadPid, 'elsewhere')],
])('the lock of %s is waited for, and who only reads does not wait', async (_, content) => {
  await symlink(content, `${file}.lock`)
  const ledger = createFileLedger(file)
  expect(await ledger.list()).toEqual([])
  let done = false
  const epoch = ledger.nextEpoch().finally(() => {
    done = true
  })
  await sleep(150)
  expect(done).toBe(false)
  await unlink(`${file}.lock`)
  expect(await epoch).toBeGreaterThan(0)
})

test('the lock of another machine is broken when it is old', async () => {
  await symlink(holder(deadPid, 'elsewhere'), `${file}.lock`)
  await lutimes(`${file}.lock`, minuteAgo(), minuteAgo())
  expect(await createFileLedger(file).nextEpoch()).toBeGreaterThan(0)
})

test('a file of somebody else in the place of the lock is waited for until it is old', async () => {
  await writeFile(`${file}.lock`, '')
  const epoch = createFileLedger(file).nextEpoch()
  await sleep(150)
  expect(await readdir(folder)).toEqual(['ledger.json.lock'])
  await utimes(`${file}.lock`, minuteAgo(), minuteAgo())
  expect(await epoch).toBeGreaterThan(0)
  expect(await readdir(folder)).toEqual(['ledger.json'])
})

test('nothing but the ledger is left behind', async () => {
  const ledgers = Array.from({ length: 5 }, () => createFileLedger(file))
  await Promise.all(ledgers.flatMap((ledger) => [ledger.nextEpoch(), ledger.nextEpoch()]))
  expect(await readdir(folder)).toEqual(['ledger.json'])
})

test('a folder that cannot be made is a typed error', async () => {
  await writeFile(file, '')
  await expect(createFileLedger(join(file, 'below', 'ledger.json')).list()).rejects.toMatchObject({
    code: 'ledger',
  })
})
