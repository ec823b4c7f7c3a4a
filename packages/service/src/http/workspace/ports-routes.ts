/** `/api/ports`: programs that listen in a person's sandbox, and the way to one of them. */
import { EXT } from '@sandlot/shared/acp/meta'
import { listeningPorts, port, type PortList, type PortsAsk } from '@sandlot/shared/workspace/ports'
import { SandlotError } from '@sandlot/shared/base/errors'
import { agentUserOf } from '../../auth/agent-user.ts'
import { PREVIEWS_OFF } from '../../previews/places.ts'
import { ENTRANCE } from '../../previews/serve-previews.ts'
import type { Parts } from '../context.ts'
import type { Handlers } from '../actions.ts'

export function portsHandlers(parts: Parts) {
  const { previews, places } = parts
  return {
    listPorts: async (c) => {
      const user = agentUserOf(c.var.caller)
      const ask = { do: 'list' } satisfies PortsAsk
      const listening = listeningPorts.parse(await parts.agent.request(EXT.ports, { user, ask }))
      const isOn = places.originOf('', c.req.header('host')) !== undefined
      return c.json({ ...listening, off: isOn ? undefined : PREVIEWS_OFF } satisfies PortList)
    },
    openPort: async (c) => {
      const asked = port.safeParse(c.req.param('port'))
      if (!asked.success) throw new SandlotError('bad_request', 'A port is a number from 1 to 65535.')
      // A page of another site could lead a person here.
      const from = c.req.header('sec-fetch-site')
      if (from !== undefined && from !== 'same-origin' && from !== 'none')
        throw new SandlotError('bad_origin', 'Previews are opened in Sandlot.')
      const { caller } = c.var
      const id = previews.idOf(caller.account.id, asked.data)
      const origin = places.originOf(id, c.req.header('host'))
      if (origin === undefined) throw new SandlotError('not_implemented', PREVIEWS_OFF)
      const ticket = await previews.offer(caller, asked.data)
      return c.redirect(`${origin}${ENTRANCE}?ticket=${ticket}`, 303)
    },
  } satisfies Partial<Handlers>
}
