import { BlockList, isIP } from 'node:net'

import { SandboxError } from '../errors.ts'

/** A list of single addresses and networks (`10.1.0.0/16`). Throws `invalid_arguments` for what is neither. */
export function readAddressList(entries: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const entry of entries) {
    const [address = '', bits, ...more] = entry.split('/')
    const family = address.includes('%') ? 0 : isIP(address)
    const most = family === 4 ? 32 : 128
    const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : -1
    if (family === 0 || more.length > 0 || prefix < 0 || prefix > most)
      throw new SandboxError(
        'invalid_arguments',
        `"${entry}" is not an address or a network like 10.1.2.3 or 10.1.0.0/16.`,
      )
    list.addSubnet(address, prefix, family === 4 ? 'ipv4' : 'ipv6')
  }
  return (address) =>
    isIP(address) > 0 && !address.includes('%') && list.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6')
}
