import { once } from 'node:events'
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { createTemplate } from '@sandlot/sandbox/backends/docker/create-template'
import { DEFAULT_LIMITS } from '@sandlot/sandbox/limits'
import { campaign, extent } from '../../../test/campaign.ts'
import { startGate, type TestGate } from './gate-fixture.ts'
import { openRaw, raw, type RawAnswer, readAnswer, requestText } from './raw-client.ts'
import {
  IMAGE_ID,
  OTHER_DEPLOYMENT,
  OURS,
  recordingEngine,
  type RecordingEngine,
  SLOT,
  STRANGER,
} from './recording-engine.ts'

let engine: RecordingEngine
let gate: TestGate
beforeAll(async () => {
  engine = await recordingEngine()
  gate = await startGate(engine.dockerHost)
})
afterAll(async () => {
  await gate.close()
  await engine.close()
})
beforeEach(() => {
  engine.requests.length = 0
  gate.log.length = 0
})

const NAME = 'sbx-dep-abcdefgh-0123456789abcdef-1'
const body = createTemplate({
  deployment: 'dep',
  imageId: IMAGE_ID,
  seccompProfile: '{"defaultAction":"SCMP_ACT_ERRNO"}',
  engine: { cgroup: 'v2', cpus: 2 },
  fingerprint: 'f00d',
  spec: { ...SLOT, name: NAME, image: 'sandlot/sandbox:latest', limits: DEFAULT_LIMITS, labels: {} },
})
const createText = JSON.stringify(body)
const ask = (method: string, url: string, text = '', headers: string[] = []) =>
  raw(gate.socket, requestText(method, url, text, headers))

describe('what a controller asks reaches the engine in the gate’s own words', () => {
  test('a create', async () => {
    const answer = await ask('POST', `/v1.41/containers/create?name=${NAME}`, createText, [
      `Content-Length: ${Buffer.byteLength(createText)}`,
      'X-Registry-Auth: c2VjcmV0',
      'Cookie: a=b',
    ])
    expect(answer).toMatchObject({ status: 201 })
    const sent = engine.changes()
    expect(sent).toHaveLength(1)
    expect(sent[0]?.url).toBe(`/v1.41/containers/create?name=${NAME}`)
    expect(JSON.parse(sent[0]?.body ?? '')).toEqual(body)
    expect(Object.keys(sent[0]?.headers ?? {}).toSorted()).toEqual([
      'connection',
      'content-length',
      'content-type',
      'host',
    ])
    expect(gate.log).toEqual([expect.objectContaining({ msg: 'created', name: NAME })])
  })

  test.each([
    ['POST', `/v1.41/containers/${OURS}/start`, ''],
    ['POST', `/v1.41/containers/${OURS}/stop?t=2`, '{"t":2}'],
    ['POST', `/v1.41/containers/${OURS}/kill?signal=SIGKILL`, ''],
    ['POST', `/v1.41/containers/${OURS}/pause`, ''],
    ['POST', `/v1.41/containers/${OURS}/unpause`, ''],
    ['POST', `/v1.41/containers/${OURS}/rename?name=sbx-dep-abcdefgh-0123456789abcdef-2`, ''],
    ['POST', `/v1.41/containers/${OURS}/wait?condition=not-running`, ''],
    ['POST', `/v1.41/containers/${OURS}/resize?h=24&w=80`, ''],
    ['DELETE', `/v1.41/containers/${OURS}?force=true&v=false`, ''],
    ['DELETE', `/v1.41/volumes/${SLOT.volume}`, ''],
  ])('%s %s', async (method, url, text) => {
    expect((await ask(method, url, text)).status).toBe(204)
    expect(engine.changes()).toEqual([expect.objectContaining({ method, url, body: '' })])
  })

  test.each([
    ['GET', '/_ping', 200],
    ['HEAD', '/_ping', 200],
    ['GET', '/version', 200],
    ['GET', '/v1.41/info', 200],
    ['GET', '/v1.41/images/sandlot/sandbox:latest/json', 200],
    ['GET', '/v1.41/images/sandlot/sandbox-full:latest/json', 200],
    ['GET', `/v1.41/containers/${OURS}/json`, 200],
    ['GET', '/v1.41/containers/sbx-dep-abcdefgh/json', 200],
    ['GET', `/v1.41/volumes/${SLOT.volume}`, 200],
    ['GET', '/v1.41/volumes/sbx-dep-unknownn', 404],
  ])('%s %s', async (method, url, status) => {
    expect((await ask(method, url)).status).toBe(status)
  })

  test.each([
    ['/v1.41/containers/json', '/v1.41/containers/json', []],
    [
      '/v1.41/containers/json?all=1&filters={"label":["sandlot.slot=x"],"status":["running"]}',
      '/v1.41/containers/json',
      ['sandlot.slot=x'],
    ],
    [
      '/v1.41/containers/json?filters={"label":{"sandlot.deployment=dep":true}}',
      '/v1.41/containers/json',
      [],
    ],
    ['/v1.41/volumes', '/v1.41/volumes', []],
    ['/v1.41/events?since=1', '/v1.41/events', []],
  ])('%s only ever finds ours', async (url, path, more) => {
    const [where = '', query = ''] = url.split('?')
    const encoded = query.replace(
      /filters=(.*)$/,
      (_, filters: string) => `filters=${encodeURIComponent(filters)}`,
    )
    expect((await ask('GET', `${where}${query === '' ? '' : `?${encoded}`}`)).status).toBeLessThan(500)
    const sent = new URL(engine.requests.at(-1)?.url ?? '', 'http://x')
    expect(sent.pathname).toBe(path)
    const filters = JSON.parse(sent.searchParams.get('filters') ?? '') as { label: string[] }
    expect(filters.label).toEqual([...more, 'sandlot.deployment=dep', 'sandlot.role=sandbox'])
  })
})

