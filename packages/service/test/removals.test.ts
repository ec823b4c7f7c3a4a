import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openAccounts } from '@sandlot/storage/accounts/accounts'
import { expect, test } from 'vitest'
import { makeLog } from '../src/log.ts'
import { Removals } from '../src/removals.ts'
import { waitFor } from './helpers/harness.ts'

const OPTIONS = { secret: 'x'.repeat(42), publicUrl: 'http://127.0.0.1:8002' }
const ANN = { name: 'Ann', email: 'ann@example.org', password: 'correct horse', role: 'user' as const }

test('whom to remove that cannot be read once the agent is there is read again later', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-removals-'))
  const open = () => openAccounts(join(folder, 'accounts.db'), OPTIONS)
  let accounts = await open()
  const { id } = await accounts.createUser(ANN)
  await accounts.removeUser(id, 'purge')
  const lines: string[] = []
  const asked: object[] = []
  let reads = 0
  const removals = new Removals({
    accounts: {
      removeUser: (...given) => accounts.removeUser(...given),
      // The first time they are closed, then they are open again.
      async removals() {
        reads += 1
        if (reads === 1) await accounts.close()
        if (reads === 2) accounts = await open()
        return accounts.removals()
      },
      removalDone: (removal) => accounts.removalDone(removal),
      removalFailed: (...given) => accounts.removalFailed(...given),
    },
    agent: {
      whenConnected: async () => undefined,
      request: async (_method, params) => void asked.push(params),
    },
    sockets: { personRemoved: () => undefined },
    uploads: { removeAll: async () => undefined },
    log: makeLog(
      'info',
      (text) => text,
      (line) => void lines.push(line),
    ),
    retryMs: 1,
  })
  await waitFor(() => lines.some((line) => line.includes('a person was removed')))
  expect(lines[0]).toContain('it could not be read who is to be removed')
  expect(asked).toEqual([{ userId: id, data: 'purge' }])
  await removals.close()
  await accounts.close()
  await rm(folder, { recursive: true })
})
