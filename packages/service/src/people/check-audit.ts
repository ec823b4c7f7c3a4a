/**
 * For `./sandlot doctor`: reads every line of both audit logs, beside a running Sandlot too.
 * Prints one line of JSON (`AuditChains`); a database that is not there yet, or of another version,
 * is left out.
 */
import { existsSync } from 'node:fs'
import { messageOf } from '@sandlot/shared/base/errors'
import type { AuditChains } from '@sandlot/shared/admin/audit'
import { readAccountsAudit } from '@sandlot/storage/accounts/accounts'
import type { ChainState } from '@sandlot/storage/audit/chain'
import { isPostgres } from '@sandlot/storage/database/dialect'
import { openSessionReader } from '@sandlot/storage/store/open'
import { StorageError } from '@sandlot/storage/storage-error'
import { readServiceConfig } from '../config.ts'

async function main(): Promise<AuditChains> {
  const { sessions, accounts } = readServiceConfig()
  const agent = await read(sessions, async (where) => {
    const reader = await openSessionReader(where, { waitMs: 0 })
    try {
      return await reader.admin.audit.check()
    } finally {
      await reader.close()
    }
  })
  const service = await read(accounts, readAccountsAudit)
  return {
    chains: [
      ...agent.map((state) => ({ source: 'agent' as const, ...state })),
      ...service.map((state) => ({ source: 'service' as const, ...state })),
    ],
  }
}

/** None, where there is nothing to read. */
async function read(where: string, check: (where: string) => Promise<ChainState>): Promise<ChainState[]> {
  if (!isPostgres(where) && !existsSync(where)) return []
  try {
    return [await check(where)]
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
