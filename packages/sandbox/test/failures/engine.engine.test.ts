/** The engine itself dies, hangs, loses power or fills its disk. On engines of our own. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { campaign, extent, randomFrom, sample } from '../../../../test/campaign.ts'
import { SandboxError } from '../../src/errors.ts'
import type { Sandbox } from '../../src/sandbox.ts'
import type { Sandboxes } from '../../src/controller/sandboxes.ts'
import { dockerFixture, type DockerFixture, shell } from '../support/docker-fixture.ts'
import { numbered, numberedHash, Receipt, timesRun } from './numbered.ts'
import { type OwnEngine, startOwnEngine, whyNoOwnEngine } from './own-engine.ts'
import { say, usable } from './say.ts'

const reason = whyNoOwnEngine()
const BYTES = 3_200_000

let engine: OwnEngine
let fixture: DockerFixture
let sandboxes: Sandboxes

/**
 * Every test of a group gets a deployment of its own on the group's engine, with a sandbox of ann's
 * that has a file.
 */
function onEngine(liveRestore: boolean): { sandbox: () => Sandbox } {
  let sandbox: Sandbox
  beforeAll(async () => {
    engine = await startOwnEngine({ liveRestore })
  })
  afterAll(() => engine.dispose())
  beforeEach(async () => {
    const circuit = { askAfterMs: 500, answerMs: 1_500, retryMs: 200 }
    fixture = await dockerFixture({ host: engine.host, circuit })
    sandboxes = fixture.controller()
    sandbox = await sandboxes.acquire('ann')
    await shell(sandbox, 'echo kept > file')
  })
  afterEach(() => fixture.dispose())
  return { sandbox: () => sandbox }
}

/** One of everything, whatever was interrupted. */
async function oneOfEach(): Promise<void> {
  expect(await say(sandboxes, 'cat file')).toBe('kept')
  const users = (await fixture.ledger.list()).length
  expect(await fixture.containers()).toHaveLength(users)
  expect(await fixture.volumes()).toHaveLength(users)
}

const settled = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )

const typedOrNothing = (error: unknown): void => {
  if (error !== undefined) expect(error).toBeInstanceOf(SandboxError)
}

/** Kill dockerd a drawn time after `work` began, start it again; how the work ended. */
async function killDuring(name: string, work: () => Promise<unknown>): Promise<unknown> {
  const afterMs = randomFrom(`${campaign.seed} ${name}`)() * 300
  const outcome = settled(work())
  await sleep(afterMs)
  await engine.kill()
  await engine.start()
  return outcome
}