describe('A03 what is not ours is not there', () => {
  const attempts = [
    [`/containers/${STRANGER}`, 404],
    [`/containers/${OTHER_DEPLOYMENT}`, 404],
    [`/containers/${'e'.repeat(64)}`, 404],
    // A beginning of the id, in any length, and another spelling of it.
    [`/containers/${OURS.slice(0, 63)}`, 403],
    [`/containers/${OURS.slice(0, 12)}`, 403],
    [`/containers/${OURS}a`, 403],
    [`/containers/${OURS.toUpperCase()}`, 403],
    ['/containers/some-database', 403],
    ['/containers/sbx-dep-abcdefgh', 403],
    [`/containers/${OURS}/..`, 403],
    [`/containers/${OURS}/../${STRANGER}`, 403],
    [`/containers/${OURS}%2f..%2f${STRANGER}`, 403],
    [`/containers/.${OURS}`, 403],
  ] as const
  test.each(attempts)('%s', async (path, status) => {
    for (const verb of ['start', 'stop', 'kill', 'pause', 'wait', 'rename?name=sbx-dep-abcdefgh'])
      expect((await ask('POST', `/v1.41${path}/${verb}`)).status, verb).toBe(status)
    expect((await ask('DELETE', `/v1.41${path}?force=1`)).status).toBe(status)
    expect(engine.changes()).toEqual([])
  })
  test.each([
    [`/containers/${STRANGER}/json`, 404],
    [`/containers/${OURS.slice(0, 12)}/json`, 404],
    ['/containers/sbx-other-abcdefgh/json', 404],
    // Named like ours and labelled like somebody else's.
    ['/containers/sbx-dep-zzzzzzzz/json', 404],
    ['/containers/database/json', 404],
    ['/volumes/database', 404],
    ['/volumes/sbx-other-abcdefgh', 404],
    // Ours by name and label, and in truth the host's root.
    ['/volumes/sbx-dep-bindbind', 404],
  ])('GET %s', async (path, status) => {
    expect((await ask('GET', `/v1.41${path}`)).status).toBe(status)
  })
  test('a container is not renamed into another slot', async () => {
    expect((await ask('POST', `/v1.41/containers/${OURS}/rename?name=sbx-dep-zzzzzzzz`)).status).toBe(403)
    expect(engine.changes()).toEqual([])
  })
  test('a create in a volume of another deployment', async () => {
    const other = createText.replaceAll('abcdefgh', 'bindbind')
    expect((await ask('POST', '/v1.41/containers/create?name=sbx-dep-bindbind', other)).status).toBe(404)
    const uid = createText.replaceAll('31234', '31235')
    expect((await ask('POST', `/v1.41/containers/create?name=${NAME}`, uid)).status).toBe(403)
    expect(engine.changes()).toEqual([])
  })
  test('lists and events of another deployment', async () => {
    const filters = encodeURIComponent('{"label":["sandlot.deployment=other"]}')
    for (const path of ['containers/json', 'volumes', 'events']) {
      const answer = await ask('GET', `/v1.41/${path}?filters=${filters}`)
      expect(answer.status).toBe(403)
      expect(answer.body).toContain('SANDLOT_DEPLOYMENT')
    }
    expect(engine.requests).toEqual([])
  })
})

