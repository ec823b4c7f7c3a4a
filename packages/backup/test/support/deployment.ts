/** A small Sandlot as it is on a disk: both databases, keys, settings, no sandboxes. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openAccounts } from '@sandlot/storage/accounts/accounts'
import { openSessionStore } from '@sandlot/storage/store/open'

export const DEPLOYMENT = 'test-backup'

export async function makeDeployment(data: string, deployment = DEPLOYMENT): Promise<void> {
  mkdirSync(join(data, 'keys'), { recursive: true, mode: 0o700 })
  const keys = JSON.stringify({ id: deployment, key: 'a secret key' })
  writeFileSync(join(data, 'keys', 'deployment.json'), keys, { mode: 0o600 })
  writeFileSync(join(data, 'sandlot.json'), '{}')
  const sessions = await openSessionStore(join(data, 'sessions.db'))
  await sessions.sessions.create({ id: 's', userId: 'u', cwd: '/workspace', mode: 'yolo', at: 0 })
  await sessions.close()
  const accounts = await openAccounts(join(data, 'accounts.db'), {
    secret: 's'.repeat(32),
    publicUrl: 'http://127.0.0.1',
  })
  await accounts.close()
}

/** True if the session of `makeDeployment` exists for its user. */
export async function sessionIn(data: string): Promise<unknown> {
  const sessions = await openSessionStore(join(data, 'sessions.db'))
  try {
    return await sessions.sessions.get('s')
  } finally {
    await sessions.close()
  }
}
