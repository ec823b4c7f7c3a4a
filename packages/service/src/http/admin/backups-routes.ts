/** Backups, for administrators: how they went, and when the next one is due. */
import type { Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'

/** `/api/admin/backups` */
export function backupsHandlers(parts: Parts) {
  return {
    getBackups: async (c) => c.json(await parts.backups.view()),
  } satisfies Partial<Handlers>
}
