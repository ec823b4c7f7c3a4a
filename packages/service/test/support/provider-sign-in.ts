/** Sign-ins by a provider of a file’s own, at a service of a test’s own. */
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll } from 'vitest'
import type { ServiceConfig } from '../../src/config.ts'
import { type Harness, startHarness } from './harness.ts'
import { CLIENT, type Person, type TestProvider, Wanderer, startProvider } from './provider.ts'

type ProviderConfig = ServiceConfig['providers'][number]

let port: number
export let url: string
export let provider: TestProvider
export let harness: Harness

export const ADA: Person = { sub: 'ada-1', name: 'Ada', email: 'ada@example.org', email_verified: true }

export const asConfigured = (changes: Partial<ProviderConfig> = {}): ProviderConfig => ({
  id: 'work',
  name: 'Work',
  issuer: provider.issuer,
  clientId: CLIENT.id,
  clientSecret: CLIENT.secret,
  scopes: ['openid', 'profile', 'email'],
  signUp: true,
  trusted: false,
  ...changes,
})

/** A service whose one provider is configured so. */
export async function start(
  changes: Partial<ProviderConfig> = {},
  more: Partial<ServiceConfig> = {},
  withAgent = false,
): Promise<void> {
  harness = await startHarness(
    { port, providers: [asConfigured(changes)], ...more },
    { providerRetry: { firstMs: 20, longestMs: 40 } },
    withAgent,
  )
}

/** The end of a sign-in. */
export async function signIn(who = new Wanderer(), body: unknown = {}): Promise<{ who: Wanderer; at: URL }> {
  const begun = await who.post(`${url}/api/sign-in/providers/work`, body)
  if (begun.status !== 200) throw new Error(await begun.text())
  const { url: there } = (await begun.json()) as { url: string }
  return { who, at: await who.wander(there, url) }
}

export const me = async (who: Wanderer): Promise<unknown> => (await who.send(`${url}/api/me`)).json()

/** Why a sign-in ended on the page of problems. */
export async function problemOf(at: URL): Promise<string> {
  const id = at.searchParams.get('problem')
  if (id === null) throw new Error(`no problem: ${at.href}`)
  return ((await (await fetch(`${url}/api/sign-in/problems/${id}`)).json()) as { message: string }).message
}

export const isSignedIn = async (who: Wanderer): Promise<boolean> =>
  (await who.send(`${url}/api/me`)).status === 200

/** The provider lasts for the file, a service for a test. */
export function useProvider(): void {
  beforeAll(async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => taken.once('listening', resolve))
    port = (taken.address() as AddressInfo).port
    await new Promise((resolve) => taken.close(resolve))
    url = `http://127.0.0.1:${port}`
    provider = await startProvider([`${url}/api/sign-in/callback/work`], [`${url}/sign-in`])
  })

  afterAll(() => provider.close())

  afterEach(async () => {
    provider.lie = undefined
    provider.instead = undefined
    await harness.close()
  })
}
