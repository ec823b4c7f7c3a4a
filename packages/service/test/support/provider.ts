/**
 * A real OpenID provider on loopback that can be made to lie: what its token endpoint says is
 * changed and signed again with its own key.
 */
import { once } from 'node:events'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type JWK,
  SignJWT,
  decodeJwt,
  decodeProtectedHeader,
  exportJWK,
  generateKeyPair,
  importJWK,
} from 'jose'
import { Provider } from 'oidc-provider'

export const CLIENT = { id: 'sandlot', secret: 'a-secret-of-the-client' }

/** Claims of a person at the provider. */
export type Person = { sub: string } & Record<string, unknown>

type Lie = (claims: Record<string, unknown>) => Record<string, unknown>

export interface TestProvider {
  readonly issuer: string
  /** The next person who signs in there. */
  person: Person
  /** Changes the claims of ID tokens. */
  lie: Lie | undefined
  /** Answers every request so, instead of what it would. */
  instead: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined
  /** New keys; with `keepOld` false tokens are still signed with one that it does not publish. */
  rotate(): Promise<void>
  /** It is gone until `resume`. */
  pause(): Promise<void>
  resume(): Promise<void>
  close(): Promise<void>
}

async function newKey(kid: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  return { ...(await exportJWK(privateKey)), kid, alg: 'RS256', use: 'sig' }
}

/** `redirectUris`: of Sandlot. */
export async function startProvider(redirectUris: string[], afterSignOut: string[]): Promise<TestProvider> {
  let key = await newKey('first')
  let keys = 1
  let handle: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
  let server = createServer((request, response) => handle?.(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const issuer = `http://127.0.0.1:${port}`

  const make = (): void => {
    const provider = new Provider(issuer, {
      clients: [
        {
          client_id: CLIENT.id,
          client_secret: CLIENT.secret,
          redirect_uris: redirectUris,
          post_logout_redirect_uris: afterSignOut,
        },
      ],
      jwks: { keys: [key] },
      claims: {
        openid: ['sub'],
        profile: ['name', 'groups', 'realm_access'],
        email: ['email', 'email_verified'],
      },
      features: { devInteractions: { enabled: false } },
      cookies: { keys: ['for tests only'] },
      findAccount: (_context: unknown, sub: string) => ({
        accountId: sub,
        claims: () => ({ ...test.person, sub }),
      }),
      interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
      loadExistingGrant: async (context: {
        oidc: { client?: { clientId: string }; session?: { accountId?: string } }
      }) => {
        const grant = new provider.Grant({
          clientId: context.oidc.client?.clientId,
          accountId: context.oidc.session?.accountId,
        })
        grant.addOIDCScope('openid profile email')
        await grant.save()
        return grant
      },
    })
    provider.on('server_error', (_context: unknown, error: Error) => console.error(error))
    const callback = provider.callback()
    handle = (request, response) => {
      if (test.instead?.(request, response) === true) return
      if (request.url?.startsWith('/interaction/') === true) {
        void provider.interactionFinished(request, response, { login: { accountId: test.person.sub } })
        return
      }
      if (request.url === '/token') retell(response)
      void callback(request, response)
    }
  }

  /** The end of `response` is sent with the lie in it. */
  const retell = (response: ServerResponse): void => {
    const { lie } = test
    if (lie === undefined) return
    const end = response.end.bind(response)
    response.end = ((body: Buffer | string) => {
      void signAgain(body.toString(), lie).then((told) => {
        response.setHeader('content-length', Buffer.byteLength(told))
        end(told)
      })
      return response
    }) as typeof response.end
  }

  const signAgain = async (body: string, lie: Lie): Promise<string> => {
    const answer = JSON.parse(body) as Record<string, unknown>
    const token = String(answer['id_token'])
    const signed = new SignJWT(lie({ ...decodeJwt(token) })).setProtectedHeader({
      ...decodeProtectedHeader(token),
      alg: 'RS256',
    })
    return JSON.stringify({ ...answer, id_token: await signed.sign(await importJWK(key, 'RS256')) })
  }

  const test: TestProvider = {
    issuer,
    person: { sub: 'nobody' },
    lie: undefined,
    instead: undefined,
    async rotate() {
      key = await newKey(`key-${++keys}`)
      make()
    },
    async pause() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
    async resume() {
      server = createServer((request, response) => handle?.(request, response))
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  make()
  return test
}

/** A browser that follows every redirect, with the cookies of each site. */
export class Wanderer {
  readonly #jars = new Map<string, Map<string, string>>()

  cookie(url: string): string {
    const jar = this.#jars.get(new URL(url).origin) ?? new Map<string, string>()
    return [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  async send(url: string, init: RequestInit = {}): Promise<Response> {
    const { origin } = new URL(url)
    const headers = new Headers(init.headers)
    headers.set('cookie', this.cookie(url))
    if (init.method !== undefined) headers.set('origin', origin)
    const response = await fetch(url, { ...init, headers, redirect: 'manual' })
    const jar = this.#jars.get(origin) ?? new Map<string, string>()
    this.#jars.set(origin, jar)
    for (const cookie of response.headers.getSetCookie()) {
      const [pair = ''] = cookie.split(';')
      const at = pair.indexOf('=')
      const [name, value] = [pair.slice(0, at), pair.slice(at + 1)]
      if (/max-age=0|expires=Thu, 01 Jan 1970/i.test(cookie) || value === '') jar.delete(name)
      else jar.set(name, value)
    }
    return response
  }

  post(url: string, body: unknown): Promise<Response> {
    return this.send(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  }

  /** Follows redirects from `url` on until a page of `home` that is none; returns its address. */
  async wander(url: string, home: string): Promise<URL> {
    let at = url
    for (let steps = 0; steps < 20; steps++) {
      const response = await this.send(at)
      const next = response.headers.get('location')
      await response.arrayBuffer()
      if (next === null) throw new Error(`${at} leads nowhere: status ${response.status}`)
      at = new URL(next, at).href
      if (at.startsWith(home) && !at.startsWith(`${home}/api/`)) return new URL(at)
    }
    throw new Error('too many redirects')
  }
}
