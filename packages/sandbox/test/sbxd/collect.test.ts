import { afterAll, beforeAll, expect, test } from 'vitest'

import type { ConnectedSandbox } from '../../src/sbxd/client.ts'
import { collect } from '../../src/sbxd/collect.ts'
import { buildSbxd } from '../support/build-sbxd.ts'
import { type BackendFixture, Bench } from '../contract/harness.ts'
import { localProcessFixture } from '../support/local-process-fixture.ts'

let fixture: BackendFixture
let sandbox: ConnectedSandbox
beforeAll(async () => {
  fixture = await localProcessFixture(buildSbxd)
  sandbox = (await Bench.start(fixture)).sandbox
}, 120_000)
afterAll(async () => {
  await fixture.dispose()
})

test('what a command prints and how it ends, and nothing of it stays inside', async () => {
  const done = await collect(sandbox, { command: 'printf é; echo no >&2; exit 3' })
  expect(done).toMatchObject({ cause: 'exited', code: 3, stdout: 'é', stderr: 'no\n' })
  expect(done.cut).toBeUndefined()
  expect(await sandbox.commands()).toEqual([])
})

test('of a long output only both ends, and the gap is reported', async () => {
  const { stdout, cut, bytes } = await collect(sandbox, { command: 'seq -f %09g 1 100000' })
  expect(bytes.stdout).toBe(1_000_000)
  expect(cut).toEqual({ stdout: { from: 131_072, to: 1_000_000 - 131_072 } })
  expect([stdout.length, stdout.slice(0, 10), stdout.slice(-10)]).toEqual([
    262_144,
    '000000001\n',
    '000100000\n',
  ])
  const usual = await collect(sandbox, { id: undefined, command: 'seq -f %09g 1 100000', policy: undefined })
  expect(usual).toEqual(expect.objectContaining({ stdout, cut }))
  const whole = await collect(sandbox, { command: 'seq 1 100000', policy: { kind: 'stream' } })
  expect(whole.stdout.length).toBe(whole.bytes.stdout)
})

test('a signal that ends cancels the command; one that has ended begins none', async () => {
  const leaving = new AbortController()
  const running = collect(sandbox, { command: 'echo on; exec sleep 300', signal: leaving.signal })
  await expect.poll(async () => (await sandbox.commands()).length).toBe(1)
  leaving.abort()
  expect(await running).toMatchObject({ cause: 'cancel' })
  await expect(collect(sandbox, { command: 'true', signal: leaving.signal })).rejects.toMatchObject({
    code: 'cancelled',
  })
  expect(await sandbox.commands()).toEqual([])
})
