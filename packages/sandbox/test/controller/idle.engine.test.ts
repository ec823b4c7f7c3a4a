import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { test } from 'vitest'

import { campaign } from '../../../../test/campaign.ts'
import type { Sandboxes, SandboxesOptions } from '../../src/controller/sandboxes.ts'
import { deployed, docker, dockerFixture, shell, type DockerFixture } from '../support/docker-fixture.ts'

const WAIT = { timeout: 60_000, interval: 50 }

async function maintained(
  fixture: DockerFixture,
  idle: SandboxesOptions['idle'],
  change: Partial<SandboxesOptions> = {},
): Promise<Sandboxes> {
  const sandboxes = fixture.controller({ idle: { pauseAfterMs: 0, stopAfterMs: 0, ...idle }, ...change })
  await sandboxes.maintain()
  return sandboxes
}

const stateOf = async (sandboxes: Sandboxes): Promise<string> => (await sandboxes.status('ann')).state

deployed(
  'paused when idle; the next command of the same sandbox wakes it, in a small part of a start and an exec',
  async ({ fixture, expect }) => {
    const sandboxes = await maintained(fixture, { pauseAfterMs: 300 })
    const sandbox = await sandboxes.acquire('ann')
    const wakes: number[] = []
    for (let n = 0; n < 3; n += 1) {
      await expect.poll(() => stateOf(sandboxes), WAIT).toBe('paused')
      expect((await sandboxes.status('ann')).connected).toBe(true)
      const from = performance.now()
      expect((await shell(sandbox, 'echo awake')).output).toBe('awake\n')
      wakes.push(performance.now() - from)
    }
    expect(await sandboxes.acquire('ann')).toBe(sandbox)
    await sandboxes.stop('ann')
    const from = performance.now()
    // sbxd waits for a first HELLO, and exec works beside it.
    await docker('start', sandbox.id)
    await docker('exec', sandbox.id, 'true')
    const cold = performance.now() - from
    const wake = wakes.toSorted((a, b) => a - b)[1] ?? Number.NaN
    console.log(`wake and command: ${wake.toFixed(1)} ms; docker start and exec: ${cold.toFixed(0)} ms`)
    expect(wake).toBeLessThan(cold)
  },
)

deployed(
  'what runs is never paused or stopped, not even by a controller that does not know it',
  async ({ fixture, expect }) => {
    const first = await maintained(fixture, { pauseAfterMs: 100, stopAfterMs: 200 })
    const id = 'f'.repeat(32)
    const command = 'echo on > file; while [ -e file ]; do sleep 0.05; done; echo ended'
    await (await first.acquire('ann')).run({ id, command })
    await first.close()
    // It knows the sandbox from the engine alone, and nobody has attached to the command.
    const second = await maintained(fixture, { pauseAfterMs: 100, stopAfterMs: 200 })
    expect((await second.status('ann')).connected).toBe(true)
    const seen = new Set<string>()
    for (const end = performance.now() + 1_500; performance.now() < end;) seen.add(await stateOf(second))
    expect([...seen]).toEqual(['running'])
    const sandbox = await second.acquire('ann')
    await sandbox.files.remove('file')
    const running = await sandbox.attach(id)
    let output = ''
    for await (const { data } of running?.output ?? []) output += Buffer.from(data).toString()
    expect(output).toBe('ended\n')
    expect((await running?.exit)?.code).toBe(0)
    running?.acknowledge({ stdout: output.length, stderr: 0 })
    await expect.poll(() => stateOf(second), WAIT).toBe('stopped')
  },
)

deployed(
  'a controller that leaves wakes what is paused, or its lease would never run out',
  async ({ fixture, expect }) => {
    const first = await maintained(
      fixture,
      { pauseAfterMs: 100 },
      { pool: { size: 2, everyMs: 1, delayMs: 0 } },
    )
    await first.acquire('ann')
    await first.poolFilled()
    const states = async (): Promise<string[]> =>
      (await fixture.backend.list({})).map(({ state }) => state).toSorted()
    await expect.poll(states, WAIT).toContain('paused')
    await first.close()
    expect(await states()).toEqual(['running', 'running', 'running'])
  },
)

deployed(
  'stopped when idle for long, also what an earlier controller left paused; the files are there at the next use',
  async ({ fixture, expect }) => {
    const first = await maintained(fixture, { pauseAfterMs: 100 })
    await shell(await first.acquire('ann'), 'echo kept > file')
    await expect.poll(() => stateOf(first), WAIT).toBe('paused')
    const { id } = await first.status('ann')
    await first.close()
    // The state that a killed one leaves.
    await docker('pause', id ?? '')
    const second = await maintained(fixture, { stopAfterMs: 300 }, { lookEveryMs: 100 })
    await expect.poll(() => stateOf(second), WAIT).toBe('stopped')
    expect((await shell(await second.acquire('ann'), 'cat file')).output).toBe('kept\n')
    await expect.poll(() => stateOf(second), WAIT).toBe('stopped')
    expect((await shell(await second.acquire('ann'), 'cat file')).output).toBe('kept\n')
  },
)

deployed('an operator’s pause of a sandbox that works is undone', async ({ fixture, expect }) => {
  const sandboxes = await maintained(fixture, {}, { lookEveryMs: 200 })
  const running = shell(await sandboxes.acquire('ann'), 'echo on > file; sleep 0.5; echo done')
  await expect.poll(async () => (await (await sandboxes.acquire('ann')).files.list('')).length, WAIT).toBe(1)
  await docker('pause', (await sandboxes.acquire('ann')).id)
  expect((await running).output).toBe('done\n')
})

/** Path of a container's freezer, on a host with cgroup v1 that is writable to us. */
const freezer = (id: string): string => join('/sys/fs/cgroup/freezer/docker', id, 'freezer.state')

test.runIf(campaign.full)(
  'frozen behind the engine’s back, which says that it runs: it is ended and started again',
  async ({ expect, skip }) => {
    const fixture = await dockerFixture()
    try {
      const first = await maintained(fixture, {})
      const { id } = await first.acquire('ann')
      if (!existsSync(freezer(id))) return skip('the freezer is not to be had here')
      await first.close()
      await writeFile(freezer(id), 'FROZEN')
      expect((await docker('inspect', '-f', '{{.State.Status}}', id)).trim()).toBe('running')
      const second = fixture.controller()
      expect((await shell(await second.acquire('ann'), 'echo thawed')).output).toBe('thawed\n')
      expect((await second.acquire('ann')).id).toBe(id)
    } finally {
      await fixture.dispose()
    }
  },
  60_000,
)
