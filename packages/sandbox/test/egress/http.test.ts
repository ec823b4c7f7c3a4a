/** Plain requests: what arrives, what is refused and audited, and what nobody outside learns. */
import { createHash, randomBytes } from 'node:crypto'

import { expect, test, vi } from 'vitest'

import type { ConnectedSandbox } from '../../src/sbxd/client.ts'
import { newId, sh } from '../contract/harness.ts'
import { egressWays, get, nothingLeft, say, WAIT } from '../support/egress-way.ts'

const { open, origin } = egressWays()

interface Question {
  url: string
  method?: string
  headers?: Record<string, string>
  /** Sent as the body, in chunks unless the headers give a length. */
  file?: string
}

/** A program that goes through the proxy of its environment, with nothing but Node. */
const CLIENT = `
const { createReadStream } = require('node:fs')
const { request } = require('node:http')
const proxy = new URL(process.env.HTTP_PROXY)
const credentials = Buffer.from(proxy.username + ':' + proxy.password).toString('base64')
async function ask({ url, method = 'GET', headers = {}, file }) {
  const there = new URL(url)
  const secure = there.protocol === 'https:'
  const host = secure ? there.host + ':443' : there.host
  const asked = request({
    host: proxy.hostname, port: proxy.port, agent: false, method: secure ? 'CONNECT' : method, path: secure ? host : url,
    headers: { Host: host, 'Proxy-Authorization': 'Basic ' + credentials, ...headers },
  })
  return new Promise((resolve, reject) => {
    asked.on('error', reject)
    asked.on('connect', (answer, socket) => { socket.destroy(); resolve({ status: answer.statusCode, body: '' }) })
    asked.on('response', async (answer) => {
      let body = ''
      for await (const chunk of answer) body += chunk
      resolve({ status: answer.statusCode, body })
    })
    const send = () => file ? createReadStream(file).pipe(asked) : asked.end()
    if (headers.Expect) asked.on('continue', send).flushHeaders()
    else send()
  })
}
async function main() {
  const answers = []
  for (const question of JSON.parse(process.argv[2])) answers.push(await ask(question))
  console.log(JSON.stringify(answers))
}
main()`

async function ask(sandbox: ConnectedSandbox, questions: readonly Question[], id = newId()) {
  const command = [process.execPath, '-e', CLIENT, '-', JSON.stringify(questions)]
  const { out, err, refusedHosts } = await sh(sandbox, command, { id })
  expect(err).toBe('')
  return { answers: JSON.parse(out) as { status: number; body: string }[], refusedHosts }
}

test('a request goes to the address that was checked, and is audited; a refused one is named', async () => {
  const there = await origin((asked, response) =>
    response.end(`${asked.method} ${asked.url} ${asked.headers.host}`),
  )
  const way = await open({ allow: [`allowed.test:${there.port}`] })
  const { sandbox, egress } = way
  const host = `allowed.test:${there.port}`
  const id = newId()
  const ran = await ask(
    sandbox,
    [{ url: `http://${host}/a?b=1` }, { url: 'http://Refused.test./x' }, { url: 'http://refused.test:99/' }],
    id,
  )
  expect(ran.answers).toEqual([
    { status: 200, body: `GET /a?b=1 ${host}` },
    {
      status: 403,
      body: 'Sandlot: refused.test is not on the list of hosts that this sandbox may reach.\n',
    },
    { status: 403, body: expect.stringContaining('refused.test') },
  ])
  expect(ran.refusedHosts).toEqual([
    { host: 'refused.test', port: 80, reason: 'not_allowed' },
    { host: 'refused.test', port: 99, reason: 'not_allowed' },
  ])
  await vi.waitFor(() => expect(egress.audits).toHaveLength(3), WAIT)
  expect(egress.audits.find((record) => record.host === 'allowed.test')).toMatchObject({
    userId: 'ann',
    commandId: id,
    host: 'allowed.test',
    port: there.port,
    address: '127.0.0.1',
    method: 'GET',
    decision: 'allowed',
    bytesDown: `GET /a?b=1 ${host}`.length,
  })
  expect(egress.audits.find((record) => record.port === 80)).toMatchObject({
    commandId: id,
    host: 'refused.test',
    decision: 'refused',
    reason: 'not_allowed',
  })
  expect(egress.events[0]).toMatchObject({
    type: 'egress_refused',
    userId: 'ann',
    commandId: id,
    host: 'refused.test',
    port: 80,
  })
  expect(egress.asked).toEqual(['allowed.test'])
  expect(JSON.stringify([egress.audits, egress.events])).not.toContain('b=1')
  await nothingLeft(way, there)
})

