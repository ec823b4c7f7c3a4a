/**
 * Rows N01–N12 of the hostile-input table, and what people do with a network, in real sandboxes.
 */
import { createHash, randomBytes } from 'node:crypto'
import { connect, createServer } from 'node:net'

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

import { extent } from '../../../../test/campaign.ts'
import type { Sandbox } from '../../src/sandbox.ts'
import { dockerFixture, type DockerFixture, shell } from '../support/docker-fixture.ts'
import { sh } from '../contract/harness.ts'
import { type Handler, type Origin, startOrigin, watchedEgress } from '../support/egress-fixture.ts'
import { startDns, type TestDns } from '../support/test-dns.ts'

const WAIT = { timeout: 100_000, interval: 50 }
const MiB = 1024 * 1024

let fixture: DockerFixture
let dns: TestDns
let origin: Origin
let egress: ReturnType<typeof watchedEgress>
let ann: Sandbox
/** Path → what the server on this machine answers. */
const pages = new Map<string, Handler>()
/** Names that lead elsewhere than to this machine; each answer is used once. */
const elsewhere = new Map<string, string[][]>()

beforeAll(async () => {
  fixture = await dockerFixture()
  dns = await startDns(
    (name) => elsewhere.get(name)?.shift() ?? (name.startsWith('absent') ? [] : ['127.0.0.1']),
  )
  origin = await startOrigin((request, response) => {
    const page = pages.get((request.url ?? '').split('?')[0] ?? '')
    if (page) page(request, response)
    else response.writeHead(404).end()
  })
  pages.set('/hello', (_request, response) => response.end('hello from outside'))
  egress = watchedEgress({
    allowAddresses: ['127.0.0.1', '127.77.77.77'],
    allow: [
      'allowed.test',
      ...['allowed', 'rebind', 'npm', 'pip', 'git'].map((name) => `${name}.test:${origin.port}`),
    ],
    resolve: (host) => dns.resolve(host),
    budgets: { connections: 100, connectionsPerMinute: 1_000_000, requestMs: 60_000 },
  })
  ann = await fixture.controller({ network: { egress: egress.options } }).acquire('ann')
})
afterAll(async () => {
  await fixture.dispose()
  await origin.close()
  dns.close()
})

const run = async (command: string, sandbox = ann): Promise<string> =>
  (await shell(sandbox, command)).output.trim()
const lastOf = (host: string) => egress.audits.findLast((record) => record.host === host)

/**
 * Say each of these to the loopback proxy and give the status of the answer, or how the connection
 * ended.
 */
async function sayAll(texts: readonly string[]): Promise<string[]> {
  const program = `
import socket, sys, json
for text in json.load(sys.stdin):
    s = socket.create_connection(("127.0.0.1", 3128), 60)
    try:
        s.sendall(text.encode("latin-1"))
        got = b""
        while True:
            part = s.recv(65536)
            if not part: break
            got += part
        print(got.split(b" ")[1].decode() if b" " in got else "closed")
    except OSError as e:
        print("reset")
    s.close()`
  await ann.files.write('say.py', Buffer.from(program))
  await ann.files.write('say.json', Buffer.from(JSON.stringify(texts)))
  return (await run('python3 say.py < say.json')).split('\n')
}

const get = (address: string, host = address): string =>
  `GET http://${address}/hello HTTP/1.1\r\nHost: ${host}\r\n\r\n`
const tunnel = (to: string): string => `CONNECT ${to} HTTP/1.1\r\nHost: ${to}\r\n\r\n`

describe('without any help', () => {
  test('N01: the only interface is lo', async () => {
    expect(await run("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; ls /sys/class/net")).toBe('lo\nlo')
  })

  test('N02: no address outside answers, nor does anything but our listener inside', async () => {
    const targets = [
      '169.254.169.254/80',
      '172.17.0.1/80',
      `172.17.0.1/${origin.port}`,
      '10.0.0.1/80',
      '172.16.0.1/80',
      '192.168.0.1/80',
      '1.1.1.1/53',
      `127.0.0.1/${origin.port}`,
      `::1/${origin.port}`,
      '::1/3128',
      'fe80::1/80',
    ]
    const tried = await run(
      targets.map((to) => `timeout 20 bash -c ': < /dev/tcp/${to}' 2>/dev/null; echo ${to} $?`).join('\n'),
    )
    expect(tried.split('\n')).toEqual(targets.map((to) => `${to} 1`))
  })

  test('N03: no name is asked for, neither by the sandbox nor for a host that is refused', async () => {
    const before = dns.asked.length
    const name = `x${randomBytes(6).toString('hex')}.example.test`
    expect(
      await run(`getent hosts ${name}; echo $?; curl -s -o /dev/null -w '%{http_code}' http://${name}/`),
    ).toBe('2\n403')
    expect(dns.asked.slice(before)).toEqual([])
  })
})

