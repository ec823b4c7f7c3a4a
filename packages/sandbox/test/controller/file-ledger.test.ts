import { mkdtemp, readdir, readFile, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { beforeEach, expect, test } from 'vitest'

import { createFileLedger } from '../../src/controller/file-ledger.ts'
import { testLedger, warmSlot } from '../support/ledger-contract.ts'
import { testFolder } from '../../../../test/folders.ts'

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
  folder = testFolder('ledger')
  file = join(folder, 'ledger.json')
})

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
  await expect(ledger.list()).rejects.toMatchObject({ code: 'ledger' })
  expect(await readFile(file, 'utf8')).toBe(text)
})

test('a ledger that is spoilt while it is used is refused as well', async () => {
  const ledger = createFileLedger(file)
  await ledger.add(warmSlot('aaaaaaaa', 30_000))
  expect(await ledger.list()).toHaveLength(1)
  const text = (await readFile(file, 'utf8')).replace('"warm"', '"worn"')
  await writeFile(file, text)
  await expect(ledger.list()).rejects.toMatchObject({ code: 'ledger' })
  await expect(ledger.claim('aaaaaaaa', 'ada')).rejects.toMatchObject({ code: 'ledger' })
  expect(await readFile(file, 'utf8')).toBe(text)
})

test('what a caller is given is theirs: changing it changes nothing in the ledger', async () => {
  const ledger = createFileLedger(file)
  await ledger.add(warmSlot('aaaaaaaa', 30_000))
  for (const slot of await ledger.list()) slot.uid = 1
  expect(await ledger.list()).toMatchObject([{ uid: 30_000 }])
})

test('a failed change leaves the ledger usable and as it was', async () => {
  const ledger = createFileLedger(file)
  await ledger.add(warmSlot('aaaaaaaa', 30_000))
  await expect(ledger.add(warmSlot('aaaaaaaa', 30_000))).rejects.toMatchObject({ code: 'exists' })
  expect(await ledger.list()).toHaveLength(1)
})

test('nothing but the ledger is left behind', async () => {
  const ledgers = Array.from({ length: 5 }, () => createFileLedger(file))
  await Promise.all(ledgers.flatMap((ledger) => [ledger.nextEpoch(), ledger.nextEpoch()]))
  expect(await readdir(folder)).toEqual(['ledger.json'])
})

test('a folder that cannot be made is a typed error', async () => {
  await writeFile(file, '')
  const ledger = createFileLedger(join(file, 'below', 'ledger.json'))
  await expect(ledger.nextEpoch()).rejects.toMatchObject({ code: 'ledger' })
  await expect(ledger.list()).rejects.toMatchObject({ code: 'ledger' })
})

test('a reader does not wait for the lock', async () => {
  const ledger = createFileLedger(file)
  await ledger.add(warmSlot('aaaaaaaa', 30_000))
  await symlink('somebody', `${file}.lock`)
  expect(await ledger.list()).toHaveLength(1)
  await unlink(`${file}.lock`)
})