describe('A04 and everything else that an engine can do', () => {
  const on = `/v1.41/containers/${OURS}`
  test.each([
    ['POST', `${on}/exec`],
    ['POST', '/v1.41/exec/abc/start'],
    ['GET', '/v1.41/exec/abc/json'],
    ['GET', `${on}/archive?path=/`],
    ['PUT', `${on}/archive?path=/`],
    ['HEAD', `${on}/archive?path=/`],
    ['GET', `${on}/export`],
    ['GET', `${on}/logs?stdout=1`],
    ['GET', `${on}/top`],
    ['GET', `${on}/changes`],
    ['GET', `${on}/attach/ws`],
    ['POST', `${on}/update`],
    ['POST', `${on}/restart`],
    ['POST', `${on}/copy`],
    ['POST', `${on}/checkpoints`],
    ['POST', `/v1.41/commit?container=${OURS}`],
    ['POST', '/v1.41/containers/prune'],
    ['POST', '/v1.41/volumes/prune'],
    ['PUT', `/v1.41/volumes/${SLOT.volume}`],
    ['POST', '/v1.41/build'],
    ['POST', '/v1.41/build/prune'],
    ['POST', '/v1.41/images/create?fromImage=x'],
    ['POST', '/v1.41/images/load'],
    ['GET', '/v1.41/images/json'],
    ['GET', '/v1.41/images/debian/json'],
    ['GET', '/v1.41/images/sandlot/sandbox:latest/history'],
    ['DELETE', '/v1.41/images/sandlot/sandbox:latest'],
    ['GET', '/v1.41/networks'],
    ['POST', '/v1.41/networks/create'],
    ['GET', '/v1.41/swarm'],
    ['POST', '/v1.41/swarm/init'],
    ['GET', '/v1.41/plugins'],
    ['POST', '/v1.41/plugins/pull'],
    ['GET', '/v1.41/secrets'],
    ['GET', '/v1.41/services'],
    ['GET', '/v1.41/distribution/x/json'],
    ['POST', '/v1.41/auth'],
    ['POST', '/session'],
    ['POST', '/grpc'],
    ['GET', '/v1.41/system/df'],
    ['GET', '/debug/pprof'],
    ['OPTIONS', '/v1.41/info'],
    ['PROPFIND', '/v1.41/info'],
    ['POST', '/v1.41/info'],
    ['GET', '/'],
    ['GET', ''],
  ])('%s %s', async (method, url) => {
    const answer = await ask(method, url === '' ? '/v1.41' : url)
    expect(answer.status).toBe(403)
    if (method !== 'HEAD')
      expect(JSON.parse(answer.body)).toEqual({ message: expect.stringMatching(/^engine-gate: /) as string })
    expect(engine.requests).toEqual([])
    expect(gate.log).toEqual([expect.objectContaining({ msg: 'refused', status: 403, method })])
  })
})