describe('the way out', () => {
  test('N04: an allowed host by name works and is audited', async () => {
    expect(await run(`curl -s http://allowed.test:${origin.port}/hello`)).toBe('hello from outside')
    await vi.waitFor(
      () => expect(lastOf('allowed.test')).toMatchObject({ decision: 'allowed', port: origin.port }),
      WAIT,
    )
    expect(lastOf('allowed.test')).toMatchObject({
      userId: 'ann',
      address: '127.0.0.1',
      port: origin.port,
      method: 'GET',
      bytesDown: 18,
    })
    expect(lastOf('allowed.test')?.commandId).toMatch(/^[0-9a-f]{32}$/)
  })

  test('N05, N06, N11: names that are not exactly allowed, addresses in any notation, requests with two meanings', async () => {
    const port = origin.port
    const there = `allowed.test:${port}`
    const accepted = [get(there), get(`ALLOWED.test.:${port}`), get(there, `Allowed.TEST:${port}`)]
    const refused = [
      get(`evil.test\0.allowed.test:${port}`),
      get(`allowed.test@evil.test:${port}`),
      get(`allowed.test.evil.test:${port}`),
      get(`allowed%2etest:${port}`),
      get(`allowed\u00e3\u0080\u0082test:${port}`),
      get(`allowed\u00ef\u00bc\u008etest:${port}`),
      get(`xn--llowed-6fg.test:${port}`),
      get(`xn--allowed-.test:${port}`),
      get(`allowed.test..:${port}`),
      get('2852039166'),
      get('0xA9FEA9FE'),
      get('0251.0376.0251.0376'),
      get('169.254.169.254'),
      get('127.1'),
      get('[::ffff:169.254.169.254]'),
      get('[fe80::1%25lo]'),
      get('[::1]'),
      get(`127.0.0.1:${port}`),
      get('localhost'),
      tunnel('169.254.169.254:443'),
      tunnel('[::1]:443'),
      tunnel('allowed.test@evil.test:443'),
      get(there, 'evil.test'),
      get(there, `evil.test:${port}`),
      get('evil.test', there),
      `POST http://${there}/hello HTTP/1.1\r\nHost: ${there}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      `GET http://${there}/hello HTTP/1.1\r\nHost: ${there}\r\nX: a\r\n b\r\n\r\n`,
      `GET http://${there}/hello HTTP/1.1\nHost: ${there}\n\n`,
      `GET http://${there}/hello HTTP/1.1\r\nHost : ${there}\r\n\r\n`,
      'GET /hello HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
      '\x05\x01\x00',
      '\x04\x01\x00\x50\x7f\x00\x00\x01\x00',
      '\x16\x03\x01\x00\x05hello',
    ]
    const answers = await sayAll([...accepted, ...refused])
    expect(answers.slice(0, accepted.length)).toEqual(accepted.map(() => '200'))
    const wrong = refused.filter(
      (_text, index) => !['400', '403'].includes(answers[accepted.length + index] ?? ''),
    )
    expect(wrong).toEqual([])
  })

  test('N07: a name that changes: what was checked is dialled, a private answer is refused, nothing is asked twice', async () => {
    elsewhere.set('rebind.test', [['127.0.0.1'], ['10.0.0.1'], ['127.0.0.1', '169.254.169.254']])
    const before = dns.asked.length
    const host = `rebind.test:${origin.port}`
    expect(await sayAll([get(host), get(host), get(host)])).toEqual(['200', '403', '403'])
    expect(dns.asked.slice(before)).toEqual(['rebind.test', 'rebind.test', 'rebind.test'])
    // Each is reported at its end, and these may end in any order.
    await vi.waitFor(() => {
      const audits = egress.audits.filter((record) => record.host === 'rebind.test')
      expect(audits.flatMap(({ address }) => address ?? [])).toEqual(['127.0.0.1'])
      expect(audits.filter(({ reason }) => reason === 'private_address')).toHaveLength(2)
    }, WAIT)
  })

  test('N08: a redirect is a new request, and refused like any other', async () => {
    pages.set('/away', (_request, response) =>
      response.writeHead(302, { Location: 'http://169.254.169.254/latest' }).end(),
    )
    pages.set('/other', (_request, response) =>
      response.writeHead(302, { Location: 'http://other.test/' }).end(),
    )
    const there = `http://allowed.test:${origin.port}`
    const follow = `curl -sL -o /dev/null -w '%{http_code} '`
    expect(await run(`${follow} ${there}/away; ${follow} ${there}/other`)).toBe('400 403')
  })

  test('N09: other ports than 80 and 443 are refused', async () => {
    expect(await sayAll(['22', '25', '2375', '6443'].map((port) => tunnel(`allowed.test:${port}`)))).toEqual([
      '403',
      '403',
      '403',
      '403',
    ])
  })

  test('N09: through a tunnel to 443 goes TLS for that name, and nothing else', async (context) => {
    const said: number[] = []
    const tls = createServer((socket) => {
      socket
        .on('error', () => {})
        .on('data', (chunk) => {
          said.push(chunk[0] ?? 0)
          socket.destroy()
        })
    })
    const error = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
      tls.once('error', resolve).listen(443, '127.77.77.77', () => resolve(undefined))
    })
    // Only root may listen there.
    if (error) return context.skip(`cannot listen on port 443: ${error.code}`)
    elsewhere.set(
      'allowed.test',
      Array.from({ length: 8 }, () => ['127.77.77.77']),
    )
    try {
      expect(await sayAll([`${tunnel('allowed.test:443')}GET / HTTP/1.1\r\n\r\n`])).toEqual(['reset'])
      await vi.waitFor(
        () =>
          expect(egress.audits).toContainEqual(
            expect.objectContaining({ host: 'allowed.test', port: 443, reason: 'not_tls' }),
          ),
        WAIT,
      )
      const front = 'curl -sk --connect-to front.test:443:allowed.test:443 https://front.test/'
      expect((await sh(ann, front)).refusedHosts).toEqual([
        { host: 'allowed.test', port: 443, reason: 'other_name' },
      ])
      // To an address a client says no name.
      const nameless = 'curl -sk --connect-to 192.0.2.1:443:allowed.test:443 https://192.0.2.1/'
      expect((await sh(ann, nameless)).refusedHosts).toEqual([
        { host: 'allowed.test', port: 443, reason: 'other_name' },
      ])
      expect(said).toEqual([])
      expect((await sh(ann, 'curl -sk https://allowed.test/')).refusedHosts).toEqual([])
      expect(said).toEqual([22])
    } finally {
      elsewhere.delete('allowed.test')
      tls.close()
    }
  })

  test('N10: many connections at once are served or told 429, and all places come back', async () => {
    // So many at the same time, by programs that may each have 4,096 descriptors.
    const programs = extent(1, 4)
    const each = extent(500, 2_500)
    const program = `
import asyncio, sys, collections
async def one(n):
    try:
        r, w = await asyncio.open_connection("127.0.0.1", 3128)
        w.write(b"GET http://allowed.test:${origin.port}/hello HTTP/1.1\\r\\nHost: allowed.test:${origin.port}\\r\\n\\r\\n")
        got = await r.read()
        w.close()
        return got.split(b" ")[1].decode()
    except OSError as e:
        return type(e).__name__
async def main():
    print(dict(collections.Counter(await asyncio.gather(*[one(n) for n in range(int(sys.argv[1]))]))))
asyncio.run(main())`
    await ann.files.write('many.py', Buffer.from(program))
    const seen: Record<string, number> = {}
    const out = await run(`for i in $(seq ${programs}); do python3 many.py ${each} & done; wait`)
    for (const [, status, times] of out.matchAll(/'(\w+)': (\d+)/g))
      seen[status ?? ''] = (seen[status ?? ''] ?? 0) + Number(times)
    expect(Object.keys(seen).filter((status) => !['200', '429'].includes(status))).toEqual([])
    expect((seen['200'] ?? 0) + (seen['429'] ?? 0)).toBe(programs * each)
    expect(seen['200']).toBeGreaterThan(0)
    // All places are free again.
    expect(await run(`curl -s http://allowed.test:${origin.port}/hello`)).toBe('hello from outside')
    await vi.waitFor(() => expect(origin.open()).toBe(0), WAIT)
  })

  test('N10: a slow request gets 408, one over the budget is cut off with a Retry-After', async () => {
    const hasty = watchedEgress({ allow: [], budgets: { requestMs: 500 } })
    const eve = await fixture.controller({ network: { egress: hasty.options } }).acquire('eve')
    expect(
      await run(
        `exec 3<>/dev/tcp/127.0.0.1/3128; printf 'GET http://slow' >&3; head -1 <&3 | cut -d' ' -f2`,
        eve,
      ),
    ).toBe('408')
    await vi.waitFor(() => expect(hasty.audits.map(({ reason }) => reason)).toEqual(['too_slow']), WAIT)
    expect(hasty.events.map(({ reason }) => reason)).toEqual(['too_slow'])
    const small = watchedEgress({ allow: [`allowed.test:${origin.port}`], budgets: { bytes: 5 * MiB } })
    const dee = await fixture.controller({ network: { egress: small.options } }).acquire('dee')
    pages.set('/take', (request, response) => request.resume().on('end', () => response.end()))
    const there = `http://allowed.test:${origin.port}`
    const status = `curl -s -o /dev/null -w '%{http_code} '`
    // Ten gigabytes, of which no more is ever made than is taken.
    expect(
      await run(`head -c 10G /dev/zero | ${status} -T - ${there}/take; ${status} ${there}/hello`, dee),
    ).toMatch(/^(429|000) 429$/)
    await vi.waitFor(
      () => expect(small.audits.map(({ reason }) => reason)).toEqual(['byte_budget', 'byte_budget']),
      WAIT,
    )
    expect(small.events.map(({ reason }) => reason)).toEqual(['byte_budget', 'byte_budget'])
  })

  test('N12: no user reaches the egress of another', async () => {
    const mine = watchedEgress({ allow: [] })
    const bob = await fixture.controller({ network: { egress: mine.options } }).acquire('bob')
    expect(
      await run(`curl -s -o /dev/null -w '%{http_code}' http://allowed.test:${origin.port}/bob`, bob),
    ).toBe('403')
    expect(await run("curl -s -o /dev/null -w '%{http_code}' http://bob.test/", bob)).toBe('403')
    await vi.waitFor(
      () =>
        expect(mine.audits).toEqual(
          Array.from({ length: 2 }, () => expect.objectContaining({ userId: 'bob', reason: 'not_allowed' })),
        ),
      WAIT,
    )
    expect(egress.audits.filter(({ host }) => host === 'bob.test')).toEqual([])
    // Nor is there anything on this machine.
    const onHost = await new Promise((resolve) => {
      const socket = connect({ port: 3128, host: '127.0.0.1' })
      socket
        .once('connect', () => resolve('open'))
        .once('error', (error: NodeJS.ErrnoException) => resolve(error.code))
    })
    expect(onHost).toBe('ECONNREFUSED')
  })

  test('none by default: no variables, no listener', async () => {
    const cid = await fixture.controller().acquire('cid')
    expect(
      await run(
        "env | grep -ci proxy; timeout 20 bash -c ': < /dev/tcp/127.0.0.1/3128' 2>/dev/null; echo $?",
        cid,
      ),
    ).toBe('0\n1')
  })
})

