/** Answers of Kubernetes 1.36.3 as they were recorded, and servers that are none. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import https from 'node:https'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { SandboxErrorCode } from '../../../src/errors.ts'
import type { ClusterAccess } from '../../../src/backends/kubernetes/access.ts'
import { createApi } from '../../../src/backends/kubernetes/api.ts'
import { answerError } from '../../../src/backends/kubernetes/api-error.ts'
import { PODS } from '../../../src/backends/kubernetes/objects.ts'
import { makeCertificates } from '../../support/tls-engine.ts'

interface Recorded {
  name: string
  answer: { code: number }
  code: SandboxErrorCode
  words: string
}
const answers = readFileSync(join(import.meta.dirname, 'answers.jsonl'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Recorded)
const OUTRUN = ['older resource version', 'another uid', 'failed test of a patch']

describe('an answer is put in words', () => {
  test.each(answers)('$name', ({ name, answer, code, words }) => {
    const status = answer.code
    const error = answerError(status, JSON.stringify(answer), 'create the Pod two')
    expect(error).toMatchObject({ code, status, outrun: OUTRUN.includes(name) })
    expect(error.unreachable).toBe(status === 429 || status === 500)
    expect(error.message).toMatch(new RegExp(words))
  })

  test.each<[string, number, string, RegExp]>([
    [
      'a page of a proxy that reaches nobody',
      502,
      '<html>\n<h1>Bad  Gateway</h1>',
      /proxy before the cluster.*HTTP 502: <html> <h1>Bad Gateway/,
    ],
    ['a page of another server', 404, '<html>nothing here</html>', /no Kubernetes API server.*HTTP 404/],
    ['a sign-in page', 200, `<html>${'x'.repeat(9_000)}`, /no Kubernetes API server.*HTTP 200.* …\)/],
    ['JSON of another server', 403, '{"message":"no"}', /no Kubernetes API server/],
    ['nothing', 503, '', /proxy before the cluster/],
  ])('%s', (_, status, text, words) => {
    const error = answerError(status, text, 'list the Pods')
    expect(error).toMatchObject({ code: 'engine_unavailable', status, outrun: false })
    expect(error.message).toMatch(words)
    expect(error.message.length).toBeLessThan(500)
  })
})

describe('a server that cannot be asked is put in words', () => {
  let folder = ''
  const servers: { close(): void }[] = []
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sandlot-api-'))
    makeCertificates(join(folder, 'good'))
    makeCertificates(join(folder, 'other'))
    await makeExpired()
  })
  afterAll(async () => {
    for (const server of servers) server.close()
    await rm(folder, { recursive: true })
  })

  const pem = (name: string): Promise<string> => readFile(join(folder, name), 'utf8')

  /** A certificate that is its own authority and ended in 2020. */
  async function makeExpired(): Promise<void> {
    const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
    await writeFile(join(folder, 'index'), '')
    await writeFile(
      join(folder, 'ca.conf'),
      '[ca]\ndefault_ca=a\n[a]\ndatabase=index\nnew_certs_dir=.\nrand_serial=yes\npolicy=p\ndefault_md=sha256\n[p]\ncommonName=supplied\n',
    )
    openssl(
      'req',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-subj',
      '/CN=old',
      '-keyout',
      'old.key',
      '-out',
      'old.csr',
    )
    openssl(
      'ca',
      '-batch',
      '-config',
      'ca.conf',
      '-selfsign',
      '-in',
      'old.csr',
      '-keyfile',
      'old.key',
      '-startdate',
      '200101000000Z',
      '-enddate',
      '200201000000Z',
      '-notext',
      '-out',
      'old.pem',
    )
  }

  async function listening(
    server: http.Server | https.Server | ReturnType<typeof createServer>,
  ): Promise<string> {
    servers.push(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const page: http.RequestListener = (_, answer) => answer.end('<html>Welcome</html>')
  const tlsServer = async (cert: string, key: string): Promise<string> =>
    listening(https.createServer({ cert: await pem(cert), key: await pem(key) }, page))
  const good = (): Promise<string> => tlsServer('good/server.pem', 'good/server.key')

  async function refusal(server: string, tls: ClusterAccess['tls']): Promise<unknown> {
    const authorization = () => Promise.resolve('Bearer secret-token')
    const api = createApi({ server: new URL(server), namespace: 'boxes', tls, authorization })
    const asked = await api.list(PODS, {}).then(
      () => undefined,
      (error: unknown) => error,
    )
    const opened = await api.connect('/x', 'v5.channel.k8s.io').then(
      () => undefined,
      (error: unknown) => error,
    )
    api.close()
    expect(opened).toMatchObject({ code: 'engine_unavailable' })
    expect(`${String(asked)} ${String(opened)}`).not.toContain('secret-token')
    return asked
  }

  test('of another authority', async () => {
    const error = await refusal(await good(), { ca: await pem('other/ca.pem') })
    expect(error).toMatchObject({ code: 'engine_unavailable', unreachable: false })
    expect(String(error)).toMatch(/another authority.*certificate-authority-data/)
  })

  test('of another name', async () => {
    const tls = { ca: await pem('good/ca.pem'), servername: 'kubernetes.example.org' }
    expect(String(await refusal(await good(), tls))).toMatch(/other names .*CN: server.*tls-server-name/)
  })

  test('with a certificate that has expired', async () => {
    const error = await refusal(await tlsServer('old.pem', 'old.key'), { ca: await pem('old.pem') })
    expect(String(error)).toMatch(/expired\. Renew it/)
  })

  test('without TLS', async () => {
    expect(String(await refusal(await listening(http.createServer(page)), {}))).toMatch(/does not speak TLS/)
  })

  test('with another key than its certificate', async () => {
    const tls = {
      ca: await pem('good/ca.pem'),
      cert: await pem('good/cert.pem'),
      key: await pem('other/key.pem'),
    }
    expect(String(await refusal(await good(), tls))).toMatch(/certificate, key or token of the kubeconfig/)
  })

  test('that is no Kubernetes', async () => {
    const error = await refusal(await good(), { ca: await pem('good/ca.pem') })
    expect(String(error)).toMatch(/no Kubernetes API server.*HTTP 200: <html>Welcome<\/html>/)
  })

  test('that nobody is', async () => {
    const server = createServer()
    const address = await listening(server)
    server.close()
    expect(await refusal(address, {})).toMatchObject({
      unreachable: true,
      message: expect.stringMatching(/cannot be reached \(ECONNREFUSED\)/),
    })
  })

  test('that hangs up', async () => {
    const server = await listening(createServer((socket) => void socket.destroy()))
    expect(await refusal(server, {})).toMatchObject({
      unreachable: true,
      message: expect.stringMatching(/broke while trying to list the Pods/),
    })
  })
})
