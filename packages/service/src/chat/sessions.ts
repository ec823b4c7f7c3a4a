/** Reads sessions of ai-agent's database for one user; those of other users are not found. */
import { SandlotError, messageOf } from '@sandlot/shared/errors'
import type { SessionSummary } from '@sandlot/shared/frames'
import { openSessionReader } from '@sandlot/storage/sessions/sqlite'
import type { SessionReader, SessionRow } from '@sandlot/storage/sessions/store'

/** How long a request waits for the agent to make or migrate its database. */
const WAIT_MS = 500

export interface Sessions {
  /** Throws `not_found`, `not_ready`. */
  get(userId: string, sessionId: string): Promise<SessionRow>
  owns: (userId: string, sessionId: string) => Promise<boolean>
  /** The reader itself; throws `not_ready` while there is no database with our schema. */
  reader(): Promise<SessionReader>
  close(): Promise<void>
}

/**
 * The database is ai-agent's: on a first start it may not be there yet, so it is opened when it is
 * first needed, and tried again when that failed.
 */
export function openSessions(path: string): Sessions {
  let opening: Promise<SessionReader> | undefined
  const ended = new AbortController()

  const reader = async (): Promise<SessionReader> => {
    opening ??= openSessionReader(path, { waitMs: WAIT_MS, signal: ended.signal })
    const mine = opening
    try {
      return await mine
    } catch (error) {
      if (opening === mine) opening = undefined
      throw new SandlotError('not_ready', `Saved chats cannot be read yet: ${reasonOf(error)}`, {
        cause: error,
      })
    }
  }
  const find = async (userId: string, sessionId: string): Promise<SessionRow | undefined> => {
    const row = await (await reader()).getSession(sessionId)
    return row?.userId === userId ? row : undefined
  }

  return {
    reader,
    async get(userId, sessionId) {
      const row = await find(userId, sessionId)
      if (row === undefined) throw new SandlotError('not_found', 'There is no such chat.')
      return row
    },
    owns: async (userId, sessionId) => (await find(userId, sessionId)) !== undefined,
    async close() {
      ended.abort()
      if (opening === undefined) return
      try {
        await (await opening).close()
      } catch (error) {
        if (!ended.signal.aborted) throw error
      }
    },
  }
}

export function summaryOf(row: SessionRow): SessionSummary {
  const { id, title, updatedAt, mode, runningPromptId, waiting } = row
  return { sessionId: id, title, updatedAt, mode, running: runningPromptId !== null, waiting }
}

/** Without the path: users see this. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'newer_schema') return 'they were written by a newer version of Sandlot.'
  if (code === 'corrupt') return 'their file is damaged; it has to be restored from a backup.'
  if (code === 'io') return 'the disk of the server refuses to read them.'
  if (code === 'not_migrated') return 'the agent has not started yet.'
  return messageOf(error).slice(0, 200)
}
