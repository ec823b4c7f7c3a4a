import { describe, expect, test } from 'vitest'
import { readConfigFile } from '../../src/config/file.ts'
import { mcpServersSection } from '../../src/mcp/config.ts'
import { fillTemplate, fillTemplates, readServerSpecs } from '../../src/mcp/server-spec.ts'
import { configFile } from '../support/config-fixture.ts'

/** Problems that the configuration file of these servers reports. */
function problemsOf(mcpServers: unknown): string[] {
  const path = configFile(JSON.stringify({ mcpServers }))
  const problems: string[] = []
  readConfigFile(path, true, problems)
  return problems.map((problem) => problem.replace(`${path}: `, ''))
}

function specsOf(
  servers: unknown,
  env: Record<string, string> = {},
): { specs: ReturnType<typeof readServerSpecs>; problems: string[]; secrets: string[] } {
  const problems: string[] = []
  const secrets: string[] = []
  const readFile = (path: string): string => `from ${path}\n`
  const specs = readServerSpecs(mcpServersSection.parse(servers), { env, readFile }, problems, secrets)
  return { specs, problems, secrets }
}

describe('the section mcpServers', () => {
  test('takes servers of both kinds, with their defaults', () => {
    expect(problemsOf({ files: { command: 'npx' }, web: { url: 'https://mcp.example.org/mcp' } })).toEqual([])
    const { web } = mcpServersSection.parse({ web: { url: 'https://mcp.example.org/mcp' } })
    expect(web).toMatchObject({
      enabled: true,
      timeoutMs: 10_000,
      maxTimeoutMs: 300_000,
      readOnly: [],
      headers: {},
    })
  })

  test('every problem is reported at once, with its place and an example', () => {
    expect(
      problemsOf({
        neither: {},
        both: { command: 'a', url: 'https://a.example' },
        one: { command: '', args: 'x', where: 'elsewhere', timeoutMs: 5, envv: {} },
        two: {
          url: 'ftp://a',
          readOnly: true,
          auth: { type: 'oauth', id: 'a' },
          toolSettings: { t: { cache: 1 } },
        },
        'a-b': { command: 'a' },
        a_b: { command: 'a' },
      }),
    ).toEqual([
      expect.stringMatching(/^mcpServers\.neither: needs a command like \{"command": "npx"/),
      'mcpServers.both: has a command and an address; keep one',
      'mcpServers.one.timeoutMs: must be at least 1000 (milliseconds)',
      'mcpServers.one.command: must not be empty; for example "npx"',
      expect.stringContaining('mcpServers.one.args: '),
      'mcpServers.one.where: must be "deployment" (beside the agent) or "sandbox"',
      'mcpServers.one.envv: is not a setting of an MCP server; did you mean env?',
      expect.stringMatching(/^mcpServers\.two\.readOnly: must be "as-announced"/),
      'mcpServers.two.toolSettings.t.cache: is not a setting of an MCP server',
      'mcpServers.two.url: must be an address like https://mcp.example.org/mcp',
      'mcpServers.two.auth.id: is not a setting of an MCP server',
    ])
    expect(
      problemsOf({ 'no spaces': { command: 'a' }, 'a-b': { command: 'a' }, a_b: { command: 'a' } }),
    ).toEqual([
      'mcpServers.no spaces: its name must be 1–40 letters, digits, - and _, for example flights-mcp',
      'mcpServers.a_b: is too like a-b; choose another name',
    ])
  })
})

describe('references', () => {
  test('stand for the environment, for files, for secrets of users, or for themselves', async () => {
    const headers = { X: '${A}-${B}-${secret:C}-$${A}-$A' }
    const { specs, problems, secrets } = specsOf(
      { web: { url: 'https://a.example', headers } },
      { A: 'one', B_FILE: '/b' },
    )
    expect(problems).toEqual([])
    expect(secrets).toEqual(['one', 'from /b'])
    const [spec] = specs
    const template = (spec?.kind === 'http' ? spec.headers['X'] : undefined) ?? expect.fail()
    expect(await fillTemplate(template, async (name) => `secret ${name}`)).toBe(
      'one-from /b-secret C-${A}-$A',
    )
  })

  test('that cannot be resolved are reported with their place, and never with a value', () => {
    const { problems } = specsOf(
      {
        web: { url: 'https://a.example', headers: { Authorization: 'Bearer ${TOKEN}', X: '${}' } },
        here: { command: 'a', args: ['${ARG}'], env: { KEY: '${KEY}' } },
      },
      { KEY: '' },
    )
    expect(problems.toSorted()).toEqual([
      'mcpServers.here.args.0: ${ARG} is not set; set ARG (or ARG_FILE) for the agent',
      'mcpServers.here.env.KEY: ${KEY} is not set; set KEY (or KEY_FILE) for the agent',
      'mcpServers.web.headers.Authorization: ${TOKEN} is not set; set TOKEN (or TOKEN_FILE) for the agent',
      expect.stringMatching(/^mcpServers\.web\.headers\.X: \$\{\} names nothing/),
    ])
  })

  test('to secrets of users make a server each user’s own; a variable whose secret is missing is left out', async () => {
    const { specs } = specsOf({
      own: { command: 'a', env: { T: '${secret:T}', U: 'plain' } },
      all: { command: 'a' },
      sandbox: { command: 'a', where: 'sandbox' },
      signed: { url: 'https://a.example', auth: { type: 'oauth' } },
    })
    expect(specs.map(({ name, perUser }) => [name, perUser])).toEqual([
      ['all', false],
      ['own', true],
      ['sandbox', true],
      ['signed', true],
    ])
    const own = specs.find(({ name }) => name === 'own')
    if (own?.kind !== 'stdio') throw new Error('there is no such server')
    expect(await fillTemplates(own.env, async () => undefined)).toEqual({ U: 'plain' })
    expect(await fillTemplates(own.env, async () => 'x')).toEqual({ T: 'x', U: 'plain' })
  })

  test('to secrets are refused in a sandbox, where every command could read them', () => {
    const { problems } = specsOf({ s: { command: 'a', where: 'sandbox', env: { T: '${secret:T}' } } })
    expect(problems).toEqual([expect.stringMatching(/^mcpServers\.s: no secret may be in a sandbox/)])
  })

  test('the deployment’s credential is one value, is redacted in logs, and contains no user’s secret', () => {
    const url = 'https://a.example'
    const auth = { type: 'client-credentials', clientId: 'us' }
    const of = (more: object): string[] => problemsOf({ s: { url, auth: more } })
    expect(of({ type: 'oauth', clientSecret: 'x' })).toEqual([
      'mcpServers.s.auth.clientSecret: needs the clientId that it belongs to',
    ])
    for (const both of [{}, { clientSecret: 'x', privateKey: 'y' }])
      expect(of({ ...auth, ...both })).toEqual([
        'mcpServers.s.auth.clientSecret: or privateKey is needed, and only one of them',
      ])
    expect(of({ type: 'basic' })).toEqual([
      expect.stringContaining('mcpServers.s.auth.type: must say its type'),
    ])
    expect(of({ ...auth, clientSecret: 'x', issuer: 'login' })).toEqual([
      expect.stringContaining('mcpServers.s.auth.issuer: must be an address'),
    ])
    const read = specsOf(
      {
        s: { url, auth: { ...auth, privateKey: '${KEY}' } },
        t: { url, auth: { ...auth, clientSecret: '${secret:MINE}' } },
        u: { url, auth: { ...auth, clientSecret: 'written as it is' } },
      },
      { KEY: 'a private key' },
    )
    expect(read.secrets).toEqual(['a private key', 'written as it is'])
    expect(read.problems).toEqual([
      "mcpServers.t: auth is the deployment's, so no secret of a user may stand in it; use ${NAME}",
    ])
    expect(read.specs.map(({ perUser }) => perUser)).toEqual([false, false, false])
  })

  test('resolved values are redacted in logs; a disabled server needs none', () => {
    const { secrets, problems, specs } = specsOf(
      {
        on: { url: 'https://a.example', headers: { Authorization: '${TOKEN}' } },
        off: { command: 'a', enabled: false, args: ['${NOTHING}'] },
      },
      { TOKEN: 'not-for-logs' },
    )
    expect({ secrets, problems, names: specs.map(({ name }) => name) }).toEqual({
      secrets: ['not-for-logs'],
      problems: [],
      names: ['on'],
    })
  })
})
