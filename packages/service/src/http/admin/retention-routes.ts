/** Preview of what new retention times would remove, for administrators. */
import { EXT } from '@sandlot/shared/acp/meta'
import { type RetentionAsk, type RetentionPreview, retentionPreview } from '@sandlot/shared/admin/retention'
import { agentUserOf } from '../../auth/agent-user.ts'
import type { Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'

const DAY_MS = 86_400_000

export function retentionHandlers(parts: Parts) {
  const { accounts, agent } = parts
  return {
    previewRetention: async (c, body) => {
      const { days } = await body()
      const ask = { do: 'preview', days } satisfies RetentionAsk
      const user = agentUserOf(c.var.caller)
      const { kinds } = retentionPreview.parse(await agent.request(EXT.retention, { user, ask }))
      // The service has lines of its own, which the agent cannot see.
      const own =
        days.audit === null ? undefined : await accounts.audit.olderThan(Date.now() - days.audit * DAY_MS)
      return c.json({
        kinds: kinds.map((one) =>
          one.kind !== 'audit' || own === undefined
            ? one
            : {
                ...one,
                count: one.count + own.count,
                bytes: one.bytes + own.bytes,
                oldest: earliest(one.oldest, own.oldest),
              },
        ),
      } satisfies RetentionPreview)
    },
  } satisfies Partial<Handlers>
}

function earliest(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b
  return Math.min(a, b)
}
