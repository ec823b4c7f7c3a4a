import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'

import {
  type AccessOptions,
  type ClusterAccess,
  readAccess,
} from '../../../src/backends/kubernetes/access.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandlot-access-'))
})
afterAll(() => rm(folder, { recursive: true }))

const PEM = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n'
const KEY = '-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n'
const base64 = (text: string): string => Buffer.from(text).toString('base64')
const CLUSTER = { server: 'https://c.example.org:6443', 'certificate-authority-data': base64(PEM) }

interface Parts {
  cluster?: Record<string, unknown>
  user?: Record<string, unknown>
}

function kubeconfig({ cluster = CLUSTER, user = { token: 'abc' } }: Parts, name = 'a'): unknown {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
    contexts: [{ name, context: { cluster: 'c', user: 'u', namespace: 'elsewhere' } }],
    preferences: {},
  }
}

async function written(content: unknown, name = 'config'): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, typeof content === 'string' ? content : stringify(content))
  return path
}

async function access(content: unknown, more: Partial<AccessOptions> = {}): Promise<ClusterAccess> {
  return readAccess({ namespace: 'boxes', kubeconfig: await written(content), environment: {}, ...more })
}

describe('a kubeconfig', () => {
  test('with a token', async () => {
    const found = await access(kubeconfig({}))
    expect(found).toMatchObject({ namespace: 'boxes', tls: { ca: PEM } })
    expect(found.server.href).toBe('https://c.example.org:6443/')
    expect(await found.authorization()).toBe('Bearer abc')
  })

  test('with a certificate, in it or beside it', async () => {
    await written(PEM, 'user.crt')
    await written(KEY, 'user.key')
    const inside = { 'client-certificate-data': base64(PEM), 'client-key-data': base64(KEY) }
    const beside = { 'client-certificate': 'user.crt', 'client-key': join(folder, 'user.key') }
    for (const user of [inside, beside]) {
      const found = await access(kubeconfig({ user }))
      expect(found.tls).toEqual({ ca: PEM, cert: PEM, key: KEY })
      expect(await found.authorization()).toBeUndefined()
    }
  })

  test('whose server has a path, and a certificate of another name', async () => {
    const cluster = { ...CLUSTER, server: 'https://[fd00::1]/k8s/c-1', 'tls-server-name': 'kubernetes' }
    const found = await access(kubeconfig({ cluster }))
    expect(found.server.href).toBe('https://[fd00::1]/k8s/c-1')
    expect(found.tls.servername).toBe('kubernetes')
  })

  test('with a token in a file, which is read again when it was refused', async () => {
    await written('first\n', 'token')
    const found = await access(kubeconfig({ user: { tokenFile: 'token', token: 'old' } }))
    expect(await found.authorization()).toBe('Bearer first')
    await written('second\n', 'token')
    expect(await found.authorization()).toBe('Bearer first')
    expect(await found.authorization(true)).toBe('Bearer second')
    await rm(join(folder, 'token'))
    await expect(found.authorization(true)).rejects.toThrow(/token for the cluster cannot be read.*ENOENT/)
    await written('third', 'token')
    expect(await found.authorization()).toBe('Bearer third')
  })

  test('in JSON, and of several files, of which the first that has a name counts', async () => {
    const first = await written({ clusters: [], users: [{ name: 'u', user: { token: 'mine' } }] }, 'one')
    const second = await written(JSON.stringify(kubeconfig({})), 'two')
    const environment = { KUBECONFIG: `${first}:${second}` }
    const found = await readAccess({ namespace: 'boxes', environment })
    expect(await found.authorization()).toBe('Bearer mine')
  })

  test.each<[string, unknown, RegExp]>([
    [
      'a program for credentials',
      kubeconfig({ user: { exec: { command: 'aws' } } }),
      /\(exec\).*ServiceAccount/,
    ],
    ['an auth-provider', kubeconfig({ user: { 'auth-provider': { name: 'gcp' } } }), /auth-provider/],
    ['a password', kubeconfig({ user: { username: 'a', password: 'b' } }), /user name and password/],
    ['impersonation', kubeconfig({ user: { token: 'a', as: 'root' } }), /impersonation/],
    ['no identity', kubeconfig({ user: {} }), /neither a token nor a certificate/],
    ['half an identity', kubeconfig({ user: { 'client-certificate-data': base64(PEM) } }), /neither/],
    ['a certificate that is none', kubeconfig({ user: { 'client-key-data': 'AAAA' } }), /not in PEM/],
    ['a missing file', kubeconfig({ user: { 'client-key': 'nowhere.key' } }), /cannot be read.*ENOENT/],
    ['a token that is no word', kubeconfig({ user: { token: 'a\nb' } }), /token that is not one word/],
    ['plain http', kubeconfig({ cluster: { server: 'http://c' } }), /no https address/],
    ['a server that is no address', kubeconfig({ cluster: { server: 'c:6443' } }), /no https address/],
    [
      'no check of the server',
      kubeconfig({ cluster: { ...CLUSTER, 'insecure-skip-tls-verify': true } }),
      /insecure-skip/,
    ],
    ['a proxy', kubeconfig({ cluster: { ...CLUSTER, 'proxy-url': 'http://p' } }), /proxy-url/],
    ['no current context', { ...(kubeconfig({}) as object), 'current-context': '' }, /no current-context/],
    [
      'a context that is not there',
      { ...(kubeconfig({}) as object), 'current-context': 'x' },
      /"x" in contexts/,
    ],
    ['a user that is not there', { ...(kubeconfig({}) as object), users: null }, /"u" in users/],
    [
      'entries of another shape',
      { 'current-context': 'a', users: [{ name: 'u', user: { token: 5 } }] },
      /token/,
    ],
    ['no mapping', '- a\n- b\n', /not as kubectl writes it/],
    ['nothing', '', /not as kubectl writes it/],
    ['no YAML', 'a: [', /is no YAML/],
  ])('with %s is refused in words', async (_, content, words) => {
    await expect(access(content)).rejects.toMatchObject({
      code: 'engine_unavailable',
      message: expect.stringMatching(words),
    })
  })
})

describe('the service account of a Pod', () => {
  const environment = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }

  test('is taken where there is one and no kubeconfig is named', async () => {
    const serviceAccountFolder = join(folder, 'account')
    await mkdir(serviceAccountFolder)
    await written('projected\n', 'account/token')
    await written(PEM, 'account/ca.crt')
    const found = await readAccess({ namespace: 'boxes', environment, serviceAccountFolder })
    expect(found).toMatchObject({ namespace: 'boxes', tls: { ca: PEM } })
    expect(found.server.href).toBe('https://[fd00::1]/')
    expect(await found.authorization()).toBe('Bearer projected')
    const named = await access(kubeconfig({}), { environment, serviceAccountFolder })
    expect(named.server.hostname).toBe('c.example.org')
  })

  test('that is not mounted is none', async () => {
    const KUBECONFIG = await written(kubeconfig({}))
    const serviceAccountFolder = join(folder, 'nowhere')
    const options = { namespace: 'boxes', environment: { ...environment, KUBECONFIG }, serviceAccountFolder }
    expect((await readAccess(options)).server.hostname).toBe('c.example.org')
  })
})