describe('a path is taken as it is written', () => {
  const start = `containers/${OURS}/start`
  test.each([
    `/v1.41//${start}`,
    `//v1.41/${start}`,
    `/v1.41/containers/../${start}`,
    `/v1.41/./${start}`,
    `/v1.41/${start}/`,
    `/v1.41/${start}//`,
    `/v1.41/${start}%00`,
    `/v1.41/${start}%3f`,
    `/v1.41/%63ontainers/${OURS}/start`,
    `/v1.41/containers/${OURS}/%73tart`,
    `/v1.41/containers%2f${OURS}/start`,
    `/v1.41\\${start}`,
    `/v1.41/${start};x=1`,
    `/v1.41/${start}#x`,
    `/v1.41/${start}?x=1`,
    `/v1.41/${start}?detachKeys=a`,
    `/V1.41/${start}`,
    `/v1.041/${start}`,
    `/v1.12/${start}`,
    `/v1.39/${start}`,
    `/v2.0/${start}`,
    `/v1.41/v1.41/${start}`,
    `/${start}`,
    `http://docker/v1.41/${start}`,
    `*`,
  ])('%s', async (url) => {
    expect((await ask('POST', url)).status).toBe(403)
    expect(engine.requests).toEqual([])
  })
  test.each([
    'stop?t=1&t=2',
    'stop?T=1',
    'stop?t=-1',
    'stop?t=1%262',
    'stop?t',
    'stop?t=%',
    'stop?&t=1',
    'kill?signal=STOP',
    'rename?name=..%2fx',
    'rename?name=sbx-dep-abcdefgh+x',
    'wait?condition=',
  ])('%s', async (rest) => {
    expect((await ask('POST', `/v1.41/containers/${OURS}/${rest}`)).status).toBe(403)
    expect(engine.changes()).toEqual([])
  })
})