describe.skipIf(reason !== undefined)(
  `dockerd killed, live-restore on${reason ? ` (${reason})` : ''}`,
  () => {
    const { sandbox } = onEngine(true)

    test('running: the command goes on and its output is whole', async () => {
      const id = randomBytes(16).toString('hex')
      const receipt = new Receipt()
      const command = await sandbox().run({ id, command: `${numbered(BYTES)}; sleep 0.2`, merge: true })
      await receipt.read(command, () => receipt.bytes > BYTES / 4)
      await engine.kill()
      await expect(command.exit).rejects.toMatchObject({ code: 'sandbox_lost' })
      await expect(sandboxes.acquire('bob')).rejects.toMatchObject({ code: 'engine_unavailable' })
      await engine.start()
      await usable(sandboxes)
      const again = await sandboxes.acquire('ann')
      expect(again.bootId).toBe(sandbox().bootId)
      await receipt.read(
        (await again.attach(id, { stdout: receipt.bytes })) ?? expect.fail('the command is gone'),
      )
      expect(receipt.hash()).toBe(numberedHash(BYTES))
      expect(await timesRun(again)).toBe(1)
      await oneOfEach()
    })

    const during = {
      creating: () => sandboxes.acquire('bob'),
      pausing: () => fixture.backend.pause(sandbox().id),
    }
    test.each(sample('dockerd killed, live-restore on', Object.entries(during), 1))(
      '%s: a typed error or none, then everything works',
      async (name, work) => {
        typedOrNothing(await killDuring(name, work))
        await usable(sandboxes)
        await usable(sandboxes, 'bob')
        await oneOfEach()
      },
    )

    // Dense, because only some of them leave the engine with a container that it cannot start or
    // attach to any more.
    const instants = Array.from({ length: 15 }, (_, n) => (n + 1) * 4)
    test.each(sample('dockerd killed while stopping', instants, 1))(
      '%i ms into a stop: a typed error or none, then everything works',
      async (afterMs) => {
        const stopping = settled(sandboxes.stop('ann'))
        await sleep(afterMs)
        await engine.kill()
        await engine.start()
        typedOrNothing(await stopping)
        await usable(sandboxes)
        await oneOfEach()
      },
    )

    test('frozen: every call fails at once, the state is known, and it continues after', async () => {
      const frozen = settled(sandboxes.acquire('bob'))
      process.kill(engine.pid(), 'SIGSTOP')
      try {
        // This one may have been quicker than the signal.
        typedOrNothing(await frozen)
        await expect(fixture.backend.list({})).rejects.toMatchObject({ code: 'engine_unavailable' })
        const started = performance.now()
        const many = Array.from({ length: 200 }, (_, n) => settled(sandboxes.acquire(`user${n}`)))
        for (const error of await Promise.all(many))
          expect(error).toMatchObject({ code: 'engine_unavailable' })
        await expect(fixture.backend.inventory.capabilities()).rejects.toMatchObject({
          message: expect.stringContaining('does not answer'),
        })
        // Without the breaker each would wait for its deadline of 15 s, eight at a time.
        expect(performance.now() - started).toBeLessThan(10_000)
        expect(fixture.backend.inventory.health?.()).toMatchObject({
          reason: expect.stringContaining('does not answer'),
        })
        await sleep(extent(0, 25_000))
      } finally {
        process.kill(engine.pid(), 'SIGCONT')
      }
      await expect.poll(() => fixture.backend.inventory.health?.().state, { timeout: 30_000 }).toBe('closed')
      await usable(sandboxes, 'bob')
      await usable(sandboxes)
      expect(await say(sandboxes, 'cat file')).toBe('kept')
    })
  },
)

describe.skipIf(reason !== undefined)(
  `dockerd killed, live-restore off${reason ? ` (${reason})` : ''}`,
  () => {
    const { sandbox } = onEngine(false)

    const ends = {
      'SIGKILL of dockerd': async () => {
        await engine.kill()
        await engine.start()
      },
      'an orderly restart of dockerd': async () => {
        await engine.stop()
        await engine.start()
      },
      'loss of power': () => engine.reboot(),
    }
    test.each(sample('ends of the engine', Object.entries(ends), 2))(
      '%s: commands are interrupted and never run again, files stay',
      async (_name, end) => {
        const id = randomBytes(16).toString('hex')
        const command = await sandbox().run({ id, command: 'echo ran >>runs; sleep 300' })
        await shell(sandbox(), 'until test -s runs; do sleep 0.02; done')
        await end()
        await expect(command.exit).rejects.toMatchObject({ code: 'sandbox_lost' })
        await usable(sandboxes)
        const again = await sandboxes.acquire('ann')
        expect(again.bootId).not.toBe(sandbox().bootId)
        expect(await again.attach(id)).toBeUndefined()
        await expect(
          again.run({ id, bootId: sandbox().bootId, command: 'echo ran >>runs' }),
        ).rejects.toMatchObject({ code: 'sandbox_lost' })
        expect(await timesRun(again)).toBe(1)
        await oneOfEach()
      },
    )

    const during = {
      creating: () => sandboxes.acquire('bob'),
      pausing: () => fixture.backend.pause(sandbox().id),
    }
    test.each(sample('dockerd killed, live-restore off', Object.entries(during), 1))(
      'killed while %s: a typed error or none, then everything works',
      async (name, work) => {
        typedOrNothing(await killDuring(`${name}, off`, work))
        await usable(sandboxes)
        await usable(sandboxes, 'bob')
        await oneOfEach()
      },
    )

    test('its disk is full: a typed error, a running sandbox answers, and all is well when there is space', async () => {
      const free = await engine.fillDisk()
      const other = fixture.controller()
      await expect(other.acquire('bob')).rejects.toMatchObject({
        code: 'engine_unavailable',
        message: expect.stringContaining('disk is full'),
      })
      const wrote = await shell(sandbox(), 'head -c 100000 /dev/zero > more')
      expect(wrote.code).not.toBe(0)
      expect(wrote.output).toContain('No space left')
      await free()
      await usable(other, 'bob')
      await oneOfEach()
    })
  },
)
