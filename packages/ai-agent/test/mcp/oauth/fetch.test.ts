import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { isInsideHost } from '../../../src/mcp/transports/inside-hosts.ts'
import { oauthFetch } from '../../../src/mcp/oauth/fetch.ts'
import { publicFetch } from '../../../src/mcp/transports/public-fetch.ts'

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

  test('from this machine to this machine, and not to what is inside besides', async () => {
    const reached: string[] = []
    const toNamed = async (url: string | URL): Promise<Response> => {
      reached.push(String(url))
      return new Response('{}')
    }
    const here = oauthFetch({ named: ['http://127.0.0.1:1/mcp'], toPublic: record, toNamed })
    const inside = oauthFetch({ named: ['http://mcp.internal/mcp'], toPublic: record, toNamed })
    await here('http://localhost:2/token')
    for (const url of ['http://169.254.169.254/token', 'http://10.0.0.1/', 'http://login.internal/'])
      for (const fetch of [here, inside]) await expect(fetch(url)).rejects.toThrow('which is not allowed')
    await expect(inside('http://127.0.0.1:2/')).rejects.toThrow('which is not allowed')
    expect(reached).toEqual(['http://localhost:2/token'])
  })
})

test.each([
  'HTTP/1.1 600 x',
  'HTTP/1.1 999 x',
  'HTTP/1.1 099 x',
  'HTTP/1.1 101 x\r\nUpgrade: x\r\nConnection: upgrade',
])(
  'an answer that no `Response` can be (%j) is a failure of the request, and of nothing else',
  async (head) => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined)
      socket.on('data', () => socket.write(`${head}\r\n\r\n`))
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    await expect(publicFetch()(`http://127.0.0.1:${port}/`)).rejects.toThrow('fetch failed')
    const odd = publicFetch()('ftp://127.0.0.1/')
    await expect(odd).rejects.toThrow('ftp:')
    await new Promise((resolve) => server.close(resolve))
  },
)

test('behind a proxy only what goes through it is not looked at here', async () => {
  const through: string[] = []
  const proxy = createServer().listen(0, '127.0.0.1')
  proxy.on('connect', (request, socket) => {
    through.push(request.url ?? '')
    socket.end('HTTP/1.1 502 no\r\n\r\n')
  })
  await new Promise((resolve) => proxy.once('listening', resolve))
  const asked = [
    'https://far.example',
    'http://far.example',
    'https://a.corp',
    'https://b.sub.corp',
    'https://c.lan:8443',
  ]
  const script = `
    const { publicFetch } = await import(${JSON.stringify(new URL('../../../src/mcp/transports/public-fetch.ts', import.meta.url).href)})
    const looked = []
    const fetch = publicFetch((name, told) => {
      looked.push(name)
      told(null, [{ address: '169.254.169.254', family: 4 }])
    })
    for (const url of ${JSON.stringify(asked)}) await fetch(url).catch(() => undefined)
    console.log(JSON.stringify(looked))`
  const env = {
    PATH: process.env['PATH'],
    NODE_USE_ENV_PROXY: '1',
    HTTPS_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    NO_PROXY: '*.corp, c.lan:8443',
  }
  const options = ['--conditions=sandlot-source', '--input-type=module', '--eval', script]
  const { stdout } = await promisify(execFile)(process.execPath, options, { env })
  expect(JSON.parse(stdout)).toEqual(['far.example', 'a.corp', 'b.sub.corp', 'c.lan'])
  expect(through).toEqual(['far.example:443'])
  await new Promise((resolve) => proxy.close(resolve))
})

test('which addresses are inside', () => {
  const inside = ['10.1.2.3', '127.9.9.9', '100.64.1.1', '192.168.0.1', '0.0.0.0', '255.255.255.255']
  const inside6 = ['::1', '::', 'fd12::1', 'fe80::1', '::ffff:8.8.8.8', '2002:7f00:1::', '64:ff9b::a00:1']
  const outside = ['8.8.8.8', '93.184.215.14', '100.128.0.1', '172.32.0.1', '2606:4700::1111', '2a00:1450::1']
  expect([...inside, ...inside6].filter((address) => !isInsideHost(address))).toEqual([])
  expect(outside.filter(isInsideHost)).toEqual([])
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
    const addresses = ['93.184.215.14', '127.0.0.1', '127.0.0.1']
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
        { address: '93.184.215.14', family: 4 },
        { address: 'fd00::7', family: 6 },
      ]),
    )
    await expect(mixed('http://login.example.org/')).rejects.toThrow('fd00::7')
  })
})
