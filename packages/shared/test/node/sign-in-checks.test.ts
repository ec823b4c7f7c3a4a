import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { signInChecks } from '../../src/node/checks/sign-in.ts'

const check = (providers: { id: string; name: string; issuer: string }[]) =>
  signInChecks(providers, 'https://chat.example.org')

test('a provider answers, is another issuer, or is away', async () => {
  let issuer = ''
  const server = createServer((_request, response) => {
    response.end(
      JSON.stringify({
        issuer,
        authorization_endpoint: `${issuer}/auth`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
      }),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const work = { id: 'work', name: 'Work', issuer }
  expect(await check([work, { ...work, name: 'Other', issuer: `${issuer}/` }])).toMatchObject([
    {
      state: 'ok',
      message: expect.stringContaining('https://chat.example.org/api/sign-in/callback/work') as string,
    },
    { state: 'failed', message: expect.stringContaining(`is of the issuer ${issuer}`) as string },
  ])
  server.close()
  await once(server, 'close')
  expect(await check([work])).toMatchObject([
    { state: 'failed', message: expect.stringContaining('cannot be read') as string },
  ])
})
