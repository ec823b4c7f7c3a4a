import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { isInsideAddress } from '../../src/mcp/inside-addresses.ts'
import { oauthFetch } from '../../src/mcp/oauth-fetch.ts'
import { publicFetch } from '../../src/mcp/public-fetch.ts'

describe('where a server may send our requests', () => {
  const reached: string[] = []
  const record = async (url: string | URL): Promise<Response> => {
    reached.push(String(url))
    return new Response('{}')
  }
  const named = ['https://mcp.example.org/mcp']
  const fetch = oauthFetch({ named, toPublic: record, toNamed: record })

  test.each([
    'http://login.example.org/token',
    'https://169.254.169.254/latest',
    'https://10.0.0.1/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://[::1]/',
    'https://[fd00::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://localhost/',
    'https://localhost./',
    'https://metadata.google.internal/',
    'https://metadata.google.internal./',
    'file:///etc/passwd',
  ])('not to %s', async (url) => {
    await expect(fetch(url)).rejects.toThrow('which is not allowed')
  })

  test('to itself, to public names over https, and to what the operator named besides', async () => {
    await fetch('https://mcp.example.org/token')
    await fetch('https://login.example.com/token')
    const intranet = oauthFetch({ named: [...named, 'http://login.corp:8080'], toNamed: record })
    await intranet('http://login.corp:8080/token')
    expect(reached).toEqual([
      'https://mcp.example.org/token',
      'https://login.example.com/token',
      'http://login.corp:8080/token',
    ])
  })
})

test('which addresses are inside', () => {
  const inside = ['10.1.2.3', '127.9.9.9', '100.64.1.1', '192.168.0.1', '0.0.0.0', '255.255.255.255']
  const inside6 = ['::1', '::', 'fd12::1', 'fe80::1', '::ffff:8.8.8.8', '2002:7f00:1::', '64:ff9b::a00:1']
  const outside = ['8.8.8.8', '203.0.113.7', '100.128.0.1', '172.32.0.1', '2606:4700::1111', '2a00:1450::1']
  expect([...inside, ...inside6].filter((address) => !isInsideAddress(address))).toEqual([])
  expect(outside.filter(isInsideAddress)).toEqual([])
})

describe('a name that leads inside', () => {
  test('is refused where the connection is made: what it was before, or says next, does not matter', async () => {
    let asked = 0
    let connections = 0
    const server = createServer((_request, response) => response.end('{}')).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    server.on('connection', () => connections++)
    const { port } = server.address() as AddressInfo
    // Public when somebody looks first, this machine when it is used.
    const addresses = ['203.0.113.7', '127.0.0.1', '127.0.0.1']
    const rebinding = publicFetch((_name, told) => {
      const address = addresses[asked++] ?? ''
      told(null, [{ address, family: 4 }])
    })
    const patience = { signal: AbortSignal.timeout(50) }
    await expect(rebinding(`http://login.example.org:${port}/`, patience)).rejects.toThrow('fetch failed')
    await expect(rebinding(`http://login.example.org:${port}/`)).rejects.toThrow(
      'login.example.org is at 127.0.0.1, which is not a public one',
    )
    expect([asked, connections]).toEqual([2, 0])
    server.close()
  })

  test('is refused when only one of its addresses does', async () => {
    const mixed = publicFetch((_name, told) =>
      told(null, [
        { address: '203.0.113.7', family: 4 },
        { address: 'fd00::7', family: 6 },
      ]),
    )
    await expect(mixed('http://login.example.org/')).rejects.toThrow('fd00::7')
  })
})
