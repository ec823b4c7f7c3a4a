import { Resolver } from 'node:dns/promises'

/**
 * All addresses of a name from the name servers of this machine, IPv4 and IPv6 alternating. Rejects
 * when there are none. Not the operating system's `lookup`, which also asks the machine's search
 * domains, and occupies one of this process's four threads, needed for all file access, while a
 * name server is silent.
 */
export async function resolveName(host: string, servers?: readonly string[]): Promise<string[]> {
  // A new one each time: it reads the list of name servers once, and laptops move.
  const resolver = new Resolver({ timeout: 3_000, tries: 2 })
  if (servers) resolver.setServers(servers)
  const [four, six] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
  if (four.status === 'rejected' && six.status === 'rejected') throw four.reason
  const lists = [four, six].map((found) => (found.status === 'fulfilled' ? found.value : []))
  const longest = Math.max(...lists.map((list) => list.length))
  return Array.from({ length: longest }, (_none, at) =>
    lists.flatMap((list) => list.slice(at, at + 1)),
  ).flat()
}
