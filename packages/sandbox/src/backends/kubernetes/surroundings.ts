import { getServers, promises } from 'node:dns'
import { BlockList, isIP } from 'node:net'

import type { ForbiddenAddress } from '../../backend.ts'
import { connectionError } from './api-error.ts'
import type { Pod } from './objects.ts'

/** No program listens there: a network that carries the attempt answers that it is refused. */
const UNUSED_PORT = 9

/** The sandbox's own, from inside: the kernel takes an unspecified address for the loopback. */
const OWN = new BlockList()
OWN.addSubnet('127.0.0.0', 8)
for (const address of ['0.0.0.0', '::1', '::']) OWN.addAddress(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

/**
 * One address of each part of a cluster's surroundings, seen from the Pod `id`. `pods`: those of
 * this deployment; `resolvers`: those of the cluster, where this process is a Pod. Rejects with
 * `engine_unavailable` where the server's name has no address now.
 */
export async function surroundings(
  server: URL,
  pods: readonly Pod[],
  id: string,
  resolvers: readonly string[] = getServers(),
): Promise<ForbiddenAddress[]> {
  const servers = await addressesOf(server)
  const node = pods.find(({ metadata }) => metadata.name === id)?.status?.hostIP
  const neighbour = pods.find(({ metadata, status }) => metadata.name !== id && status?.podIP !== undefined)
  return [
    ...servers.map((address) => at('the API server', address, Number(server.port || 443))),
    ...(node === undefined ? [] : [at('its node', node, 10_250), dns('the DNS of its node', node)]),
    ...resolvers.map((host) => dns('the DNS', host)),
    ...(neighbour?.status?.podIP === undefined
      ? []
      : [at('another sandbox', neighbour.status.podIP, UNUSED_PORT)]),
    at('the metadata of the cloud', '169.254.169.254', 80),
    at('the internet', '1.1.1.1', 443),
    at('the internet by IPv6', '2606:4700:4700::1111', 443),
  ].filter(({ host }) => isElsewhere(host))
}

async function addressesOf(server: URL): Promise<string[]> {
  try {
    const found = await promises.lookup(server.hostname.replace(/^\[|\]$/g, ''), { all: true })
    return found.map(({ address }) => address)
  } catch (error) {
    throw connectionError(error, server, 'find its address')
  }
}

function at(name: string, host: string, port: number): ForbiddenAddress {
  return { name, host, port }
}

function dns(name: string, host: string): ForbiddenAddress {
  return { name, host, port: 53, udp: true }
}

/** An address with a scope names an interface of this machine, which a sandbox does not have. */
function isElsewhere(host: string): boolean {
  const family = isIP(host)
  return family !== 0 && !host.includes('%') && !OWN.check(host, family === 6 ? 'ipv6' : 'ipv4')
}