describe('what people do', () => {
  test('npm install', async () => {
    await run(
      `mkdir -p pkg/demo && cd pkg/demo && echo '{"name":"demo","version":"1.2.3","main":"i.js"}' > package.json && echo 'module.exports = "from npm"' > i.js && npm pack --silent`,
    )
    const tarball = Buffer.from(await ann.files.read('pkg/demo/demo-1.2.3.tgz'))
    const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`
    pages.set('/demo', (_request, response) => {
      const dist = { tarball: `http://npm.test:${origin.port}/demo.tgz`, integrity }
      const versions = { '1.2.3': { name: 'demo', version: '1.2.3', main: 'i.js', dist } }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ name: 'demo', 'dist-tags': { latest: '1.2.3' }, versions }))
    })
    pages.set('/demo.tgz', (_request, response) => response.end(tarball))
    const told = await run(
      `mkdir -p app && cd app && npm install --registry http://npm.test:${origin.port}/ demo 2>&1; node -p 'require("demo")'`,
    )
    expect(told).toMatch(/from npm$/)
    await vi.waitFor(() => expect(lastOf('npm.test')?.commandId).toBeDefined(), WAIT)
  })

  test('pip install', async () => {
    await run(`python3 - <<'END'
import zipfile
with zipfile.ZipFile("demo_pip-1.0-py3-none-any.whl", "w") as z:
    z.writestr("demo_pip.py", "said = 'from pip'\\n")
    z.writestr("demo_pip-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: demo-pip\\nVersion: 1.0\\n")
    z.writestr("demo_pip-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    z.writestr("demo_pip-1.0.dist-info/RECORD", "")
END`)
    const name = 'demo_pip-1.0-py3-none-any.whl'
    const wheel = Buffer.from(await ann.files.read(name))
    pages.set('/simple/demo-pip/', (_request, response) => {
      response.setHeader('content-type', 'text/html')
      response.end(`<!DOCTYPE html><a href="/${name}">${name}</a>`)
    })
    pages.set(`/${name}`, (_request, response) => response.end(wheel))
    const told = await run(
      `pip install -q --no-cache-dir --index-url http://pip.test:${origin.port}/simple --trusted-host pip.test demo-pip; python3 -c 'import demo_pip; print(demo_pip.said)'`,
    )
    expect(told).toMatch(/from pip$/)
  })

  test('git clone, and a clone from elsewhere is named in the result', async () => {
    await run(
      `git init -q src && cd src && echo 'from git' > file && git add . && git commit -qm one && cd .. && git clone -q --bare src repo.git && git --git-dir=repo.git repack -qad && git --git-dir=repo.git update-server-info`,
    )
    const serve = async (path: string): Promise<void> => {
      for (const entry of await ann.files.list(path)) {
        if (entry.kind === 'directory') await serve(entry.path)
        else if (entry.kind === 'file') {
          const bytes = Buffer.from(await ann.files.read(entry.path))
          pages.set(`/${entry.path}`, (_request, response) => response.end(bytes))
        }
      }
    }
    await serve('repo.git')
    expect(await run(`git clone -q http://git.test:${origin.port}/repo.git cloned; cat cloned/file`)).toBe(
      'from git',
    )
    const other = await sh(ann, 'git clone -q https://elsewhere.test/repo.git')
    expect(other.code).not.toBe(0)
    expect(other.refusedHosts).toEqual([{ host: 'elsewhere.test', port: 443, reason: 'not_allowed' }])
    expect(egress.events).toContainEqual(
      expect.objectContaining({ userId: 'ann', host: 'elsewhere.test', commandId: expect.any(String) }),
    )
  })

  test('a big transfer in both directions arrives whole; a reader that waits holds the server', async () => {
    const size = extent(48, 200) * MiB
    const bytes = randomBytes(size)
    const hash = createHash('sha256').update(bytes).digest('hex')
    let taken = 0
    pages.set('/big', (_request, response) => {
      response.setHeader('content-length', size)
      const pour = (): void => {
        while (taken < size) {
          const piece = bytes.subarray(taken, taken + 65_536)
          taken += piece.length
          if (!response.write(piece)) return void response.once('drain', pour)
        }
        response.end()
      }
      pour()
    })
    pages.set('/up', (request, response) => {
      const sum = createHash('sha256')
      request
        .on('data', (chunk: Buffer) => sum.update(chunk))
        .on('end', () => response.end(sum.digest('hex')))
    })
    const there = `http://allowed.test:${origin.port}`
    const reading = run(
      `rm -f go; curl -s ${there}/big | { until [ -e go ]; do read -t 0.1 < /dev/zero; done; tee big | sha256sum; }`,
    )
    await vi.waitFor(() => expect(taken).toBeGreaterThan(0), WAIT)
    expect(await run('seq 300000 | tail -1')).toBe('300000')
    // Windows of ours, and the buffers of three pairs of sockets.
    expect(taken).toBeLessThan(44 * MiB)
    await run('touch go')
    expect(await reading).toBe(`${hash}  -`)
    expect(await run(`curl -s -T big ${there}/up`)).toBe(hash)
  })
})
