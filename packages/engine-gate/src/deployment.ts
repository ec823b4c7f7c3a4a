import { randomBytes } from 'node:crypto'
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'

import { isDeploymentId } from '@sandlot/sandbox/names'

/**
 * The id of the deployment that this gate serves, for ever: what `told` says, else what `file` holds, else a new one. It
 * is in the file afterwards, for the agent, which may read it and not write it. Throws when the file is damaged: a gate
 * that made up another id would hide every sandbox there is.
 */
export function deploymentId(file: string, told: string | undefined): string {
  const kept = read(file)
  if (told !== undefined) {
    if (kept !== told) replace(file, told)
    return told
  }
  if (kept !== undefined) {
    if (!isDeploymentId(kept))
      throw new Error(`${file} is damaged. Set SANDLOT_DEPLOYMENT to the id that your sandboxes carry.`)
    return kept
  }
  return make(file)
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw new Error(`The deployment's id cannot be read: ${file}.`, { cause: error })
  }
}

function replace(file: string, id: string): void {
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, `${id}\n`, { mode: 0o640 })
  renameSync(draft, file)
}

/** Written whole and then linked: of two gates that start at once one wins, and both have its id. */
function make(file: string): string {
  const id = randomBytes(4).toString('hex')
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, `${id}\n`, { mode: 0o640, flush: true })
  try {
    linkSync(draft, file)
    return id
  } catch (error) {
    const others = read(file)
    if (others === undefined) throw error
    return others
  } finally {
    rmSync(draft, { force: true })
  }
}
