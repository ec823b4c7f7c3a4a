import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lockFile } from '@sandlot/storage/database/lock'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { migrate } from '../src/migrate.ts'
import { makeDeployment } from './support/deployment.ts'

const NOWHERE = 'postgres://sandlot@127.0.0.1:1/sandlot'
let data: string
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'sandlot-migrate-'))
})
afterEach(() => rmSync(data, { recursive: true }))
const tried = () => migrate({ data, url: NOWHERE, doing: () => undefined })

test('what is not there, and a Sandlot that runs, is not moved; what cannot be reached is named', async () => {
  await expect(tried()).rejects.toMatchObject({ code: 'no_deployment' })
  await makeDeployment(data)
  for (const path of [join(data, 'run', 'agent.lock'), join(data, 'accounts.db.writing')]) {
    const lock = lockFile(path)
    await expect(tried()).rejects.toMatchObject({ code: 'running' })
    lock?.release()
  }
  await expect(tried()).rejects.toMatchObject({ name: 'StorageError', code: 'unreachable' })
})
