import { expect, test } from 'vitest'
import { readOidcProviders } from '../../src/account/oidc-config.ts'

const KEYCLOAK = {
  name: 'Key Cloak',
  issuer: 'https://login.example.org/realms/work',
  clientId: 'sandlot',
}

const read = (providers: unknown) =>
  readOidcProviders(typeof providers === 'string' ? providers : JSON.stringify(providers), (path) => {
    if (path === '/run/secrets/oidc') return 'from a file\n'
    throw new Error('no such file')
  })

test('gives each provider an id, its defaults and its secret', () => {
  expect(read([{ ...KEYCLOAK, clientSecretFile: '/run/secrets/oidc', domains: ['Example.ORG'] }])).toEqual({
    providers: [
      {
        ...KEYCLOAK,
        id: 'key-cloak',
        clientSecret: 'from a file',
        scopes: ['openid', 'profile', 'email'],
        signUp: true,
        trusted: false,
        domains: ['example.org'],
      },
    ],
  })
})

test.each<[string, unknown, string]>([
  ['no JSON', '{', 'must be JSON like [{'],
  ['an unknown field', [{ ...KEYCLOAK, client: 'x' }], 'provider 1: Unrecognized key: "client"'],
  [
    'http',
    [{ ...KEYCLOAK, issuer: 'http://login.example.org' }],
    'provider 1: issuer must begin with https://',
  ],
  ['groups from nowhere', [{ ...KEYCLOAK, roles: { boss: 'admin' } }], 'provider 1: needs groupsClaim'],
  [
    'a role that is none',
    [{ ...KEYCLOAK, groupsClaim: 'g', roles: { boss: 'king' } }],
    'provider 1: roles.boss ',
  ],
  ['two secrets', [{ ...KEYCLOAK, clientSecret: 'a', clientSecretFile: 'b' }], 'keep one'],
  [
    'a missing file',
    [{ ...KEYCLOAK, clientSecretFile: '/nowhere' }],
    'Key Cloak: cannot read clientSecretFile (no such file)',
  ],
  ['an issuer twice', [KEYCLOAK, { ...KEYCLOAK, name: 'Other' }], 'Key Cloak and Other have the same issuer'],
  ['an id twice', [KEYCLOAK, { ...KEYCLOAK, issuer: 'https://b.example.org' }], 'have the same id key-cloak'],
  ['a domain with @', [{ ...KEYCLOAK, domains: ['@example.org'] }], 'provider 1: domains.0 must be a domain'],
])('says what is wrong: %s', (_what, providers, words) => {
  const answer = read(providers)
  expect('problems' in answer && answer.problems.join('\n')).toContain(words)
})
