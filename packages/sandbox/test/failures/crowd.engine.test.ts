/** Many at once: users, callers, and controllers that should not be there. */
import { randomBytes } from 'node:crypto'

import { afterEach, beforeEach, expect, test } from 'vitest'

import { extent } from '../../../../test/campaign.ts'
import { SandboxError } from '../../src/errors.ts'
import type { Sandbox } from '../../src/sandbox.ts'
import { dockerFixture, type DockerFixture, shell } from '../support/docker-fixture.ts'
import { numbered, numberedHash, Receipt, timesRun } from './numbered.ts'

let fixture: DockerFixture
beforeEach(async () => {
  fixture = await dockerFixture()
})
afterEach(() => fixture.dispose(), 300_000)

test('many users at once, each from many callers: one container and one volume each', async () => {
  const users = Array.from({ length: extent(6, 200) }, (_, n) => `user${n}`)
  const sandboxes = fixture.controller()
  const got = await Promise.all(
    users.map(async (user) => {
      const same = await Promise.all(Array.from({ length: 100 }, () => sandboxes.acquire(user)))
      expect(new Set(same).size).toBe(1)
      return same[0] ?? expect.fail()
    }),
  )
  expect(new Set(got.map(({ id }) => id)).size).toBe(users.length)
  expect((await fixture.containers()).length).toBe(users.length)
  expect((await fixture.volumes()).length).toBe(users.length)
  const said = await Promise.all(got.map((sandbox) => shell(sandbox, 'id -u')))
  expect(new Set(said.map(({ output }) => output)).size).toBe(users.length)
}, 600_000)

/** True while this sandbox belongs to the controller that acquired it. */
async function controlled(sandbox: Sandbox): Promise<boolean> {
  try {
    return (await shell(sandbox, 'echo mine')).output === 'mine\n'
  } catch (error) {
    if (error instanceof SandboxError) return false
    throw error
  }
}

test('two controllers that make first sandboxes at once make one per user', async () => {
  const one = fixture.controller()
  const two = fixture.controller()
  for (let round = 0; round < extent(2, 10); round += 1) {
    const users = Array.from({ length: 3 }, (_, n) => `user${round}-${n}`)
    const before = (await fixture.containers()).length
    const acquired = await Promise.allSettled(
      users.flatMap((user) => [one, two].map((sandboxes) => sandboxes.acquire(user))),
    )
    // The loser may be notified, or find another controller's bytes on the same stream.
    for (const result of acquired)
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(SandboxError)
    expect(await fixture.containers()).toHaveLength(before + users.length)
    expect(await fixture.volumes()).toHaveLength(before + users.length)
  }
  await one.close()
  const users = (await fixture.ledger.list()).map(({ userId }) => userId ?? '')
  for (const user of users)
    await expect.poll(() => two.acquire(user).then(controlled, () => false), { timeout: 60_000 }).toBe(true)
}, 300_000)

test('two controllers by mistake: each sandbox obeys exactly one, and a command of both runs once', async () => {
  const one = fixture.controller()
  const two = fixture.controller()
  const users = ['ann', 'bob', 'cid']
  await Promise.all(users.map((user) => one.acquire(user)))
  const pairs = await Promise.all(
    users.map(async (user) => Promise.all([one.acquire(user), two.acquire(user)])),
  )
  expect(await fixture.containers()).toHaveLength(users.length)
  for (const [place, pair] of pairs.entries()) {
    // The loser may learn of it only when it sends, and its bytes may cost the other its
    // connection, once.
    await expect
      .poll(async () => (await Promise.all(pair.map(controlled))).filter(Boolean).length, { timeout: 30_000 })
      .toBeLessThanOrEqual(1)
    const user = users[place] ?? ''
    const id = randomBytes(16).toString('hex')
    const request = { id, command: numbered(160_000), merge: true }
    // The last one has it; then the other takes it back and resumes the command.
    const last = await two.acquire(user)
    const receipt = new Receipt()
    const running = await last.run({ ...request, bootId: last.bootId }).catch(async () => {
      const again = await two.acquire(user)
      return (await again.attach(id)) ?? (await again.run(request))
    })
    await receipt.read(running)
    expect(receipt.hash()).toBe(numberedHash(160_000))
    expect(await timesRun(await two.acquire(user))).toBe(1)
  }
})
