/** Changes of containers by an operator, or by the kernel. On an engine of its own. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { campaign, sample } from '../../../../test/campaign.ts'
import type { Sandbox } from '../../src/sandbox.ts'
import type { Sandboxes } from '../../src/controller/sandboxes.ts'
import { testConfig } from '../support/config.ts'
import { dockerFixture, type DockerFixture, shell } from '../support/docker-fixture.ts'
import { type OwnEngine, startOwnEngine, whyNoOwnEngine } from './own-engine.ts'
import { say, usable } from './say.ts'

const reason = whyNoOwnEngine()

describe.skipIf(reason !== undefined)(`behind our back${reason ? ` (${reason})` : ''}`, () => {
  let engine: OwnEngine
  let fixture: DockerFixture
  let sandboxes: Sandboxes
  let sandbox: Sandbox
  beforeAll(async () => {
    engine = await startOwnEngine()
  })
  afterAll(() => engine.dispose())
  beforeEach(async () => {
    fixture = await dockerFixture({ host: engine.host })
    sandboxes = fixture.controller()
    sandbox = await sandboxes.acquire('ann')
    await shell(sandbox, 'echo kept > file')
  })
  afterEach(() => fixture.dispose())

  const actions = {
    kill: (id: string) => engine.docker('kill', id),
    'rm -f': (id: string) => engine.docker('rm', '-f', id),
    pause: (id: string) => engine.docker('pause', id),
  }
  const states = {
    running: async () => {},
    paused: async () => void (await engine.docker('pause', sandbox.id)),
    stopped: () => sandboxes.stop('ann'),
  }
  const cases = Object.entries(actions).flatMap(([action, act]) =>
    Object.entries(states).map(([state, arrive]) => ({ action, act, state, arrive })),
  )
  test.each(sample('operator', cases, 1))(
    'docker $action while $state: the next use heals it',
    async (each) => {
      await each.arrive()
      // Nothing to kill or pause in a container that does not run: the engine refuses, and that is
      // an answer too.
      await each.act(sandbox.id).catch(() => {})
      await usable(sandboxes)
      expect(await say(sandboxes, 'cat file')).toBe('kept')
      expect(await fixture.containers()).toHaveLength(1)
      expect(await fixture.volumes()).toHaveLength(1)
    },
  )

  const waits = [
    { action: 'kill', goesOn: false },
    { action: 'rm -f', goesOn: false },
    { action: 'pause', goesOn: true },
  ] as const
  test.each(sample('operator while somebody waits', waits, 1))(
    'docker $action while somebody waits for a command: a typed error, or its end where it goes on',
    async ({ action, goesOn }) => {
      const id = 'c'.repeat(32)
      const command = await sandbox.run({ id, command: 'until test -e go; do sleep 0.02; done' })
      // A pause longer than the heartbeats allow is noticed as well.
      const outcome = command.exit.catch((error: unknown) => error)
      await actions[action](sandbox.id)
      if (!goesOn) expect(await outcome).toMatchObject({ name: 'SandboxError', code: 'sandbox_lost' })
      await usable(sandboxes)
      const after = await sandboxes.acquire('ann')
      const found = after === sandbox ? command : await after.attach(id)
      if (goesOn) {
        await shell(after, 'touch go')
        expect(await found?.exit).toMatchObject({ cause: 'exited', code: 0 })
      } else expect(found).toBeUndefined()
      expect(await say(sandboxes, 'cat file')).toBe('kept')
    },
  )

  const deaths = [
    { who: 'PID 1', pid: () => engine.processesOf(sandbox.id).init },
    { who: 'the containerd shim', pid: () => engine.processesOf(sandbox.id).shim },
  ]
  test.each(sample('deaths', deaths, 1))(
    'SIGKILL of $who from the host: that sandbox only, and it is made again',
    async ({ pid }) => {
      const other = await sandboxes.acquire('bob')
      const command = await sandbox.run({ id: 'd'.repeat(32), command: 'sleep 300' })
      process.kill(pid(), 'SIGKILL')
      await expect(command.exit).rejects.toMatchObject({ name: 'SandboxError', code: 'sandbox_lost' })
      await usable(sandboxes)
      expect(await say(sandboxes, 'cat file')).toBe('kept')
      expect((await sandboxes.acquire('ann')).bootId).not.toBe(sandbox.bootId)
      expect(await sandboxes.acquire('bob')).toBe(other)
      expect((await shell(other, 'echo untouched')).output).toBe('untouched\n')
    },
  )

  test.runIf(campaign.full)(
    'the name of the next container is taken twice: it goes on to the one after',
    async () => {
      const { name = '' } = await sandboxes.status('ann')
      await engine.docker('rm', '-f', sandbox.id)
      for (const n of [1, 2]) {
        const taken = name.replace(/-1$/, `-${n}`)
        await engine.docker('create', '--network', 'none', '--name', taken, testConfig.image)
      }
      await usable(sandboxes)
      expect((await sandboxes.status('ann')).name).toMatch(/-3$/)
      expect(await say(sandboxes, 'cat file')).toBe('kept')
      await engine.docker('rm', name, name.replace(/-1$/, '-2'))
    },
  )

  const wrongImages = [`sha256:${'0'.repeat(64)}`, 'sandlot/none:missing']
  test.each(sample('wrong images', wrongImages, 1))(
    'the image %s is not there: a typed error says how to make it, and no container is left',
    async (image) => {
      const wrong = fixture.controller({ image })
      await expect(wrong.acquire('bob')).rejects.toMatchObject({
        code: 'engine_unavailable',
        message: expect.stringContaining('build-images.sh'),
      })
      expect(await fixture.containers()).toEqual([sandbox.id])
      // A workspace is made before its first container, and never removed by itself.
      expect(await fixture.volumes()).toHaveLength(2)
      await wrong.close()
      await usable(fixture.controller(), 'bob')
    },
  )
})
