import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testLedger } from '../../../sandbox/test/support/ledger-contract.ts'
import { openSessionStore } from '../../src/store/open.ts'

testLedger('sessions store', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-ledger-'))
  const path = join(folder, 'sessions.db')
  const store = await openSessionStore(path)
  const opened = [store]
  return {
    ledger: store.ledger,
    reopen: async () => {
      const again = await openSessionStore(path)
      opened.push(again)
      return again.ledger
    },
    dispose: async () => {
      for (const each of opened) await each.close()
      rmSync(folder, { recursive: true })
    },
  }
})
