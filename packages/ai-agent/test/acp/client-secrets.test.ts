import { expect, test } from 'vitest'
import { secretsOf } from '../../src/acp/editor/client-secrets.ts'
import { makeRedactor } from '../../src/log.ts'

const http = (url: string, headers: Record<string, string> = {}) =>
  secretsOf({
    type: 'http',
    name: 'web',
    url,
    headers: Object.entries(headers).map(([name, value]) => ({ name, value })),
  })
const program = (...args: string[]) => secretsOf({ name: 'mine', command: 'x', args, env: [] })
const KEY = 'tvly-prod-a81Zk29xQ7mmP04w'

test('headers: what is called so or looks so, and no ordinary word', () => {
  expect(http('https://a.example', { Accept: 'application/json', 'X-Project': 'sandlot' })).toEqual([])
  expect(new Set(http('https://a.example', { authorization: 'ApiKey abc-def', 'X-Trace': KEY }))).toEqual(
    new Set(['ApiKey abc-def', 'abc-def', KEY]),
  )
  expect(http('https://a.example', { Cookie: 'sid=s3cr3t-one; theme=dark' })).toContain('s3cr3t-one')
})

test('addresses: passwords, parameters, parts of the path', () => {
  expect(http('https://a.example/mcp?tavilyApiKey=abcdef&q=ordinary-word')).toEqual(['abcdef', 'abcdef'])
  expect(http('https://a.example/mcp?token=a%2Bbcdef')).toEqual(['a%2Bbcdef', 'a+bcdef'])
  expect(http(`https://a.example/s/${KEY}/mcp`)).toContain(KEY)
  expect(http('https://a.example/a-long-path-of-ordinary-words-2026/mcp')).toEqual([])
})

test('arguments: after a name, behind its =, in an address, by their looks; packages and files are none', () => {
  expect(program('--api-key', 'abcdef')).toEqual(['abcdef'])
  expect(program('--token=abcdef')).toEqual(['abcdef'])
  expect(program('API_KEY=abcdef')).toEqual(['abcdef'])
  expect(program('postgres://ada:hunter2@db.example/x')).toContain('hunter2')
  expect(program('run', KEY)).toEqual([KEY])
  expect(program('--header', 'Authorization: Bearer abcdef')).toContain('abcdef')
  expect(program('--header=X-Api-Key:abcdef')).toContain('abcdef')
  expect(
    program(
      '-y',
      '@scope/server-filesystem@2026.8.31',
      'build/server/index-2.min.js',
      '--key',
      '--verbose',
      '/home/ada',
    ),
  ).toEqual([])
})

test('what sessions bring takes no place of what people keep in the log, and not more than there is', () => {
  const redactor = makeRedactor([])
  redactor.redact('ada-keeps-this')
  for (let n = 0; n < 30_000; n++) redactor.redact(`value-${n}-of-session`, `s_${n % 30}`)
  expect(redactor.scrub('ada-keeps-this value-29999-of-session')).toBe('[hidden] [hidden]')
})
