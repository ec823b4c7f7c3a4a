/**
 * Listening programs in a user's sandbox: `GET /api/ports`, and one of them at an origin of its own
 * by `GET /api/ports/:port/open`.
 */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'

export const port = z.coerce.number().int().min(1).max(65_535)

/** `awake` false: the sandbox is stopped, so nothing listens. */
export const listeningPorts = z.object({ awake: z.boolean(), ports: z.array(z.int()) })

/** `off`: the reason that no port can be opened, as a sentence with the next step. */
export const portList = listeningPorts.extend({ off: z.string().optional() })
export type PortList = z.infer<typeof portList>

/** `EXT.ports`: answered with `listeningPorts`, or a `streamTicket`. */
export const portsParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ do: z.literal('list') }),
    z.object({ do: z.literal('connect'), port }),
  ]),
})
export type PortsAsk = z.infer<typeof portsParams>['ask']