describe('a request has one length and one body', () => {
  const create = `/v1.41/containers/create?name=${NAME}`
  const chunked = `${createText.length.toString(16)}\r\n${createText}\r\n0\r\n\r\n`
  test.each([
    ['chunked and a length', ['Transfer-Encoding: chunked', 'Content-Length: 5'], chunked],
    ['a length and chunked', ['Content-Length: 5', 'Transfer-Encoding: chunked'], chunked],
    ['two lengths', ['Content-Length: 5', 'Content-Length: 6'], 'aaaaaa'],
    ['an odd coding', ['Transfer-Encoding: xchunked'], chunked],
    ['coded twice', ['Transfer-Encoding: chunked, identity'], chunked],
    ['a length with a sign', ['Content-Length: +5'], 'aaaaa'],
    ['a bad chunk', ['Transfer-Encoding: chunked'], 'zz\r\nabc\r\n0\r\n\r\n'],
    ['a folded header', ['X: a\r\n b: c', 'Content-Length : 0'], ''],
  ])('%s', async (_, headers, text) => {
    const answer = await ask('POST', create, text, headers)
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(engine.changes()).toEqual([])
  })
  test('an empty create (CVE-2024-41110)', async () => {
    expect((await ask('POST', create, '', ['Content-Length: 0', `X-Real: ${'a'.repeat(100)}`])).status).toBe(
      403,
    )
    expect(
      (await raw(gate.socket, `POST ${create} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)).status,
    ).toBe(403)
    expect(engine.changes()).toEqual([])
  })
  test('what follows an empty create is a request of its own, and malformed', async () => {
    const answer = await raw(
      gate.socket,
      `POST ${create} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n${createText}`,
    )
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(engine.changes()).toEqual([])
  })
  test('a body that is too large, with and without saying so', async () => {
    const large = `"${'a'.repeat(300 * 1024)}"`
    expect((await ask('POST', create, large)).status).toBe(413)
    const pieces = `${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`
    expect((await ask('POST', create, pieces, ['Transfer-Encoding: chunked'])).status).toBe(413)
    expect((await ask('POST', `/v1.41/containers/${OURS}/start`, large)).status).toBe(413)
    expect(engine.changes()).toEqual([])
  })
  test('a start that carries a configuration, as old engines took it', async () => {
    for (const text of ['{"Binds":["/:/x"]}', '[]', '""', 'x', '{"t":1}'])
      expect((await ask('POST', `/v1.41/containers/${OURS}/start`, text)).status, text).toBe(403)
    expect(engine.changes()).toEqual([])
  })
  test('garbage after a good request does not reach the engine', async () => {
    const socket = await openRaw(gate.socket)
    socket.write(`${requestText('GET', '/_ping')}\0\0POST /v1.41/build HTTP/1.1\r\n\r\n`)
    await once(socket.resume(), 'end')
    socket.destroy()
    expect(engine.requests.map(({ url }) => url).filter((url) => url !== '/_ping')).toEqual([])
  })
  test('bytes that are no text, and no HTTP at all', async () => {
    expect((await raw(gate.socket, 'SSH-2.0-x\r\n\r\n')).status).toBe(400)
    const socket = await openRaw(gate.socket)
    socket.write(requestText('POST', create, '', ['Content-Length: 2']))
    socket.write(Buffer.from([0xff, 0xfe]))
    expect((await readAnswer(socket)).status).toBe(400)
    socket.destroy()
  })
})

describe('an upgrade is an attach, and nothing else', () => {
  const upgrade = ['Connection: Upgrade', 'Upgrade: tcp', 'Content-Length: 0']
  const attach = `/v1.41/containers/${OURS}/attach?stream=1&stdin=1&stdout=1&stderr=1`
  test.each([
    ['POST', '/session', upgrade],
    ['POST', `/v1.41/containers/${OURS}/start`, upgrade],
    ['POST', '/v1.41/exec/x/start', upgrade],
    ['GET', attach, upgrade],
    ['POST', attach, ['Connection: Upgrade', 'Upgrade: h2c', 'Content-Length: 0']],
    ['POST', attach, ['Connection: Upgrade', 'Upgrade: tcp', 'Content-Length: 9']],
    ['POST', attach, ['Connection: Upgrade', 'Upgrade: tcp', 'Transfer-Encoding: chunked']],
    ['POST', attach, ['Content-Length: 0']],
    ['POST', `${attach}&logs=1`, upgrade],
    ['POST', attach.replace(OURS, OURS.slice(0, 12)), upgrade],
  ])('%s %s %j', async (method, url, headers) => {
    expect((await ask(method, url, '', headers)).status).toBe(403)
    expect(engine.changes()).toEqual([])
  })
  test('not to a stranger', async () => {
    expect((await ask('POST', attach.replace(OURS, STRANGER), '', upgrade)).status).toBe(404)
    expect(engine.changes()).toEqual([])
  })
})

describe('the gate itself', () => {
  test('may be opened by its owner and its group', () => {
    expect(statSync(gate.socket).mode & 0o777).toBe(0o660)
    expect(statSync(dirname(gate.socket)).mode & 0o007).toBe(0)
  })
  test('lets only so many exist', async () => {
    const full = await startGate(engine.dockerHost, { most: { containers: 1, volumes: 1 } })
    try {
      const answer = await raw(
        full.socket,
        requestText('POST', `/v1.41/containers/create?name=${NAME}`, createText),
      )
      expect(answer.status).toBe(403)
      expect(answer.body).toContain('SANDLOT_ENGINE_MAX_CONTAINERS')
      expect(engine.changes()).toEqual([])
    } finally {
      await full.close()
    }
  })
  test('has only so many requests in hand, those whose body has not come yet included, and so many connections', async () => {
    const small = await startGate(engine.dockerHost, { mostRequests: 2, mostStreams: 1 })
    const text = requestText('POST', `/v1.41/containers/create?name=${NAME}`, createText)
    const halves = [text.slice(0, -100), text.slice(-100)] as const
    const slow = await Promise.all([openRaw(small.socket), openRaw(small.socket)])
    try {
      for (const socket of slow) socket.write(halves[0])
      const third = (): Promise<RawAnswer> => raw(small.socket, requestText('GET', '/_ping'))
      await expect.poll(async () => (await third()).status).toBe(503)
      const idle = await openRaw(small.socket)
      const tooMany = await openRaw(small.socket)
      expect(await readAnswer(tooMany)).toMatchObject({ status: 0, head: '' })
      idle.destroy()
      for (const socket of slow) socket.write(halves[1])
      for (const socket of slow) expect(await readAnswer(socket)).toMatchObject({ status: 201 })
      await expect.poll(async () => (await third()).status).toBe(200)
    } finally {
      for (const socket of slow) socket.destroy()
      await small.close()
    }
  })
  test('a body that breaks off in the middle holds no place, however long its client stays', async () => {
    const small = await startGate(engine.dockerHost, { mostRequests: 1 })
    const broken = await openRaw(small.socket)
    try {
      const chunked = ['Transfer-Encoding: chunked']
      broken.write(requestText('POST', `/v1.41/containers/create?name=${NAME}`, 'no length\r\n', chunked))
      // Read to its end, and held open.
      await once(broken.resume(), 'end')
      await expect.poll(async () => (await raw(small.socket, requestText('GET', '/_ping'))).status).toBe(200)
    } finally {
      broken.destroy()
      await small.close()
    }
  })
  test.each([
    ['DELETE', `/v1.41/volumes/${SLOT.volume}`],
    ['POST', `/v1.41/containers/${OURS}/start`],
  ])('keeps in its log what the engine could not do: %s %s', async (method, path) => {
    gate.log.length = 0
    engine.fail([500, 'open /d/d/d: too many open files'])
    try {
      expect((await raw(gate.socket, requestText(method, path))).status).toBe(500)
    } finally {
      engine.fail()
    }
    expect(gate.log).toContainEqual(
      expect.objectContaining({
        level: 40,
        method,
        path,
        status: 500,
        answer: expect.stringContaining('too many open'),
      }),
    )
  })

  test('says when there is no engine', async () => {
    const lost = await startGate('unix:///nowhere/docker.sock')
    try {
      const answer = await raw(lost.socket, requestText('GET', '/_ping'))
      expect(answer.status).toBe(502)
      expect(answer.body).toContain('/nowhere/docker.sock')
      const backend = createDockerBackend({ deployment: 'dep', dockerHost: lost.dockerHost })
      await expect(backend.inventory.capabilities()).rejects.toThrow(
        /cannot reach the Docker engine at \/nowhere/,
      )
    } finally {
      await lost.close()
    }
  })
})

test('whatever the request line, only what is allowed and ours reaches the engine', async () => {
  const piece = fc.oneof(
    fc.constantFrom(
      'v1.41',
      'v1.24',
      'containers',
      'volumes',
      'images',
      'exec',
      'build',
      'json',
      'create',
      'start',
      'attach',
      'archive',
      '..',
      '.',
      '',
      '%2e%2e',
      OURS,
      STRANGER,
      OURS.slice(0, 12),
      'sbx-dep-abcdefgh',
      'sandlot/sandbox:latest',
      'sandlot/sandbox-full:latest',
    ),
    fc.string({ maxLength: 8 }).map((text) => encodeURIComponent(text.toWellFormed())),
  )
  const query = fc.constantFrom('', '?name=x', '?force=1', '?v=1', '?path=/', '?filters={}', '?stream=1')
  const line = fc.tuple(
    fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'HEAD'),
    fc.array(piece, { maxLength: 6 }),
    query,
  )
  const allowed = [
    /^GET \/(_ping|version)$/,
    /^GET \/v1\.41\/(version|info)$/,
    new RegExp(
      `^GET /v1\\.41/(containers/(json\\?.*|[0-9a-f]{64}/json|sbx-dep-[a-z0-9-]+/json)|volumes(\\?.*)?|volumes/sbx-dep-[a-z0-9-]+|images/sandlot/sandbox(-full)?:latest/json)$`,
    ),
    new RegExp(`^(POST|DELETE) /v1\\.41/(containers/${OURS}(/start)?(\\?force=1)?|volumes/${SLOT.volume})$`),
  ]
  await fc.assert(
    fc.asyncProperty(line, async ([method, pieces, rest]) => {
      engine.requests.length = 0
      await ask(method, `/${pieces.join('/')}${rest}`)
      for (const sent of engine.requests)
        expect(
          allowed.some((pattern) => pattern.test(`${sent.method} ${sent.url}`)),
          `${sent.method} ${sent.url}`,
        ).toBe(true)
    }),
    { numRuns: extent(200, 5_000), seed: campaign.seed },
  )
})
