/** A command runs once, in whatever order it is started, acknowledged and lost from sight. */
import { setImmediate } from 'node:timers/promises'

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { campaign, extent } from '../../../../test/campaign.ts'
import type { RunningCommand } from '../../src/sandbox.ts'
import { type BackendFixture, Bench, finish, newId, sh } from '../contract/harness.ts'
import { buildSbxd } from '../support/build-sbxd.ts'
import { localProcessFixture } from '../support/local-process-fixture.ts'

let fixture: BackendFixture
beforeAll(async () => {
  fixture = await localProcessFixture(buildSbxd)
}, 60_000)
afterAll(() => fixture.dispose())

const COMMANDS = 3
/** sbxd's possible state of a command's output: nothing was discarded, some may be, some was. */
type Output = 'kept' | 'perhaps' | 'gone'

interface Known {
  request: { id: string; command: string }
  code: number
  /** A command of this connection that has ended. */
  seen?: RunningCommand
  output: Output
  /** A START of it was sent, and one was answered. */
  begun: boolean
  surely: boolean
}

function newCommand(code: number): Known {
  const id = newId()
  const command = `echo ran >> ${id}; echo out-${code}; exit ${code}`
  return { request: { id, command }, code, output: 'kept', begun: false, surely: false }
}

const step = fc.record({
  what: fc.constantFrom(
    'start',
    'start, and lose the connection',
    'acknowledge',
    'acknowledge, and lose the connection',
    'lose the connection',
    'ask',
  ),
  which: fc.nat(COMMANDS - 1),
})

test('runs once, and is always reported truthfully', async () => {
  const { bench, sandbox: first } = await Bench.start(fixture)
  let sandbox = first
  const lose = async (): Promise<void> => {
    await sandbox.close()
    bench.epoch += 1
    sandbox = await bench.connect()
  }
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 14 }), async (steps) => {
      const commands = Array.from({ length: COMMANDS }, (_, code) => newCommand(code))
      // An ACK has no answer of its own: until another request is answered, a close may discard it.
      const unanswered = new Set<Known>()
      const forgetConnection = async (): Promise<void> => {
        for (const command of commands) delete command.seen
        for (const command of unanswered) command.output = 'perhaps'
        unanswered.clear()
        await lose()
      }
      for (const { what, which } of steps) {
        const command = commands[which]
        if (command === undefined) throw new Error('there is no such command')
        const { request, code } = command
        const told = async (running: RunningCommand): Promise<void> => {
          const whole = `out-${code}\n`
          const result = await finish(running)
          expect(result).toMatchObject({ cause: 'exited', code, bytes: { stdout: whole.length, stderr: 0 } })
          const may = { kept: [whole], perhaps: [whole, ''], gone: [''] }[command.output]
          expect(may).toContain(result.out)
          unanswered.clear()
          command.output = result.out === '' ? 'gone' : 'kept'
          command.seen = running
          command.begun = command.surely = true
        }
        const acknowledge = (): void => {
          if (command.seen === undefined) return
          command.seen.acknowledge({ stdout: `out-${code}\n`.length })
          if (command.output !== 'gone') unanswered.add(command)
          command.output = 'gone'
        }
        if (what === 'start') await told(await sandbox.run(request))
        else if (what === 'start, and lose the connection') {
          command.begun = true
          void Promise.allSettled([sandbox.run(request)])
          await setImmediate()
          await forgetConnection()
        } else if (what === 'acknowledge') acknowledge()
        else if (what === 'acknowledge, and lose the connection') {
          acknowledge()
          await setImmediate()
          await forgetConnection()
        } else if (what === 'lose the connection') await forgetConnection()
        else {
          const running = await sandbox.attach(request.id, {}, { acknowledged: true })
          if (running === undefined) expect(command.surely).toBe(false)
          else await told(running)
        }
      }
      const { out } = await sh(
        sandbox,
        commands.map(({ request: { id } }) => `cat ${id} 2>/dev/null | wc -l`).join('; '),
      )
      for (const [which, times] of out.trim().split('\n').map(Number).entries()) {
        const { begun, surely } = commands[which] ?? {}
        expect(times).toBeLessThanOrEqual(begun === true ? 1 : 0)
        if (surely === true) expect(times).toBe(1)
      }
    }),
    { numRuns: extent(25, 1_500), seed: campaign.seed, endOnFailure: true },
  )
}, 600_000)

test.runIf(campaign.full)(
  'of 4,096 acknowledged commands the end is known, and the oldest is forgotten first',
  async () => {
    const { sandbox } = await Bench.start(fixture)
    const ids = Array.from({ length: 4_200 }, newId)
    for (let at = 0; at < ids.length; at += 64)
      await Promise.all(
        ids.slice(at, at + 64).map((id) => sh(sandbox, ['true'], { id, autoAcknowledge: true })),
      )
    const isKnown = async (id = ''): Promise<boolean> =>
      (await sandbox.attach(id, {}, { acknowledged: true })) !== undefined
    const known = await Promise.all(ids.map(isKnown))
    expect(known.filter(Boolean)).toHaveLength(4_096)
    // Those of one batch end in any order.
    expect(known.lastIndexOf(false)).toBeLessThan(4_200 - 4_096 + 64)
  },
  600_000,
)
