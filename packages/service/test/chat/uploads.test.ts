import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openAccounts } from '@sandlot/storage/accounts/accounts'
import type { AccountsStore } from '@sandlot/storage/accounts/store'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { describeOnPostgres } from '../../../storage/test/support/on-postgres.ts'
import { uploadFiles } from '../../src/chat/upload-files.ts'
import { type Uploads, type UploadsShelf, openUploads } from '../../src/chat/uploads.ts'
import { waitFor } from '../support/harness.ts'
import { PNG } from '../support/png.ts'
import { testFolder } from '../../../../test/folders.ts'

type UploadsOptions = Parameters<typeof openUploads>[1]

let folder: string
const opened: Uploads[] = []

beforeEach(async () => {
  folder = testFolder('uploads')
})

afterEach(async () => {
  for (const uploads of opened.splice(0)) await uploads.close()
})

const openOn = async (
  shelf: UploadsShelf,
  limits: Omit<UploadsOptions, 'onProblem'> = {},
): Promise<Uploads> => {
  const onProblem = (error: unknown): never => {
    throw error
  }
  const uploads = await openUploads(shelf, { ...limits, onProblem })
  opened.push(uploads)
  return uploads
}

const filesThere = async (): Promise<string[]> =>
  (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

/** Acts as if everything had been sent two days ago. */
async function ageFiles(): Promise<void> {
  const then = Date.now() / 1000 - 2 * 24 * 60 * 60
  for (const file of await filesThere()) await utimes(file, then, then)
}

/** The number of stored uploads of those sent at once, and the errors of the others. */
async function addAtOnce(uploads: Uploads, count: number) {
  const settled = await Promise.allSettled(Array.from({ length: count }, () => uploads.add('ann', PNG)))
  const kept = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value.id] : []))
  const codes = settled.flatMap((one) =>
    one.status === 'rejected' ? [(one.reason as { code: string }).code] : [],
  )
  return { kept, codes: [...new Set(codes)] }
}

interface Given {
  shelf: () => Promise<UploadsShelf>
  age: () => Promise<void>
  count: () => Promise<number>
}

/** The contract, wherever they are stored. */
function contract(given: () => Given): void {
  const open = async (limits: Omit<UploadsOptions, 'onProblem'> = {}): Promise<Uploads> =>
    openOn(await given().shelf(), limits)

  test('what one person has waiting is bounded in bytes and in number, also for uploads at once', async () => {
    const bytes = await open({ maxWaitingBytes: 2 * PNG.length })
    const { kept, codes } = await addAtOnce(bytes, 5)
    expect([kept.length, codes]).toEqual([2, ['too_large']])
    await bytes.add('bob', PNG)
    expect((await (await open()).read('ann', kept[0] ?? '')).bytes).toEqual(PNG)
    await expect(bytes.read('ann', '../bob')).rejects.toMatchObject({ code: 'not_found' })

    const number = await open({ maxWaiting: 4 })
    const more = await addAtOnce(number, 5)
    expect([more.kept.length, more.codes]).toEqual([2, ['rate_limited']])
    await number.remove('ann', more.kept[0] ?? '')
    await number.add('ann', PNG)
  })

  test('after a day an image is neither read nor removed, whether it was swept yet or not', async () => {
    const uploads = await open()
    const { id } = await uploads.add('ann', PNG)
    await given().age()
    await expect(uploads.read('ann', id)).rejects.toMatchObject({ code: 'not_found' })
    await expect(uploads.remove('ann', id)).rejects.toMatchObject({ code: 'not_found' })
    expect(await given().count()).toBe(1)
    await open()
    expect(await given().count()).toBe(0)
  })

  test('what is too old goes by itself', async () => {
    const uploads = await open({ sweepEveryMs: 5 })
    await uploads.add('ann', PNG)
    await given().age()
    await waitFor(async () => (await given().count()) === 0)
  })

  test('an upload in progress is removed with its user, and none of another is', async () => {
    const uploads = await open({ sweepEveryMs: 1 })
    const { id } = await uploads.add('bob', PNG)
    const added = Promise.allSettled(Array.from({ length: 20 }, () => uploads.add('ann', PNG)))
    await uploads.removeAll('ann')
    await added
    expect(await given().count()).toBe(1)
    for (let i = 0; i < 50; i++) {
      await uploads.add('ann', PNG)
      await uploads.removeAll('ann')
    }
    expect((await uploads.read('bob', id)).bytes).toEqual(PNG)
    await expect(uploads.read('ann', id)).rejects.toMatchObject({ code: 'not_found' })
  })
}

describe('as files', () => {
  contract(() => ({
    shelf: () => uploadFiles(folder),
    age: ageFiles,
    count: async () => (await filesThere()).length,
  }))

  test('the reserve of the disk is kept', async () => {
    const reserve = 64 * 1024 * 1024
    let free = reserve + PNG.length
    const uploads = await openOn(await uploadFiles(folder, { free: () => free }))
    await uploads.add('ann', PNG)
    free -= 1
    await expect(uploads.add('ann', PNG)).rejects.toMatchObject({ code: 'store_full' })
  })

  test('foreign files are left alone', async () => {
    const uploads = await openOn(await uploadFiles(folder))
    const { id } = await uploads.add('ann', PNG)
    const [own = ''] = await readdir(folder)
    await writeFile(join(folder, '.DS_Store'), 'x')
    await mkdir(join(folder, own, 'lost+found'))
    await ageFiles()
    const again = await openOn(await uploadFiles(folder))
    await expect(again.read('ann', id)).rejects.toMatchObject({ code: 'not_found' })
    await again.add('ann', PNG)
    expect((await readdir(folder)).toSorted()).toEqual(['.DS_Store', own])
  })

  test('the folder of a person goes with them, and that it is missing is no error', async () => {
    const uploads = await openOn(await uploadFiles(folder), { sweepEveryMs: 1 })
    const added = Promise.allSettled(Array.from({ length: 20 }, () => uploads.add('ann', PNG)))
    await uploads.removeAll('ann')
    await added
    expect(await readdir(folder)).toEqual([])
    await uploads.close()
  })
})

describeOnPostgres('on PostgreSQL', (postgres) => {
  let accounts: AccountsStore
  beforeAll(async () => {
    const url = await postgres.database('uploads')
    accounts = await openAccounts(url, { secret: 'none', publicUrl: 'http://localhost' })
  }, 60_000)
  afterEach(async () => {
    vi.useRealTimers()
    for (const userId of ['ann', 'bob']) await accounts.services.uploads.removeAll(userId)
  })
  afterAll(() => accounts?.close())

  contract(() => ({
    shelf: () => Promise.resolve(accounts.services.uploads),
    age: () => {
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 2 * 24 * 60 * 60 * 1000 })
      return Promise.resolve()
    },
    count: async () => {
      const [ann, bob] = await Promise.all(
        ['ann', 'bob'].map((who) => accounts.services.uploads.waiting(who, 0)),
      )
      return (ann?.count ?? 0) + (bob?.count ?? 0)
    },
  }))
})
