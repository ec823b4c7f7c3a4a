/**
 * Asks for a host that the sandbox may not reach. Offered where the operator lets people decide it.
 */
import { z } from 'zod'
import { hostRules } from '../approval/hosts.ts'
import type { RuleRegistry } from '../approval/rule-registry.ts'
import { defineTool, textArg, type Tool } from './tool.ts'

export const ALLOW_HOST = 'allow_host'

const input = z.strictObject({
  host: z
    .string()
    .min(1)
    .max(253)
    .describe('The name of the host, for example api.example.org. No addresses, no URLs.'),
  port: z.int().min(1).max(65_535).default(443).describe('The port. Default: 443.'),
  why: z.string().max(500).optional().describe('What it is needed for, in a few words, for the user.'),
})

/**
 * An answer “for this session” or “always” is a rule by now; one that allowed once becomes one for
 * this message. `mayAsk`: whether this user's agent may ask.
 */
export function allowHost(rules: RuleRegistry, mayAsk: (userId: string) => boolean = () => true): Tool {
  return defineTool({
    name: ALLOW_HOST,
    description:
      'Asks the user to let their sandbox reach a host on the internet. Use it when a command says that the network refused a host that is needed, then run the command again.',
    kind: 'fetch',
    input,
    output: z.strictObject({ host: z.string(), port: z.int() }),
    readOnly: false,
    runs: { repeatable: true, offeredTo: mayAsk },
    title: (args) => `Let the sandbox reach ${textArg(args, 'host') ?? 'a host'}`,
    requests: ({ host, port }) => [{ kind: 'host', host, port }],
    async *execute({ host, port }, { ids }) {
      const { userId, sessionId, promptId } = ids
      yield { type: 'started' }
      const held = await rules.of(userId, { sessionId, promptId })
      const known = hostRules(held, true)({ host, port })
      const allowed = held.find(({ id }) => known?.decision === 'allow' && id === known.ruleId)
      if (allowed === undefined) await rules.allowOnce(userId, `${host}:${port}`, { sessionId, promptId })
      const once = allowed === undefined || allowed.endsWith?.promptId !== undefined
      const until = once ? ' until this message is answered' : ''
      return {
        status: 'completed',
        forModel: `The sandbox can reach ${host}:${port}${until}.`,
        data: { host, port },
      }
    },
  })
}
