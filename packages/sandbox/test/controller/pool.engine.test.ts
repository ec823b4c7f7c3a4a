import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { LABEL } from '../../src/names.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { ownerTag, parseName } from '../../src/names.ts'
import type { Sandboxes, SandboxesOptions } from '../../src/controller/sandboxes.ts'
import { testConfig } from '../support/config.ts'
import { deployed, docker, shell, type DockerFixture } from '../support/docker-fixture.ts'

const POOL = { size: 3, everyMs: 1, delayMs: 0 } as const

async function filled(fixture: DockerFixture, change: Partial<SandboxesOptions> = {}): Promise<Sandboxes> {
  const sandboxes = fixture.controller({ pool: POOL, ...change })
  await sandboxes.maintain()
  await sandboxes.poolFilled()
  return sandboxes
}

const median = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

async function timed(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now()
  await work()
  return performance.now() - from
}

deployed(
  'the first command of a new user takes a small part of a docker run, and runs under their own name',
  async ({ fixture, expect }) => {
    const sandboxes = await filled(fixture, { lookEveryMs: 500, pool: { ...POOL, everyMs: 250 } })
    const states = async () => (await fixture.backend.list({})).map(({ state }) => state).toSorted()
    // The next one to go is awake.
    await expect.poll(states, { timeout: 60_000 }).toEqual(['paused', 'paused', 'running'])

    const hits: number[] = []
    const runs: number[] = []
    for (const user of ['ann', 'bob', 'cid', 'dan', 'eve']) {
      await sandboxes.poolFilled()
      const warm = (await fixture.ledger.list()).filter(({ state }) => state === 'warm')
      expect(warm).toHaveLength(POOL.size)
      hits.push(
        await timed(async () =>
          expect((await shell(await sandboxes.acquire(user), 'echo hi')).output).toBe('hi\n'),
        ),
      )
      const slot = await fixture.ledger.find(user)
      expect(warm.map((row) => row.slot)).toContain(slot?.slot)
      const container = await fixture.backend.inventory.inspect((await sandboxes.acquire(user)).id)
      expect(parseName(fixture.deployment, container?.name ?? '')).toEqual({
        kind: 'claimed',
        slot: slot?.slot,
        owner: ownerTag(fixture.deploymentKey, user),
        generation: 1,
      })
      runs.push(
        await timed(() =>
          docker('run', '--rm', '--network=none', '--entrypoint=/bin/true', testConfig.image),
        ),
      )
    }
    console.log(
      `first command after a pool hit: ${median(hits).toFixed(1)} ms; docker run: ${median(runs).toFixed(0)} ms`,
    )
    expect(median(hits)).toBeLessThan(median(runs) / 3)
  },
)

deployed('two controllers that cross never give one sandbox to two users', async ({ fixture, expect }) => {
  const one = await filled(fixture)
  const two = await filled(fixture)
  const users = ['ann', 'bob', 'cid', 'dan', 'eve', 'fay']
  await Promise.all(
    users.map(async (user, n) => shell(await (n % 2 ? one : two).acquire(user), `echo ${user} >> mine`)),
  )
  const slots = await Promise.all(users.map((user) => fixture.ledger.find(user)))
  expect(new Set(slots.map((slot) => slot?.slot)).size).toBe(users.length)
  expect(new Set(slots.map((slot) => slot?.uid)).size).toBe(users.length)
  for (const [n, user] of users.entries())
    expect((await shell(await (n % 2 ? one : two).acquire(user), 'cat mine')).output).toBe(`${user}\n`)
  await one.poolFilled()
  await two.poolFilled()
  const warm = (await fixture.ledger.list()).filter(({ state }) => state === 'warm')
  expect(warm.length).toBeLessThanOrEqual(POOL.size)
})

deployed(
  'a warm sandbox that was made differently is drained with its volume; a claimed one stays',
  async ({ fixture, expect }) => {
    const before = await filled(fixture)
    const kept = await before.acquire('ann')
    await before.poolFilled()
    const old = (await fixture.ledger.list()).filter(({ state }) => state === 'warm').map(({ slot }) => slot)
    await before.close()
    const after = await filled(fixture, { limits: { ...DEFAULT_LIMITS, pids: 100 } })
    const now = await fixture.ledger.list()
    expect(now.filter(({ state }) => state === 'warm')).toHaveLength(POOL.size)
    for (const slot of old) expect(now.map((row) => row.slot)).not.toContain(slot)
    expect((await after.acquire('ann')).id).toBe(kept.id)
    const volumes = await fixture.backend.inventory.volumes.list()
    expect(new Set(volumes.map(({ labels }) => labels[LABEL.slot]))).toEqual(
      new Set(now.map(({ slot }) => slot)),
    )
    expect(volumes).toHaveLength(now.length)
  },
)

deployed('what can run no command is never warm, and it is said why', async ({ fixture, expect }) => {
  const image = `sandlot-test-broken:${fixture.deployment}`
  const lines = [`FROM ${testConfig.image}`, 'USER 0', 'RUN ln -sf /bin/false /usr/bin/bash']
  await writeFile(join(fixture.folder, 'Dockerfile'), lines.join('\n'))
  await docker('build', '-q', '--network=none', '-t', image, fixture.folder)
  try {
    const said: string[] = []
    const log: SandboxesOptions['log'] = (message, { error }) =>
      said.push(`${message}: ${error instanceof Error ? error.message : ''}`)
    await filled(fixture, { image, log })
    expect(said).toEqual([
      'a warm sandbox could not be made: A new sandbox could not run /bin/bash (exit code 1). Look at the sandbox image.',
    ])
    expect(await fixture.ledger.list()).toEqual([])
    expect(await fixture.containers()).toEqual([])
    expect(await fixture.volumes()).toEqual([])
  } finally {
    await docker('rmi', '-f', image)
  }
})
