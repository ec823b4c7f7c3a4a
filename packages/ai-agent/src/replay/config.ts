/** What `record` reads from the environment: an address in an argument could be seen by others. */
import { readFileSync } from 'node:fs'
import { readConfig } from '@sandlot/shared/config'
import { databaseUrl } from '@sandlot/shared/config/database-url'
import { z } from 'zod'

/** Throws `ConfigError`. */
export function readDatabase(env: NodeJS.ProcessEnv = process.env): string {
  const { DATABASE_URL } = readConfig(z.object({ DATABASE_URL: databaseUrl }), env, (path) =>
    readFileSync(path, 'utf8'),
  )
  if (DATABASE_URL === undefined) throw new Error('DATABASE_URL is not set')
  return DATABASE_URL
}
