import { z } from 'zod'
import { call } from './http.ts'

const forked = z.object({ sessionId: z.string() })

/** A new chat that has everything `before` this prompt, or also its answer. Answers its id. Rejects with `ApiError`. */
export async function forkSession(
  sessionId: string,
  promptId: string,
  where: 'before' | 'after',
): Promise<string> {
  const path = `/api/sessions/${encodeURIComponent(sessionId)}/fork`
  return (await call(forked, 'POST', path, { promptId, where })).sessionId
}
