import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { extent } from '../../../../test/campaign.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { claimedName, ownerTag, poolName } from '../../src/names.ts'
import { listWorkspaces, ownerlessVolumes, pruneVolumes, purgeAll } from '../../src/controller/workspaces.ts'
import { testConfig } from '../support/config.ts'
import { deployed, docker, shell } from '../support/docker-fixture.ts'

deployed(
  'what has no owner is removed after a grace time, volumes and what is claimed or foreign never',
  async ({ fixture, expect }) => {
    const { backend, ledger, deployment, deploymentKey } = fixture
    const image = { image: testConfig.image, limits: DEFAULT_LIMITS }
    const warnings: unknown[] = []
    const log = (...warning: unknown[]): number => warnings.push(warning)
    const operator = { backend, ledger, deploymentId: deployment, deploymentKey, ...image, log }
    const stray = fixture.spec()
    const strayContainer = await backend.create({ ...stray, name: poolName(deployment, stray.slot) })
    const owned = fixture.spec()
    const ownedName = claimedName(deployment, owned.slot, ownerTag(deploymentKey, 'ann'), 3)
    const ownedContainer = await backend.create({ ...owned, name: ownedName })
    // Named like one of ours, without a label.
    const foreign = await docker('create', '--name', poolName(deployment, 'zzzzzzzz'), testConfig.image)
    try {
      const patient = fixture.controller({ graceMs: 3_600_000, lookEveryMs: 50 })
      await patient.maintain()
      await patient.close()
      expect((await backend.list({})).map(({ id }) => id).toSorted()).toEqual(
        [strayContainer.id, ownedContainer.id].toSorted(),
      )
      const hasty = fixture.controller({ graceMs: 0 })
      await hasty.maintain()
      expect((await backend.list({})).map(({ id }) => id)).toEqual([ownedContainer.id])
      expect(await docker('inspect', '-f', '{{.State.Status}}', foreign)).toBe('created')

      expect((await ownerlessVolumes({ backend, ledger })).map(({ name }) => name)).toEqual([stray.volume])
      expect(await listWorkspaces({ backend, ledger })).toContainEqual(
        expect.objectContaining({ volume: owned.volume, owner: 'claimed' }),
      )
      // Its owner comes, and gets their slot and their files.
      await shell(await hasty.acquire('ann'), 'echo kept > file')
      expect((await ledger.find('ann'))?.slot).toBe(owned.slot)
      expect(await pruneVolumes([stray.volume, owned.volume], operator)).toEqual([stray.volume])
      expect((await shell(await hasty.acquire('ann'), 'cat file')).output).toBe('kept\n')
      // So many that they are opened and moved in several batches.
      const closed = 'seq -f closed-%020g 10000 | xargs mkdir -m 0 && ls | wc -l'
      expect((await shell(await hasty.acquire('ann'), closed)).output).toBe('10001\n')
      await hasty.close()
      expect(await purgeAll(operator)).toEqual({ containers: 1, volumes: 1 })
      expect(warnings).toEqual([])
      expect(await backend.inventory.volumes.list()).toEqual([])
      expect(await ledger.list()).toEqual([])
    } finally {
      await docker('rm', '-f', foreign)
    }
  },
)

deployed(
  'an extended image: a running sandbox keeps its own, and moves with its files at the next start',
  async ({ fixture, expect }) => {
    const image = `sandlot-test-extended:${fixture.deployment}`
    const build = async (version: number): Promise<void> => {
      const lines = [`FROM ${testConfig.image}`, 'USER 0', `RUN echo ${version} > /etc/extended`]
      await writeFile(join(fixture.folder, 'Dockerfile'), lines.join('\n'))
      await docker('build', '-q', '--network=none', '-t', image, fixture.folder)
    }
    try {
      await build(1)
      const sandboxes = fixture.controller({ image })
      const first = await sandboxes.acquire('ann')
      expect((await shell(first, 'cat /etc/extended; echo kept > file')).output).toBe('1\n')
      await build(2)
      expect((await shell(await sandboxes.acquire('ann'), 'cat /etc/extended')).output).toBe('1\n')
      await sandboxes.stop('ann')
      const moved = await sandboxes.acquire('ann')
      expect((await shell(moved, 'cat /etc/extended file')).output).toBe('2\nkept\n')
      expect(await fixture.containers()).toEqual([moved.id])
    } finally {
      const ids = await fixture.containers()
      if (ids.length > 0) await docker('rm', '-f', ...ids)
      await docker('rmi', '-f', image)
    }
  },
)

deployed(
  'every sandbox is attached to again soon after a controller was killed, and what ran runs on',
  async ({ fixture, expect }) => {
    const count = extent(10, 200)
    const users = Array.from({ length: count }, (_, n) => `user-${n}`)
    const before = fixture.controller()
    const id = 'e'.repeat(32)
    await Promise.all(
      users.map(async (user) => {
        const sandbox = await before.acquire(user)
        await sandbox.run({ id, command: 'while ! [ -e go ]; do sleep 0.2; done; echo done' })
      }),
    )
    await before.close()
    const after = fixture.controller()
    const from = performance.now()
    await after.maintain()
    const took = performance.now() - from
    console.log(`${count} sandboxes attached to again in ${took.toFixed(0)} ms`)
    expect(
      (await Promise.all(users.map((user) => after.status(user)))).every(({ connected }) => connected),
    ).toBe(true)
    for (const user of users.slice(0, 10)) {
      const sandbox = await after.acquire(user)
      await sandbox.files.write('go', Buffer.from(''))
      const command = await sandbox.attach(id)
      let output = ''
      for await (const { data } of command?.output ?? []) output += Buffer.from(data).toString()
      expect(output).toBe('done\n')
    }
    expect(took).toBeLessThan(20_000)
  },
  extent(300_000, 1_800_000),
)
