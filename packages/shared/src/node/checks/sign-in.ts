import { messageOf } from '../../base/errors.ts'
import { type Finding, failed, ok } from '../../base/finding.ts'
import type { OidcProviderConfig } from '../../account/oidc-config.ts'
import { readDiscovery } from '../oidc-discovery.ts'

export const SIGN_IN_FIX = 'docs/sign-in.md has the fields of Keycloak, Entra, Google and Authentik.'

/**
 * For each provider of `SANDLOT_OIDC`: it answers, and is the configured issuer. `origin`: the
 * public address.
 */
export function signInChecks(
  providers: readonly Pick<OidcProviderConfig, 'id' | 'name' | 'issuer'>[],
  origin: string,
): Promise<Finding[]> {
  return Promise.all(
    providers.map(async ({ id: provider, name, issuer }): Promise<Finding> => {
      const [id, title] = ['sign-in', `Sign-in by ${name}`]
      const register = `register ${origin}/api/sign-in/callback/${provider} and, for after logout, ${origin}/sign-in`
      try {
        await readDiscovery(issuer)
        return ok('warn', id, title, `${issuer} answers; there, ${register}`)
      } catch (error) {
        return failed('warn', id, title, messageOf(error), `${SIGN_IN_FIX} At the provider, ${register}.`)
      }
    }),
  )
}
