/**
 * Keys of this deployment: made on the first start, in the folder of keys, readable by its owner
 * alone.
 */
import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { randomText } from '../base/ids.ts'
import { z } from 'zod'
import { hasCode } from '../base/errors.ts'

export interface DeploymentKeys {
  /** Part of the names of containers and volumes. */
  id: string
  /** 32 random bytes. */
  key: Uint8Array
}

const FILE = 'deployment.json'
const stored = z.object({ id: z.string().regex(/^[a-z0-9-]{1,40}$/), key: z.base64().length(44) })

/**
 * Read the keys, or make them, for the deployment `id` where one is given: the engine gate passes
 * on no other. Id and key are one file, because one without the other would lose every sandbox.
 * Throws when the file cannot be read or is damaged; it is never replaced, since that would orphan
 * all workspaces.
 */
export function deploymentKeys(folder: string, id?: string): DeploymentKeys {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, FILE)
  const keys = readKeys(path) ?? makeKeys(path, id ?? randomText(8))
  if (id !== undefined && keys.id !== id) {
    throw new Error(
      `SANDLOT_DEPLOYMENT is ${id}, and the sandboxes of this data are those of ${keys.id}. Set it to ${keys.id} for the engine gate too.`,
    )
  }
  return keys
}

function readKeys(path: string): DeploymentKeys | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw new Error(`The deployment's keys cannot be read: ${path}.`, { cause: error })
  }
  const parsed = z.string().transform(parseJson).pipe(stored).safeParse(text)
  if (!parsed.success) {
    throw new Error(
      `${path} is damaged. Restore it from a backup: without it no existing sandbox can be used.`,
    )
  }
  return { id: parsed.data.id, key: Buffer.from(parsed.data.key, 'base64') }
}

function makeKeys(path: string, id: string): DeploymentKeys {
  const keys = { id, key: randomBytes(32) }
  const draft = `${path}.${randomText(8)}`
  // Written whole and then linked: no process ever reads half a key, and of two starts at once one
  // wins.
  const file = openSync(draft, 'wx', 0o600)
  try {
    writeSync(file, `${JSON.stringify({ id: keys.id, key: keys.key.toString('base64') })}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  try {
    linkSync(draft, path)
    return keys
  } catch (error) {
    const others = hasCode(error, 'EEXIST') ? readKeys(path) : undefined
    if (others === undefined) throw error
    return others
  } finally {
    rmSync(draft, { force: true })
  }
}

function parseJson(text: string, context: z.RefinementCtx): unknown {
  try {
    return JSON.parse(text)
  } catch {
    context.addIssue({ code: 'custom', message: 'not JSON' })
    return z.NEVER
  }
}
