import { describe } from 'vitest'

import { slotLabels } from '../../src/names.ts'
import { deployed, docker, shell } from '../support/docker-fixture.ts'

describe('a volume that an operator removed', () => {
  deployed(
    'is missing until it is restored, and the engine makes no empty one',
    async ({ fixture, expect }) => {
      const sandboxes = fixture.controller()
      const { id } = await sandboxes.acquire('ann')
      await shell(await sandboxes.acquire('ann'), 'echo mine > file')
      await sandboxes.stop('ann')
      const slot = (await fixture.ledger.find('ann')) ?? expect.fail()
      await docker('rm', id)
      await docker('volume', 'rm', slot.volume)

      for (const controller of [sandboxes, fixture.controller()])
        await expect(controller.acquire('ann')).rejects.toMatchObject({
          code: 'workspace_missing',
          message: expect.stringContaining(slot.volume) as string,
        })
      expect(await fixture.volumes()).toEqual([])
      expect(await fixture.containers()).toEqual([])
      // Others are not touched by it.
      await shell(await sandboxes.acquire('bob'), 'touch file')

      const labels = Object.entries(slotLabels(fixture.deployment, slot))
      await docker('volume', 'create', ...labels.flatMap(([k, v]) => ['--label', `${k}=${v}`]), slot.volume)
      expect((await shell(await sandboxes.acquire('ann'), 'pwd')).output).toBe('/workspace\n')
      expect((await fixture.ledger.find('ann'))?.volume).toBe(slot.volume)
    },
  )
})
