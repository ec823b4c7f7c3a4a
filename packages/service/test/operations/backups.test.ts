/** Backups for administrators, and their lines in the audit log. */
import { writeFileSync } from 'node:fs'
import { backupsView } from '@sandlot/shared/admin/backup-status'
import { auditPage } from '@sandlot/shared/admin/audit'
import { expect, test, vi } from 'vitest'
import { addUser, browser } from '../support/harness.ts'
import { useHarness } from '../support/use-harness.ts'

const here = useHarness()
const HOUR = 3_600_000
const iso = (at: number) => new Date(at).toISOString()

test('what the backup process left is shown with the next one, to administrators alone', async () => {
  const { harness, ann } = here()
  const bob = await addUser(harness, ann, 'bob@example.org')
  expect((await bob.get('/api/admin/backups')).status).toBe(403)
  const view = async () => backupsView.parse(await (await ann.get('/api/admin/backups')).json())
  expect(await view()).toEqual({ status: null, nextAt: null })
  const made = { at: '2026-11-27T06:00:00.000Z', file: '/b/a.tar', bytes: 3, workspaces: 1 }
  const settings = { folder: '/b', keep: 7, everyMs: 24 * HOUR, inContainer: false }
  writeFileSync(harness.config.backupStatusFile, JSON.stringify({ last: made, settings, files: [] }))
  expect(await view()).toMatchObject({
    status: { last: made },
    nextAt: Math.min(Date.parse(made.at), Date.now()) + 24 * HOUR,
  })
  writeFileSync(harness.config.backupStatusFile, '{"last"')
  expect(await view()).toEqual({ status: null, nextAt: null })
})

test('each try is one line of the audit log, also over a restart', async () => {
  const { harness, ann } = here()
  const now = Date.now()
  const backup = { did: 'backup', by: 'schedule', file: '/b/a.tar', bytes: 3, workspaces: 1 }
  const old = { ...backup, at: iso(now - 40 * 24 * HOUR) }
  const failed = { did: 'fail', by: 'operator', at: iso(now - HOUR), message: 'The disk is full.' }
  const record = (...tries: object[]): void =>
    writeFileSync(harness.config.backupStatusFile, JSON.stringify({ tries }))
  const lines = async () => {
    const again = browser(harness.service.url, ann.cookie)
    const answer = await again.get('/api/admin/audit?what=backup_made,backup_failed,backup_restored')
    return auditPage.parse(await answer.json()).entries.map(({ what, who }) => `${what} ${who.id}`)
  }
  record(failed, old)
  await harness.restart()
  await vi.waitFor(async () => expect(await lines()).toEqual(['backup_failed operator']))
  record({ ...backup, at: iso(now) }, failed, old)
  for (let nth = 0; nth < 2; nth++) {
    await harness.restart()
    await vi.waitFor(async () =>
      expect(await lines()).toEqual(['backup_made sandlot', 'backup_failed operator']),
    )
  }
})
