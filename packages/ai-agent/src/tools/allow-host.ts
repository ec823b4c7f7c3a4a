/** How the agent asks for a host that its sandbox may not reach. Offered where the operator lets people decide it. */
import { z } from 'zod'
import type { HostGrants } from '../rules/host-grants.ts'
import { defineTool, textArg } from './define-tool.ts'
import type { Tool } from './tool.ts'

const input = z.strictObject({
  host: z
    .string()
    .min(1)
    .max(253)
    .describe('The name of the host, for example api.example.org. No addresses, no URLs.'),
  port: z.int().min(1).max(65_535).default(443).describe('The port. Default: 443.'),
  why: z.string().max(500).optional().describe('What it is needed for, in a few words, for the user.'),
})

export function allowHost(grants: HostGrants): Tool {
  return defineTool({
    id: 'allow_host',
    name: 'allow_host',
    description:
      'Asks the user to let their sandbox reach a host on the internet. Use it when a command says that the network refused a host that is needed, then run the command again.',
    kind: 'fetch',
    input,
    readOnly: false,
    repeatable: true,
    title: (args) => `Let the sandbox reach ${textArg(args, 'host') ?? 'a host'}`,
    requests: ({ host, port }) => [{ kind: 'host', host, port }],
    // oxlint-disable-next-line require-yield
    async *execute({ host, port }, ctx) {
      grants.allow(ctx.userId, host, port)
      return {
        status: 'completed',
        forModel: `The sandbox can reach ${host}:${port} from now on.`,
        data: { host, port },
      }
    },
  })
}
