import { readFileSync } from 'node:fs'
import { type Finding, failed, ok } from '@sandlot/sandbox/controller/finding'
import { messageOf } from '@sandlot/shared/errors'
import { readDiscovery } from '@sandlot/shared/node/oidc-discovery'
import { type OidcProviderConfig, readOidcProviders } from '@sandlot/shared/team/oidc-config'
import type { CliConfig } from './config.ts'

const FIX = 'docs/sign-in.md has the fields of Keycloak, Entra, Google and Authentik.'

const readText = (path: string): string => readFileSync(path, 'utf8')

/** For each provider of `SANDLOT_OIDC`: it answers, and is the issuer that is configured. */
export async function signInChecks({ environment, host, port }: CliConfig): Promise<Finding[]> {
  const [id, name] = ['sign-in', 'Sign-in']
  let providers: OidcProviderConfig[]
  try {
    const file = environment['SANDLOT_OIDC_FILE'] ?? ''
    const text = file === '' ? (environment['SANDLOT_OIDC'] ?? '') : readText(file)
    if (text === '') return []
    const read = readOidcProviders(text, readText)
    if ('problems' in read)
      return [failed('must', id, name, `SANDLOT_OIDC: ${read.problems.join('; ')}`, FIX)]
    providers = read.providers
  } catch (error) {
    return [failed('must', id, name, `SANDLOT_OIDC_FILE: ${messageOf(error)}`, FIX)]
  }
  const origin = (environment['SANDLOT_PUBLIC_URL'] ?? '').replace(/\/+$/, '') || `http://${host}:${port}`
  return Promise.all(
    providers.map(async (provider): Promise<Finding> => {
      const title = `Sign-in by ${provider.name}`
      const register = `register ${origin}/api/sign-in/callback/${provider.id} and, for after logout, ${origin}/sign-in`
      try {
        await readDiscovery(provider.issuer)
        return ok('warn', id, title, `${provider.issuer} answers; there, ${register}`)
      } catch (error) {
        return failed('warn', id, title, messageOf(error), `${FIX} At the provider, ${register}.`)
      }
    }),
  )
}
