import { expect } from 'vitest'

import { SandboxError } from '../../src/errors.ts'
import type { SandboxSpec } from '../../src/backend.ts'
import type { Suite } from '../support/contract.ts'
import { claimedName } from '../../src/names.ts'
import { Bench, deploymentOf, sh } from './harness.ts'

const TAG = '0123456789abcdef'

/** The sandbox of nobody yet: its slot’s name is that of its volume. */
const unclaimed = (spec: SandboxSpec): SandboxSpec => ({ ...spec, name: spec.volume })

export function lifecycleTests({ apart, fixture }: Suite): void {
  apart('says what it can do', async () => {
    const capabilities = await fixture().backend.inventory.capabilities()
    expect(capabilities.isolates || capabilities.warnings.length > 0).toBe(true)
  })

  apart('creates once per name, and finds by id, name and label', async () => {
    const { backend } = fixture()
    const spec = unclaimed(fixture().spec())
    const made = await backend.create({ ...spec, labels: { ...spec.labels, 'sandlot.contract': spec.slot } })
    expect(made).toMatchObject({ name: spec.name, state: 'created' })
    expect((await backend.create(spec)).id).toBe(made.id)
    expect(await backend.inventory.inspect(made.id)).toMatchObject({
      id: made.id,
      name: spec.name,
      state: 'created',
    })
    expect((await backend.inventory.inspect(spec.name))?.id).toBe(made.id)
    expect((await backend.list({ 'sandlot.contract': spec.slot })).map(({ id }) => id)).toEqual([made.id])
    expect(await backend.list({ 'sandlot.contract': 'none' })).toEqual([])
    await backend.claim(made.id, { tag: TAG, generation: 10 })
    expect((await backend.inventory.inspect(made.id))?.name).toBe(
      claimedName(deploymentOf(spec), spec.slot, TAG, 10),
    )
    await backend.remove(made.id)
    await backend.remove(made.id)
    await backend.inventory.volumes.remove(spec.volume)
    expect(await backend.inventory.inspect(made.id)).toBeUndefined()
  })

  apart(
    'claims any number of times, never a name that is taken, and rejects when there is no sandbox',
    async () => {
      const { backend } = fixture()
      const one = unclaimed(fixture().spec())
      const { slot, volume, uid } = one
      const claimed = (n: number): string => claimedName(deploymentOf(one), slot, TAG, n)
      const { id } = await backend.create(one)
      const other = await backend.create(fixture().spec({ slot, volume, uid, name: claimed(11) }))
      await backend.claim(id, { tag: TAG, generation: 10 })
      await backend.claim(id, { tag: TAG, generation: 10 })
      await expect(backend.claim(id, { tag: TAG, generation: 11 })).rejects.toBeInstanceOf(SandboxError)
      expect((await backend.inventory.inspect(id))?.name).toBe(claimed(10))
      await backend.remove(id)
      await expect(backend.claim(id, { tag: TAG, generation: 12 })).rejects.toMatchObject({
        code: 'sandbox_lost',
      })
      await backend.remove(other.id)
      await backend.inventory.volumes.remove(volume)
    },
  )

  apart('stops, starts again with the same files and another boot, and is idempotent', async () => {
    const { backend } = fixture()
    const { bench, sandbox } = await Bench.start(fixture())
    await sh(sandbox, 'echo kept > file')
    const more = await bench.open()
    more.destroy()
    await backend.stop(bench.container.id)
    await backend.stop(bench.container.id)
    expect(await backend.inventory.inspect(bench.container.id)).toMatchObject({ state: 'stopped' })
    const again = await bench.connect()
    expect(again.bootId).not.toBe(sandbox.bootId)
    expect((await sh(again, 'cat file')).out).toBe('kept\n')
    await again.close()
    await bench.remove()
  })

  apart('pauses, where it can, and answers again after a resume; both are idempotent', async () => {
    const { backend } = fixture()
    if (!(await backend.inventory.capabilities()).pause) return
    const { bench, sandbox } = await Bench.start(fixture())
    const { id } = bench.container
    await backend.pause(id)
    await backend.pause(id)
    expect(await backend.inventory.inspect(id)).toMatchObject({ state: 'paused' })
    let answered = false
    const answer = sandbox.commands().then(() => (answered = true))
    expect((await backend.list({})).find((one) => one.id === id)).toMatchObject({ state: 'paused' })
    expect(answered).toBe(false)
    await backend.resume(id)
    await backend.resume(id)
    expect(await answer).toBe(true)
    await backend.pause(id)
    await backend.stop(id)
    expect(await backend.inventory.inspect(id)).toMatchObject({ state: 'stopped' })
    await sandbox.close()
    await bench.remove()
  })

  apart('lists the volumes it made, with their slot, and not those it removed', async () => {
    const { backend } = fixture()
    const spec = fixture().spec()
    const made = await backend.create({ ...spec, labels: { ...spec.labels, 'sandlot.slot': spec.slot } })
    const own = (await backend.inventory.volumes.list()).find(({ name }) => name === spec.volume)
    expect(own?.labels['sandlot.slot']).toBe(spec.slot)
    await backend.remove(made.id)
    await backend.inventory.volumes.remove(spec.volume)
    expect((await backend.inventory.volumes.list()).map(({ name }) => name)).not.toContain(spec.volume)
  })

  apart('keeps the volume when the sandbox is removed', async () => {
    const { backend } = fixture()
    const first = await Bench.start(fixture())
    await first.sandbox.files.write('kept', Buffer.from('x'))
    await backend.remove(first.bench.container.id)
    const { name, slot, volume, uid } = first.bench.spec
    const second = await Bench.start(fixture(), { name: `${name}0`, slot, volume, uid })
    expect(Buffer.from(await second.sandbox.files.read('kept')).toString()).toBe('x')
    await second.sandbox.close()
    await second.bench.remove()
  })

  apart('makes no workspace in place of one that is missing, and finds one that is there', async () => {
    const { backend } = fixture()
    const { volumes } = backend.inventory
    const spec = fixture().spec({ hasWorkspace: true })
    await expect(backend.create(spec)).rejects.toMatchObject({
      code: 'workspace_missing',
      message: expect.stringContaining(spec.volume) as string,
    })
    expect(await backend.inventory.inspect(spec.name)).toBeUndefined()
    expect(await volumes.has(spec.volume)).toBe(false)
    await volumes.ensure(spec).catch(() => undefined)
    const { hasWorkspace: _, ...first } = spec
    await volumes.ensure(first)
    await volumes.ensure(first)
    expect(await volumes.has(spec.volume)).toBe(true)
    const made = await backend.create(spec)
    await backend.remove(made.id)
    await volumes.remove(spec.volume)
    expect(await volumes.has(spec.volume)).toBe(false)
  })

  apart('reports what does not exist', async () => {
    const { backend } = fixture()
    expect(await backend.inventory.inspect('no-such-sandbox')).toBeUndefined()
    await backend.remove('no-such-sandbox')
    for (const state of ['stopped', 'running'] as const)
      await expect(backend.open({ id: 'no-such-sandbox', state })).rejects.toMatchObject({
        code: 'sandbox_lost',
      })
  })
}
