import fc from 'fast-check'
import { expect, test } from 'vitest'
import { makeScrubber } from '../src/base/scrub.ts'

const scrub = makeScrubber(['configured-value', 'short'])

test.each([
  ['a configured value', 'configured-value'],
  ['OpenAI', 'sk-proj-abcdefghij_klmnop-012345'],
  ['GitHub', 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'],
  ['GitLab', 'glpat-abcdefghij0123456789'],
  ['Slack', 'xoxb-123456789012-abcdefghijkl'],
  ['AWS', 'AKIAIOSFODNN7EXAMPLE'],
  ['Stripe', 'sk_live_abcdefghijklmnop'],
  ['Hugging Face', 'hf_abcdefghijklmnopqrstuvwxyz'],
  ['npm', 'npm_abcdefghijklmnopqrstuvwxyz0123456789'],
  ['Duffel', 'duffel_test_abcdefghijklmnopqrstuv'],
  ['Google, access', 'ya29.a0AfH6SMBabcdefghijklmnop'],
  ['Google, refresh', '1//0gabcdefghijklmnopqrstuvwxyz'],
  ['Google, client', 'GOCSPX-abcdefghijklmnop'],
  ['Google, key', 'AIzaSyA-abcdefghijklmnopqrstuvwxyz0123456'],
  ['a JWT', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27uhbUJU1p1r'],
  ['a private key', '-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----'],
])('%s is hidden, wherever it stands', (_, secret) => {
  for (const text of [
    secret,
    `"${secret}"`,
    `before ${secret} after`,
    JSON.stringify({ deep: { a: [secret] } }),
  ]) {
    expect(scrub(text)).not.toContain(secret.slice(-12))
    expect(scrub(text)).toContain('[hidden]')
  }
})

test('what goes with it stays readable', () => {
  expect(scrub('Authorization: Bearer abcdefghijkl')).toBe('Authorization: Bearer [hidden]')
  expect(scrub('postgres://ann:pa55-word@db:5432/x')).toBe('postgres://ann:[hidden]@db:5432/x')
  expect(scrub('authorization: BEARER abcdefghijkl')).toBe('authorization: BEARER [hidden]')
  expect(scrub('HTTPS://ann:pa55@host/')).toBe('HTTPS://ann:[hidden]@host/')
  expect(scrub('cookie: session_token=a; b=c')).toBe('cookie: session_token=[hidden]; b=c')
  for (const name of ['token', 'access_token', 'refresh_token', 'client_secret', 'api_key', 'key'])
    for (const before of ['?', '&'])
      expect(scrub(`GET /x${before}${name}=abc&page=2`)).toBe(`GET /x${before}${name}=[hidden]&page=2`)
})

test('ordinary text is left alone', () => {
  const text = 'short: https://example.org:8443/a?page=2 src/sk-line.ts task-1 1//2 user@example.org AKIA'
  expect(scrub(text)).toBe(text)
})

test('a long text without an end takes no longer than its length', () => {
  // Ran for minutes when a pattern began with an open repetition; the runner's own time limit is the judge.
  for (const piece of [
    'a',
    'a:',
    '-----BEGIN PRIVATE KEY-----',
    'x://',
    'eyJaaaaaaaa.',
    '1//0',
    '?token',
    '&key',
  ])
    expect(scrub(piece.repeat(Math.ceil(300_000 / piece.length))).length).toBeGreaterThan(0)
})

test('a hidden text stays hidden', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(scrub(scrub(text))).toBe(scrub(text))
    }),
  )
})
