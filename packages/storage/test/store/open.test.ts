import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSessionReader, openSessionStore } from '../../src/store/open.ts'
import { testSessionStore } from '../support/contract.ts'

testSessionStore('sqlite', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-sessions-'))
  const path = join(folder, 'sessions.db')
  const store = await openSessionStore(path)
  const reader = await openSessionReader(path)
  return { store, reader, remove: () => rmSync(folder, { recursive: true }) }
})
