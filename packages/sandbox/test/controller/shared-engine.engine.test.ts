/**
 * Two controllers on one Docker engine: whose a container is changes while a command runs in it.
 */
import type { Sandboxes } from '../../src/controller/sandboxes.ts'
import { deployed, shell } from '../support/docker-fixture.ts'

const COMMAND = 'c'.repeat(32)

deployed(
  'a warm sandbox of one is claimed by the other, changes hands with its command, and is paused by its owner only',
  async ({ fixture, expect }) => {
    let owner = 'b'
    const losses = new Map<string, (userId: string) => void>()
    const controller = (name: string): Sandboxes =>
      fixture.controller({
        pool: { size: 1, everyMs: 1, delayMs: 0 },
        lookEveryMs: 200,
        idle: { pauseAfterMs: 1_000, stopAfterMs: 0 },
        share: {
          owns: () => owner === name,
          leads: () => name === 'a',
          claim: async () => owner === name,
          takeOver: async (userIds) => new Set(owner === name ? userIds : []),
          isElsewhere: async (userId) => (userId === undefined ? 'a' : owner) !== name,
          askForRoom: async () => {},
          onLost: (lost) => void losses.set(name, lost),
        },
      })
    const [a, b] = [controller('a'), controller('b')]
    await Promise.all([a.maintain(), b.maintain()])
    await a.poolFilled()
    const [warm] = await fixture.ledger.list()
    const before = await b.acquire('ann')
    expect((await fixture.ledger.find('ann'))?.slot).toBe(warm?.slot)
    const running = await before.run({
      id: COMMAND,
      command: 'echo one; while ! [ -e go ]; do sleep 0.1; done; echo two',
    })
    void Promise.allSettled([running.exit])

    owner = 'a'
    losses.get('b')?.('ann')
    const after = await a.acquire('ann')
    expect(after.id).toBe(before.id)
    await after.files.write('go', Buffer.from(''))
    const command = await after.attach(COMMAND)
    let output = ''
    for await (const { data } of command?.output ?? []) output += Buffer.from(data).toString()
    expect(output).toBe('one\ntwo\n')
    expect(await command?.exit).toMatchObject({ code: 0 })
    command?.acknowledge({ stdout: output.length })
    const stateOf = async () => (await fixture.backend.inventory.inspect(after.id))?.state
    await expect.poll(stateOf, { timeout: 20_000 }).toBe('paused')

    // The one that closes wakes its own; the other one takes it over as it is.
    owner = 'b'
    losses.get('a')?.('ann')
    await a.close()
    expect(await stateOf()).toBe('paused')
    expect((await shell(await b.acquire('ann'), 'ls')).output).toBe('go\n')
  },
)
