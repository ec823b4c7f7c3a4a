import type { EgressOptions } from '@sandlot/sandbox/egress/egress'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { TestBatch } from '../calls/test-batch.ts'
import { type LocalSandboxes, openLocalSandboxes } from './local-sandboxes.ts'

type EgressAudit = Parameters<NonNullable<EgressOptions['audit']>>[0]
type EgressRefusedEvent = Parameters<NonNullable<EgressOptions['onRefused']>>[0]

let local: LocalSandboxes
const audits: EgressAudit[] = []
const events: EgressRefusedEvent[] = []
beforeAll(async () => {
  const egress = {
    allow: [],
    audit: (record: EgressAudit) => audits.push(record),
    onRefused: (event: EgressRefusedEvent) => events.push(event),
  }
  local = await openLocalSandboxes({ network: { egress } })
}, 60_000)
afterAll(() => local.dispose())

/** A program that throws the answer away, as most do. */
const SILENT = `
const proxy = new URL(process.env.HTTP_PROXY)
require('node:http').get({ host: proxy.hostname, port: proxy.port, path: 'http://needed.test/secret', headers: { Host: 'needed.test' } },
  (answer) => answer.resume())`

test('the model is told which host a command asked for and did not get; the path is in no record', async () => {
  const batch = new TestBatch({ sandboxes: () => local.sandboxes })
  const outcome = await batch.call(
    'run_shell_command',
    { command: `'${process.execPath}' -e "${SILENT}"` },
    'c1',
  )
  expect(outcome).toMatchObject({
    status: 'completed',
    forModel: expect.stringMatching(
      /the network of this sandbox refused needed\.test:80 \(not on the list of allowed hosts\)/,
    ),
    data: { refusedHosts: [{ host: 'needed.test', port: 80, reason: 'not_allowed' }] },
  })
  expect(events).toEqual([
    expect.objectContaining({ userId: 'u_test', host: 'needed.test', reason: 'not_allowed' }),
  ])
  await vi.waitFor(() => expect(audits).toHaveLength(1), { timeout: 60_000 })
  expect(audits[0]?.commandId).toBe(events[0]?.commandId)
  expect(JSON.stringify([audits, events])).not.toContain('secret')
})

test('a command that asks for nothing says nothing of it', async () => {
  const batch = new TestBatch({ sandboxes: () => local.sandboxes })
  const outcome = await batch.call('run_shell_command', { command: 'echo quiet' }, 'c1')
  expect(outcome).toMatchObject({ status: 'completed', forModel: 'quiet' })
  expect(outcome.data).not.toHaveProperty('refusedHosts')
})
