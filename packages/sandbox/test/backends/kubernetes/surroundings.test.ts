import { expect, test } from 'vitest'

import type { Pod } from '../../../src/backends/kubernetes/objects.ts'
import { surroundings } from '../../../src/backends/kubernetes/surroundings.ts'

function pod(name: string, status: Pod['status']): Pod {
  return { metadata: { name, uid: name }, spec: {}, status } as Pod
}

test('one address of each part; none that a sandbox has itself, nor one with a scope', async () => {
  const pods = [
    pod('mine', { hostIP: '10.0.0.1', podIP: '10.1.0.1' }),
    pod('new', {}),
    pod('other', { hostIP: '10.0.0.2', podIP: '10.1.0.2' }),
  ]
  const resolvers = [
    'fe80::1%eth0',
    '127.0.0.53',
    '::1',
    '0.0.0.0',
    '10.96.0.10:5353',
    '10.96.0.10',
    'fd00::a',
  ]
  const found = await surroundings(new URL('https://[fd00::1]:6443'), pods, 'mine', resolvers)
  expect(found.map(({ host, port, udp = false }) => `${host} ${port}${udp ? ' udp' : ''}`)).toEqual([
    'fd00::1 6443',
    '10.0.0.1 10250',
    '10.0.0.1 53 udp',
    '10.96.0.10 53 udp',
    'fd00::a 53 udp',
    '10.1.0.2 9',
    '169.254.169.254 80',
    '1.1.1.1 443',
    '2606:4700:4700::1111 443',
  ])
  const alone = await surroundings(new URL('https://0.0.0.0'), [], 'mine', ['::ffff:127.0.0.1'])
  expect(alone.map(({ name }) => name)).toEqual([
    'the metadata of the cloud',
    'the internet',
    'the internet by IPv6',
  ])
})

test('a server whose name has no address is out of reach for now', async () => {
  await expect(surroundings(new URL('https://nobody.invalid'), [], 'mine', [])).rejects.toMatchObject({
    name: 'SandboxError',
    code: 'engine_unavailable',
    unreachable: true,
    message: expect.stringContaining('nobody.invalid'),
  })
})
