/** Our own servers are on by what is in the environment, and say what to set before. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { readAgentConfig } from '../../src/config/config.ts'
import type { StdioSpec } from '../../src/mcp/server-spec.ts'
import { testFolder } from '../../../../test/folders.ts'

let folder: string
beforeEach(() => void (folder = testFolder('shipped')))

const read = (env: Record<string, string> = {}) => {
  const { mcpServers, unavailableServers, secrets } = readAgentConfig([], { SANDLOT_DATA: folder, ...env })
  const servers = mcpServers.filter((spec): spec is StdioSpec => spec.kind === 'stdio')
  return { servers, unavailableServers, secrets }
}

test('without credentials neither is enabled, and each says what to set', () => {
  const { servers, unavailableServers } = read()
  expect(servers).toEqual([])
  expect(unavailableServers.map(({ name }) => name)).toEqual(['flights-mcp', 'google-calendar-mcp'])
  expect(unavailableServers[0]?.why).toContain('DUFFEL_ACCESS_TOKEN')
  expect(unavailableServers[1]?.why).toContain('GOOGLE_CLIENT_ID')
})

test('with its token a server is enabled for all users, behind the agent’s proxy, and the token is a secret', () => {
  const { servers, unavailableServers, secrets } = read({
    DUFFEL_ACCESS_TOKEN: 'duffel_test_1',
    HTTPS_PROXY: 'http://proxy:3128',
    OPENAI_API_KEY: 'sk',
    OPENAI_MODEL: 'm',
  })
  expect(servers).toMatchObject([
    { name: 'flights-mcp', perUser: false, config: { readOnly: 'as-announced' } },
  ])
  expect(servers[0]?.env).toEqual({
    DUFFEL_ACCESS_TOKEN: ['duffel_test_1'],
    HTTPS_PROXY: ['http://proxy:3128'],
  })
  expect(unavailableServers.map(({ name }) => name)).toEqual(['google-calendar-mcp'])
  expect(secrets).toContain('duffel_test_1')
})

test('a token may be in a file', () => {
  writeFileSync(join(folder, 'token'), 'from-a-file\n')
  const { servers } = read({ DUFFEL_ACCESS_TOKEN_FILE: join(folder, 'token') })
  expect(servers[0]?.env).toEqual({ DUFFEL_ACCESS_TOKEN: ['from-a-file'] })
})

const CLIENT = { GOOGLE_CLIENT_ID: 'id', GOOGLE_CLIENT_SECRET: 'secret' }
test.each([
  ['one of the deployment', { ...CLIENT, GOOGLE_REFRESH_TOKEN: 'r' }, false, ['r']],
  ['of each user', CLIENT, true, [{ secret: 'GOOGLE_REFRESH_TOKEN' }]],
])('a calendar %s', (_whose, env, perUser, token) => {
  const { servers } = read(env)
  expect(servers).toMatchObject([{ name: 'google-calendar-mcp', perUser }])
  expect(servers[0]?.env['GOOGLE_REFRESH_TOKEN']).toEqual(token)
})

test('a refresh token without its client is not enough, and an access token is', () => {
  expect(read({ GOOGLE_REFRESH_TOKEN: 'r' }).unavailableServers[1]?.why).toContain('GOOGLE_CLIENT_ID')
  expect(read({ GOOGLE_ACCESS_TOKEN: 'a' }).servers[0]?.env).toEqual({ GOOGLE_ACCESS_TOKEN: ['a'] })
})

test('an entry of the configuration file replaces it', () => {
  const own = { command: 'node', args: ['other.js'], enabled: false }
  writeFileSync(join(folder, 'sandlot.json'), JSON.stringify({ mcpServers: { 'flights-mcp': own } }))
  const { servers, unavailableServers } = read({ DUFFEL_ACCESS_TOKEN: 'duffel_test_1' })
  expect(servers).toEqual([])
  expect(unavailableServers.map(({ name }) => name)).toEqual(['google-calendar-mcp'])
})
