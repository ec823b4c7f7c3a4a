import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeSandlotEvent, sandlotEventOf } from '@sandlot/shared/chat/events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSessionStore } from '@sandlot/storage/store/open'
import type { SessionStore } from '@sandlot/storage/sessions/store'
import { hostRules } from '../../src/approval/hosts.ts'
import { RuleRegistry } from '../../src/approval/rule-registry.ts'
import { ruleSettings } from '../../src/approval/config.ts'
import { allowHost } from '../../src/tools/allow-host.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { TestBatch } from '../calls/test-batch.ts'
import { type LocalSandboxes, openLocalSandboxes } from './local-sandboxes.ts'

const server = createServer((_request, response) => response.end('the answer'))
let local: LocalSandboxes
let folder: string
let store: SessionStore
let rules: RuleRegistry
let port: number

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ;({ port } = server.address() as AddressInfo)
  folder = mkdtempSync(join(tmpdir(), 'sandlot-hosts-'))
  store = await openSessionStore(join(folder, 'sessions.db'))
  await store.sessions.create({ id: 's_test', userId: 'u_test', cwd: '/workspace', mode: 'yolo', at: 1 })
  rules = new RuleRegistry(store.people.rules, ruleSettings(undefined), Date.now)
  local = await openLocalSandboxes({
    network: {
      egress: {
        allow: [],
        rulesOf: async (userId) => hostRules(await rules.of(userId), true),
        // The name is public, and leads here.
        resolve: () => Promise.resolve(['127.0.0.1']),
        allowAddresses: ['127.0.0.1'],
      },
    },
  })
}, 60_000)
afterAll(async () => {
  await local.dispose()
  await store.close()
  rmSync(folder, { recursive: true })
  server.close()
})

const FETCH = (host: string): string => `
const proxy = new URL(process.env.HTTP_PROXY)
require('node:http').get({ host: proxy.hostname, port: proxy.port, path: 'http://${host}/', headers: { Host: '${host}' } },
  (answer) => { answer.setEncoding('utf8'); answer.on('data', (text) => process.stdout.write(answer.statusCode + ' ' + text)) })`

test('a host that the user allows is let through, at that port, for that user; no mode allows it by itself', async () => {
  let allowed = false
  const batch = new TestBatch({
    sandboxes: () => local.sandboxes,
    tools: [...builtinTools(), allowHost(rules)],
    mode: 'yolo',
    answer: () => ({ allowed, by: 'user' }),
  })
  const runs = (promptId: string | null) =>
    store.log.append('s_test', [makeSandlotEvent({ type: 'stop_asked' }, {}, 1)], {
      runningPromptId: promptId,
    })
  await runs(batch.promptId)
  const fetch = (host: string) =>
    batch.call('run_shell_command', { command: `'${process.execPath}' -e "${FETCH(host)}"` })
  const name = 'needed.example.org'
  expect((await fetch(`${name}:${port}`)).forModel).toContain(`refused ${name}:${port}`)
  const ask = { host: name, port, why: 'the tests need it' }
  expect(await batch.call('allow_host', ask)).toMatchObject({ status: 'failed', reason: 'denied' })
  expect((await fetch(`${name}:${port}`)).forModel).toContain('refused')
  allowed = true
  expect(await batch.call('allow_host', ask)).toMatchObject({ status: 'completed' })
  expect((await fetch(`${name}:${port}`)).forModel).toContain('200 the answer')
  expect((await fetch(`other.example.org:${port}`)).forModel).toContain('refused')
  expect(await rules.of('u_test')).toMatchObject([
    { effect: 'allow', match: { host: `${name}:${port}` }, endsWith: { promptId: batch.promptId } },
  ])
  expect(await rules.of('u_bob')).toEqual([])
  // Allowed once: for this message.
  await runs(null)
  expect((await fetch(`${name}:${port}`)).forModel).toContain('refused')
  const kept = await rules.add('u_test', { effect: 'allow', match: { host: name } })
  expect((await fetch(`${name}:${port}`)).forModel).toContain('200 the answer')
  await rules.revoke('u_test', kept.id)
  await rules.add('u_test', { effect: 'deny', match: { host: `*.example.org:${port}` } })
  const denied = await fetch(`${name}:${port}`)
  expect(denied.forModel).toContain(`refused ${name}:${port} (a rule denies it`)
  const asked = batch.log.map(sandlotEventOf).filter((event) => event?.type === 'approval_asked')
  expect(asked).toHaveLength(2)
  expect(asked[0]).toMatchObject({
    why: [{ part: `${name}:${port}`, because: 'is a host outside of the sandbox' }],
  })
})

test('what is not on the public internet is not even asked about', async () => {
  const batch = new TestBatch({
    tools: [allowHost(rules)],
    mode: 'yolo',
    answer: () => ({ allowed: true, by: 'user' }),
  })
  for (const host of ['localhost', '169.254.169.254', 'db.internal'])
    expect(await batch.call('allow_host', { host })).toMatchObject({
      status: 'failed',
      reason: 'denied',
      data: { by: 'block' },
    })
  expect(batch.story().some((line) => line.startsWith('asked'))).toBe(false)
})
