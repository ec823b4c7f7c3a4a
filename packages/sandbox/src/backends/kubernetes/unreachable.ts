import { getServers, promises } from 'node:dns'
import { isIP } from 'node:net'

import type { ForbiddenAddress } from '../../backend.ts'
import type { ClusterAccess } from './access.ts'
import type { Pod } from './objects.ts'

/** No program listens there: a network that carries the attempt answers that it is refused. */
const NOBODYS_PORT = 9

/** One address of each part of a cluster's surroundings. `pods`: those of this deployment. */
export async function unreachable(
  { server }: Pick<ClusterAccess, 'server'>,
  pods: readonly Pod[],
  id: string,
): Promise<ForbiddenAddress[]> {
  const hostName = server.hostname.replace(/^\[|\]$/g, '')
  const servers = await promises.lookup(hostName, { all: true })
  const node = pods.find(({ metadata }) => metadata.name === id)?.status?.hostIP
  const neighbour = pods.find(({ metadata, status }) => metadata.name !== id && status?.podIP !== undefined)
  // Those of the cluster, where this process is a Pod.
  const resolvers = getServers().filter((host) => isIP(host) !== 0)
  return [
    ...servers.map(({ address }) => at('the API server', address, Number(server.port || 443))),
    ...(node === undefined ? [] : [at('its node', node, 10_250), dns('the DNS of its node', node)]),
    ...resolvers.map((host) => dns('the DNS', host)),
    ...(neighbour?.status?.podIP === undefined
      ? []
      : [at('another sandbox', neighbour.status.podIP, NOBODYS_PORT)]),
    at('the metadata of the cloud', '169.254.169.254', 80),
    at('the internet', '1.1.1.1', 443),
    at('the internet by IPv6', '2606:4700:4700::1111', 443),
  ].filter(({ host }) => !isLoopback(host))
}

function at(name: string, host: string, port: number): ForbiddenAddress {
  return { name, host, port }
}

function dns(name: string, host: string): ForbiddenAddress {
  return { name, host, port: 53, udp: true }
}

/** The sandbox's own, from inside. */
function isLoopback(host: string): boolean {
  return host.startsWith('127.') || host === '::1'
}
