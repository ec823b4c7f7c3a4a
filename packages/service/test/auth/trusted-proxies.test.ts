/** From where a request comes: the word of a proxy counts where the operator trusts it. */
import { networkInterfaces } from 'node:os'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { clientAddress, trustedProxies } from '../../src/auth/trusted-proxies.ts'
import { readServiceConfig } from '../../src/config.ts'
import { ANN, browser, cookieOf, setUp, startHarness } from '../support/harness.ts'

const PUBLIC = 'https://chat.example.org'
const trustedBy = (names?: string, publicUrl?: string) =>
  readServiceConfig({ SANDLOT_TRUSTED_PROXIES: names, SANDLOT_PUBLIC_URL: publicUrl }).trustedProxies

test.each<[string, string | undefined, string | undefined, string, string | undefined, string]>([
  ['nothing is named', undefined, undefined, '127.0.0.1', '203.0.113.5', '127.0.0.1'],
  ['a proxy is on this machine', undefined, PUBLIC, '127.0.0.1', '203.0.113.5', '203.0.113.5'],
  ['… over IPv6', undefined, PUBLIC, '::1', '2001:db8::1', '2001:db8::1'],
  ['a neighbour is not named', undefined, PUBLIC, '192.168.1.7', '203.0.113.5', '192.168.1.7'],
  ['… and another one is', '192.168.1.8', PUBLIC, '192.168.1.7', '203.0.113.5', '192.168.1.7'],
  ['… and this machine is not either', '192.168.1.8', PUBLIC, '127.0.0.1', '203.0.113.5', '127.0.0.1'],
  ['a proxy is named', '192.168.1.7', undefined, '192.168.1.7', '203.0.113.5', '203.0.113.5'],
  ['… as IPv4 within IPv6', '192.168.1.7', undefined, '::ffff:192.168.1.7', '203.0.113.5', '203.0.113.5'],
  ['its network is named', 'fd00::/8, 10.1.0.0/16', PUBLIC, '10.1.2.3', '203.0.113.5', '203.0.113.5'],
  [
    'clients add hops of their own',
    '10.0.0.2',
    PUBLIC,
    '10.0.0.2',
    '10.0.0.2, 1.1.1.1, 203.0.113.5',
    '203.0.113.5',
  ],
  [
    'proxies stand in a row',
    '10.0.0.0/8',
    PUBLIC,
    '10.0.0.2',
    '1.1.1.1, 203.0.113.5, 10.0.0.3',
    '203.0.113.5',
  ],
  ['hops have ports', '10.0.0.2', PUBLIC, '10.0.0.2', '203.0.113.5:4711, 10.0.0.2:80', '203.0.113.5'],
  ['… of IPv6', 'fd00::/8', PUBLIC, 'fd00::2', '[2001:db8::1]:4711, [fd00::2]', '2001:db8::1'],
  ['addresses have zones', 'fe80::/10', PUBLIC, 'fe80::2%eth0', 'fe80::3%eth1, 2001:db8::1%0', '2001:db8::1'],
  [
    'an address is IPv4 within IPv6 in hexadecimal',
    '10.0.0.2',
    PUBLIC,
    '::ffff:a00:2',
    '203.0.113.5',
    '203.0.113.5',
  ],
  ['a hop is no address', '10.0.0.2', PUBLIC, '10.0.0.2', '203.0.113.5, <script>', '10.0.0.2'],
  [
    'own networks are named, and no public address',
    'own-networks',
    undefined,
    '127.0.0.1',
    '203.0.113.5',
    '127.0.0.1',
  ],
  ['a proxy says nothing', '10.0.0.2', PUBLIC, '10.0.0.2', undefined, '10.0.0.2'],
])('where %s', (_what, names, publicUrl, peer, said, client) => {
  expect(clientAddress(peer, said, trustedBy(names, publicUrl))).toBe(client)
})

test('a peer that is not trusted is the client, whatever it says', () => {
  const trusted = trustedBy('10.0.0.2,fd00::/8', PUBLIC)
  fc.assert(
    fc.property(fc.ipV4(), fc.string(), (peer, said) => {
      fc.pre(peer !== '10.0.0.2')
      expect(clientAddress(peer, said, trusted)).toBe(peer)
    }),
  )
})

test('the networks of this machine are a name for them', () => {
  const trusted = trustedBy('own-networks', PUBLIC)
  for (const { address } of Object.values(networkInterfaces()).flatMap((all = []) => all))
    if (!address.startsWith('fe80'))
      expect(clientAddress(address, '203.0.113.5', trusted)).toBe('203.0.113.5')
  expect(clientAddress('198.51.100.1', '203.0.113.5', trusted)).toBe('198.51.100.1')
})

test.each(['proxy', '10.0.0.0/33', '10.0.0.0/8/8', 'fd00::/129', '10.0.0.1/-1', '10.0.0.1/', 'fe80::1%eth0'])(
  'what is no address is refused: %s',
  (names) => expect(() => trustedBy(names)).toThrow('SANDLOT_TRUSTED_PROXIES'),
)

test.each([
  ['127.0.0.1', '203.0.113.5'],
  ['192.0.2.1', '127.0.0.1'],
])('a sign-in by a proxy, with %s trusted, is from %s', async (proxy, client) => {
  const harness = await startHarness({ trustedProxies: trustedProxies([proxy], undefined) })
  await setUp(harness)
  const { url } = harness.service
  const { email, password } = ANN
  const forwarded = { 'x-forwarded-for': '203.0.113.5' }
  const ann = browser(
    url,
    cookieOf(await browser(url, '').post('/api/sign-in', { email, password }, forwarded)),
  )
  const { signIns } = (await (await ann.get('/api/account/sign-ins')).json()) as {
    signIns: { current: boolean; address: string }[]
  }
  expect(signIns.find(({ current }) => current)?.address).toBe(client)
  await harness.close()
})
