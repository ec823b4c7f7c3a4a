import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sandlotEventOf } from '@sandlot/shared/events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { HostGrants } from '../../src/rules/host-grants.ts'
import { allowHost } from '../../src/tools/allow-host.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'
import { TestBatch } from '../scheduler/test-batch.ts'
import { type LocalSandboxes, openLocalSandboxes } from './local-sandboxes.ts'

const grants = new HostGrants()
const server = createServer((_request, response) => response.end('the answer'))
let local: LocalSandboxes
let port: number

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ;({ port } = server.address() as AddressInfo)
  local = await openLocalSandboxes({
    network: {
      egress: {
        allow: [],
        alsoAllows: (userId, authority) => grants.allows(userId, authority),
        // The name is public, and leads here.
        resolve: () => Promise.resolve(['127.0.0.1']),
        allowAddresses: ['127.0.0.1'],
      },
    },
  })
}, 60_000)
afterAll(async () => {
  await local.dispose()
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
    tools: [...builtinTools(), allowHost(grants)],
    mode: 'yolo',
    answer: () => ({ allowed, by: 'user' }),
  })
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
  expect(grants.allows('u_test', { host: name, port: port + 1 })).toBe(false)
  expect(grants.allows('u_bob', { host: name, port })).toBe(false)
  const asked = batch.log.map(sandlotEventOf).filter((event) => event?.type === 'approval_asked')
  expect(asked).toHaveLength(2)
  expect(asked[0]).toMatchObject({
    why: [{ part: `${name}:${port}`, because: 'is a host outside of the sandbox' }],
  })
})

test('what is not on the public internet is not even asked about', async () => {
  const batch = new TestBatch({
    tools: [allowHost(grants)],
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
