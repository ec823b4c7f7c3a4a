/** `./sandlot doctor` for a running Sandlot (`/api/admin/overview/checks`). */
import { z } from 'zod'
import type { Finding } from '../base/finding.ts'

const about = {
  id: z.string(),
  group: z.enum(['must', 'warn', 'report']),
  name: z.string(),
  message: z.string(),
}

const finding = z.discriminatedUnion('state', [
  z.object({ ...about, state: z.literal('ok') }),
  z.object({ ...about, state: z.literal('unknown') }),
  z.object({ ...about, state: z.literal('failed'), fix: z.string() }),
]) satisfies z.ZodType<Finding>

/** The agent's findings. */
export const findings = z.object({ findings: z.array(finding) })

/** The last checks of both processes; null: none since the service started. */
export const checksView = z.object({
  last: findings.extend({ at: z.number() }).nullable(),
})
export type ChecksView = z.infer<typeof checksView>
