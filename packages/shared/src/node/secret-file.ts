/** Secrets that Sandlot creates on its first start: `$SANDLOT_DATA/keys`, one file each, 0600. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { hasCode } from '../base/errors.ts'
import { randomText } from '../base/ids.ts'

const SECRET_CHARS = 50

/** Secrets of services, the same for all that share a database. */
export const SERVICE_SECRETS = ['service-cookies', 'push', 'previews', 'alerts'] as const
/** The secret with which services sign in at agents on other hosts. */
export const AGENT_TOKEN = 'agent-token'

/**
 * The absolute path of the keys folder, which contains `key`. Reports a problem if the folder in
 * `set` lacks it while the data folder has it: a new key could not open existing data.
 */
export function readKeysFolder(
  dataFolder: string,
  set: string | undefined,
  key: string,
  problems: string[],
): string {
  const usual = join(dataFolder, 'keys')
  if (set === undefined) return usual
  const folder = resolve(set)
  if (existsSync(join(usual, key)) && !existsSync(join(folder, key)))
    problems.push(
      `SANDLOT_KEYS_DIR: there is no ${key} in ${folder}, and this Sandlot has its own in ${usual}; move the keys there`,
    )
  return folder
}

/** Reads the named secret, and creates it if missing. Safe with concurrent processes. */
export async function ensureSecret(keysFolder: string, name: string): Promise<string> {
  await mkdir(keysFolder, { recursive: true, mode: 0o700 })
  const path = join(keysFolder, name)
  if (!existsSync(path)) {
    // Written under another name and then linked: of two concurrent starts one wins, and neither
    // reads half a secret.
    const draft = `${path}.${randomText(10)}`
    try {
      await writeFile(draft, randomText(SECRET_CHARS), { mode: 0o600, flush: true })
      await link(draft, path)
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error
    } finally {
      await rm(draft, { force: true })
    }
  }
  const secret = (await readFile(path, 'utf8')).trim()
  if (secret.length >= SECRET_CHARS) return secret
  throw new Error(`${path} is cut short. Delete it and start again.`)
}

export async function deleteSecret(keysFolder: string, name: string): Promise<void> {
  await rm(join(keysFolder, name), { force: true })
}

/** 48 bits of a key, which reveal nothing about it: for comparison. */
export function printOf(...parts: readonly (string | Uint8Array)[]): number {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest().readUIntBE(0, 6)
}

/** Constant-time comparison. */
export function secretsEqual(a: string, b: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}