test('of two commands at once each gets what was refused to it', async () => {
  const { sandbox } = await open({ allow: [] })
  const [one, two] = await Promise.all([
    ask(sandbox, [{ url: 'http://one.test/' }, { url: 'https://one.test/' }]),
    ask(sandbox, [{ url: 'http://two.test/' }]),
  ])
  expect(one.refusedHosts?.map(({ host, port }) => `${host}:${port}`)).toEqual([
    'one.test:80',
    'one.test:443',
  ])
  expect(two.refusedHosts?.map(({ host }) => host)).toEqual(['two.test'])
})

test('the environment is in both spellings, and what the request says itself goes first', async () => {
  const { sandbox } = await open({ allow: [] })
  const { out } = await sh(
    sandbox,
    'env | grep -iE ^https?_proxy= | sort | sed -E "s/[0-9a-f]{32}/id/; s/:[0-9]+$/:port/"',
  )
  const proxy = 'http://id:sandbox@127.0.0.1:port'
  expect(out.trim().split('\n').toSorted()).toEqual(
    ['HTTPS_PROXY', 'HTTP_PROXY', 'http_proxy', 'https_proxy'].map((name) => `${name}=${proxy}`),
  )
  expect((await sh(sandbox, 'echo $NO_PROXY $no_proxy')).out).toBe(
    'localhost,127.0.0.1,::1 localhost,127.0.0.1,::1\n',
  )
  expect((await sh(sandbox, 'echo $no_proxy', { env: { no_proxy: 'mine' } })).out).toBe('mine\n')
})

test('credentials are added by the controller, and replace what the program says', async () => {
  const seen: (string | undefined)[] = []
  const there = await origin((asked, response) => {
    seen.push(asked.headers.authorization)
    response.end()
  })
  const canary = randomBytes(16).toString('hex')
  const hosts = [`with.test:${there.port}`, `without.test:${there.port}`]
  const { sandbox, egress } = await open({
    allow: hosts,
    credentials: { 'with.test': { value: `Bearer ${canary}` } },
  })
  const { answers } = await ask(
    sandbox,
    hosts.map((host) => ({ url: `http://${host}/`, headers: { Authorization: 'mine' } })),
  )
  const { out } = await sh(sandbox, 'env')
  expect(seen).toEqual([`Bearer ${canary}`, 'mine'])
  expect(out + JSON.stringify([answers, egress.audits])).not.toContain(canary)
})

test('a body with a length, in chunks and after "100 Continue" arrives whole', async () => {
  const there = await origin((asked, response) => {
    const hash = createHash('sha256')
    asked.on('data', (chunk: Buffer) => hash.update(chunk))
    asked.on('end', () => response.end(hash.digest('hex')))
  })
  const host = `allowed.test:${there.port}`
  const { sandbox } = await open({ allow: [host] })
  const { out } = await sh(sandbox, 'head -c 3000000 /dev/urandom > f; sha256sum < f | cut -c-64')
  const up = { url: `http://${host}/`, method: 'POST', file: 'f' }
  const { answers } = await ask(sandbox, [
    { ...up, headers: { 'Content-Length': '3000000' } },
    up,
    { ...up, headers: { 'Content-Length': '3000000', Expect: '100-continue' } },
  ])
  expect(answers.map(({ body }) => body)).toEqual([out.trim(), out.trim(), out.trim()])
})

test('a request without a body has none: nothing is announced that does not come', async () => {
  const there = await origin(({ headers }, response) =>
    response.end(`${headers['content-length']} ${headers['transfer-encoding']}`),
  )
  const host = `allowed.test:${there.port}`
  const { port } = await open({ allow: [host] })
  expect(await say(port, get(host).replace('GET', 'POST'))).toContain('0 undefined')
  expect(await say(port, get(host))).toContain('undefined undefined')
})

test('a redirect is a new request', async () => {
  const there = await origin((_asked, response) =>
    response.writeHead(302, { Location: 'http://169.254.169.254/latest' }).end(),
  )
  const { sandbox, egress } = await open({ allow: [`allowed.test:${there.port}`] })
  const { answers } = await ask(sandbox, [
    { url: `http://allowed.test:${there.port}/` },
    { url: 'http://169.254.169.254/latest' },
  ])
  expect(answers.map(({ status }) => status)).toEqual([302, 400])
  expect(egress.events).toEqual([expect.objectContaining({ reason: 'bad_request' })])
})
