/**
 * For `./sandlot doctor`: reads every line of both audit logs, beside a running Sandlot too.
 * Prints one line of JSON (`AuditChains`); a database that is not there yet, or of another version,
 * is left out.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '@sandlot/shared/errors'
import type { AuditChains } from '@sandlot/shared/office/audit'
import { readAccountsAudit } from '@sandlot/storage/accounts/accounts'
import type { ChainState } from '@sandlot/storage/audit/chain'
import { openSessionReader } from '@sandlot/storage/sessions/sqlite'
import { StorageError } from '@sandlot/storage/storage-error'
import { readServiceConfig } from './config.ts'

async function main(): Promise<AuditChains> {
  const { dataFolder } = readServiceConfig()
  const agent = await read(join(dataFolder, 'sessions.db'), async (path) => {
    const reader = await openSessionReader(path, { waitMs: 0 })
    try {
      return await reader.audit.check()
    } finally {
      await reader.close()
    }
  })
  const service = await read(join(dataFolder, 'accounts.db'), readAccountsAudit)
  return {
    chains: [
      ...agent.map((state) => ({ source: 'agent' as const, ...state })),
      ...service.map((state) => ({ source: 'service' as const, ...state })),
    ],
  }
}

/** None, where there is nothing to read. */
async function read(path: string, check: (path: string) => Promise<ChainState>): Promise<ChainState[]> {
  if (!existsSync(path)) return []
  try {
    return [await check(path)]
  } catch (error) {
    if (error instanceof StorageError && ['not_migrated', 'newer_schema'].includes(error.code)) return []
    throw error
  }
}

if (import.meta.main) {
  try {
    process.stdout.write(`${JSON.stringify(await main())}\n`)
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`)
    process.exitCode = 1
  }
}
