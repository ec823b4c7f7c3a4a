/**
 * The protocol's own conformance suite, run against our client: every scenario for clients that it has, each with what is
 * expected of us. Each costs the start of its processes: an ordinary run leaves some out.
 */
import { spawn } from 'node:child_process'
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { campaign, sample } from '../../../../test/campaign.ts'
import { type Scenario, runScenario } from './conformance-client.ts'

const SUITE = join(
  dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json')),
  'dist/index.js',
)
const COMMAND = fileURLToPath(new URL('conformance-command.mjs', import.meta.url))

const PASSED = [
  'initialize',
  'tools_call',
  'elicitation-sep1034-client-defaults',
  'sse-retry',
  'auth/metadata-default',
  'auth/metadata-var1',
  'auth/metadata-var2',
  'auth/metadata-var3',
  'auth/basic-cimd',
  'auth/scope-from-www-authenticate',
  'auth/scope-from-scopes-supported',
  'auth/scope-omitted-when-undefined',
  'auth/scope-step-up',
  'auth/scope-retry-limit',
  'auth/token-endpoint-auth-basic',
  'auth/token-endpoint-auth-post',
  'auth/token-endpoint-auth-none',
  'auth/pre-registration',
  'auth/2025-03-26-oauth-metadata-backcompat',
  'auth/2025-03-26-oauth-endpoint-fallback',
  'auth/resource-mismatch',
  'auth/offline-access-scope',
  'auth/offline-access-not-supported',
  'auth/client-credentials-jwt',
  'auth/client-credentials-basic',
]

/** Scenario → why it cannot apply to us. */
const NOT_APPLICABLE = {
  'auth/cross-app-access-complete-flow':
    'an optional extension for companies: the client must hold an ID token of the user from the company’s identity provider, and the agent is never given one',
}

let runner: Server
let address = ''

beforeAll(async () => {
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { url, scenario, context } = JSON.parse(await text(request)) as Scenario & { scenario: string }
    try {
      response.end((await runScenario({ name: scenario, url, context })).join('\n'))
    } catch (error) {
      response.writeHead(500).end(String(error))
    }
  }
  runner = createServer((request, response) => void serve(request, response))
  await new Promise<void>((resolve) => void runner.listen(0, '127.0.0.1', resolve))
  address = `http://127.0.0.1:${(runner.address() as AddressInfo).port}/`
})
afterAll(() => runner.close())

/** All that it says; whether it is content is the last of it. */
const suite = async (...args: string[]): Promise<string> => {
  const child = spawn(process.execPath, [SUITE, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [said, complained] = await Promise.all([text(child.stdout), text(child.stderr)])
  return `${said}${complained}`
}

describe('the conformance suite', () => {
  test('has no scenario for clients that is not looked at here', async () => {
    const listed = (await suite('list')).split('Client scenarios')[1] ?? ''
    const names = [...listed.matchAll(/^ {2}- (\S+)/gm)].map(([, name]) => name)
    expect(new Set(names)).toEqual(new Set([...PASSED, ...Object.keys(NOT_APPLICABLE)]))
  })

  // Its checks have a clock of their own, which a busy machine does not keep.
  const drawn = PASSED.filter((scenario) => campaign.full || scenario !== 'sse-retry')

  test.each(sample('mcp conformance', drawn, 16))('%s', async (scenario) => {
    const command = `${process.execPath} ${COMMAND} ${address}`
    const said = await suite('client', '--command', command, '--scenario', scenario)
    expect(said).toMatch(/Passed: (\d+)\/\1, 0 failed, 0 warnings/)
    expect(said).not.toContain('OVERALL: FAILED')
  })
})
