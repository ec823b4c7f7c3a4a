import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { isPrivateHost } from '../../src/node/addresses.ts'
import { safeFetch } from '../../src/node/safe-fetch.ts'

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
    await expect(safeFetch({ loopback: true })(`http://127.0.0.1:${port}/`)).rejects.toThrow('fetch failed')
    const odd = safeFetch({ loopback: true })('ftp://127.0.0.1/')
    await expect(odd).rejects.toThrow('ftp:')
    await new Promise((resolve) => server.close(resolve))
  },
)

test('behind a proxy only requests that go through it are not checked here', async () => {
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
    const { safeFetch } = await import(${JSON.stringify(new URL('../../src/node/safe-fetch.ts', import.meta.url).href)})
    const looked = []
    const fetch = safeFetch({ resolve: (name, told) => {
      looked.push(name)
      told(null, [{ address: '169.254.169.254', family: 4 }])
    } })
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

test('which addresses are private', () => {
  const inside = ['10.1.2.3', '127.9.9.9', '100.64.1.1', '192.168.0.1', '0.0.0.0', '255.255.255.255']
  const inside6 = ['::1', '::', 'fd12::1', 'fe80::1', '::ffff:8.8.8.8', '2002:7f00:1::', '64:ff9b::a00:1']
  const outside = ['8.8.8.8', '93.184.215.14', '100.128.0.1', '172.32.0.1', '2606:4700::1111', '2a00:1450::1']
  expect([...inside, ...inside6].filter((address) => !isPrivateHost(address))).toEqual([])
  expect(outside.filter(isPrivateHost)).toEqual([])
})

describe('a name with a private address', () => {
  test('is refused where the connection is made, whatever it resolves to before or afterwards', async () => {
    let asked = 0
    let connections = 0
    const server = createServer((_request, response) => response.end('{}')).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    server.on('connection', () => connections++)
    const { port } = server.address() as AddressInfo
    // Public in the first lookup, this machine in the next.
    const addresses = ['93.184.215.14', '127.0.0.1', '127.0.0.1']
    const rebinding = safeFetch({
      resolve: (_name, done) => {
        const address = addresses[asked++] ?? ''
        done(null, [{ address, family: 4 }])
      },
    })
    const patience = { signal: AbortSignal.timeout(50) }
    await expect(rebinding(`http://login.example.org:${port}/`, patience)).rejects.toThrow('fetch failed')
    await expect(rebinding(`http://login.example.org:${port}/`)).rejects.toThrow(
      'login.example.org is at 127.0.0.1, which is not a public one',
    )
    expect([asked, connections]).toEqual([2, 0])
    server.close()
  })

  test('is refused when only one of its addresses is private', async () => {
    const mixed = safeFetch({
      resolve: (_name, done) =>
        done(null, [
          { address: '93.184.215.14', family: 4 },
          { address: 'fd00::7', family: 6 },
        ]),
    })
    await expect(mixed('http://login.example.org/')).rejects.toThrow('fd00::7')
  })
})

describe('a server that answers without end', () => {
  /** The status and the headers, then endless bytes. */
  const endless = async (head: Record<string, string>): Promise<{ url: string } & AsyncDisposable> => {
    const server = createServer((_request, response) => {
      response.writeHead(200, head)
      const write = (): void => {
        while (response.write('x'.repeat(1_000)));
      }
      response.on('drain', write)
      write()
    }).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const close = async (): Promise<void> => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
    const { port } = server.address() as AddressInfo
    return { url: `http://127.0.0.1:${port}/`, [Symbol.asyncDispose]: close }
  }

  test.each(['application/json', 'text/event-stream'])('is cut off at the bound: %s', async (type) => {
    await using server = await endless({ 'content-type': type })
    const cut: string[] = []
    const onCutOff = ({ message }: Error): void => void cut.push(message)
    const fetch = safeFetch({ loopback: true, maxBytes: 5_000, onCutOff })
    await expect((await fetch(server.url)).text()).rejects.toThrow('more than 5000 bytes')
    expect(cut).toEqual(['it sent a message of more than 5000 bytes'])
  })

  test('is cut off at the time limit, also in the middle of its answer', async () => {
    await using server = await endless({})
    const response = await safeFetch({ loopback: true, timeoutMs: 1_500 })(server.url)
    const read = async (): Promise<void> => {
      for await (const _ of response.body ?? []);
    }
    await expect(read()).rejects.toThrow()
  })
})

test('a redirect is returned and not followed', async () => {
  let seen = 0
  const server = createServer((_request, response) => {
    seen++
    response.writeHead(302, { location: '/elsewhere' }).end()
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const response = await safeFetch({ loopback: true })(`http://127.0.0.1:${port}/`)
  expect([response.status, response.headers.get('location'), seen]).toEqual([302, '/elsewhere', 1])
  await new Promise((resolve) => server.close(resolve))
})

test.each(['http://10.0.0.1/', 'http://[::1]/', 'http://2130706433/', 'http://[::ffff:10.0.0.1]/'])(
  'an address of a private network in the URL itself: %s',
  async (url) => {
    await expect(safeFetch()(url)).rejects.toThrow('is an address of a private network')
  },
)

test('a host that is refused by a rule is not connected to', async () => {
  const asked: [string, number][] = []
  const refusal = async (host: string, port: number): Promise<string> => {
    asked.push([host, port])
    return 'a rule denies it'
  }
  const resolve = (): never => {
    throw new Error('looked up')
  }
  const fetch = safeFetch({ refusal, resolve })
  await expect(fetch('https://far.example/')).rejects.toThrow('a rule denies it')
  await expect(fetch('http://[2606:4700::1111]:81/')).rejects.toThrow('a rule denies it')
  expect(asked).toEqual([
    ['far.example', 443],
    ['2606:4700::1111', 81],
  ])
})
