import { expect, test } from 'vitest'

import { resolveName } from '../../src/egress/resolve.ts'
import { startDns } from '../support/test-dns.ts'

test('all addresses of a name, asked as it is; none is an error', async () => {
  const dns = await startDns((name) => (name === 'two.test' ? ['192.0.2.1', '192.0.2.2'] : []))
  try {
    const servers = [`127.0.0.1:${dns.port}`]
    expect((await resolveName('two.test', servers)).toSorted()).toEqual(['192.0.2.1', '192.0.2.2'])
    await expect(resolveName('absent', servers)).rejects.toMatchObject({ code: 'ENOTFOUND' })
    // For both families, and with no search domain behind it.
    expect(dns.asked).toEqual(['two.test', 'two.test', 'absent', 'absent'])
  } finally {
    dns.close()
  }
})
