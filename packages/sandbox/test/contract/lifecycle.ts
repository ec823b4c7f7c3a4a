import { expect } from 'vitest'

import { SandboxError } from '../../src/errors.ts'
import type { Suite } from '../support/contract.ts'
import { Bench, sh } from './harness.ts'

export function lifecycleTests({ apart, fixture }: Suite): void {
  apart('says what it can do', async () => {
    const capabilities = await fixture().backend.capabilities()
    expect(capabilities.isolates || capabilities.warnings.length > 0).toBe(true)
  })

  apart('creates once per name, and finds by id, name and label', async () => {
    const { backend } = fixture()
    const spec = fixture().spec()
    const made = await backend.create({ ...spec, labels: { ...spec.labels, 'sandlot.contract': spec.slot } })
    expect(made).toMatchObject({ name: spec.name, state: 'created' })
    expect((await backend.create(spec)).id).toBe(made.id)
    expect(await backend.inspect(made.id)).toMatchObject({ id: made.id, name: spec.name, state: 'created' })
    expect((await backend.inspect(spec.name))?.id).toBe(made.id)
    expect((await backend.list({ 'sandlot.contract': spec.slot })).map(({ id }) => id)).toEqual([made.id])
    expect(await backend.list({ 'sandlot.contract': 'none' })).toEqual([])
    // One digit more is the name of a later generation of the same slot.
    await backend.rename(made.id, `${spec.name}0`)
    expect((await backend.inspect(made.id))?.name).toBe(`${spec.name}0`)
    await backend.remove(made.id)
    await backend.remove(made.id)
    await backend.removeVolume(spec.volume)
    expect(await backend.inspect(made.id)).toBeUndefined()
  })

  apart(
    'renames as often as it is told, never to a name that is taken, and says when there is nothing',
    async () => {
      const { backend } = fixture()
      const [one, other] = [fixture().spec(), fixture().spec()]
      const { id } = await backend.create(one)
      await backend.create(other)
      await backend.rename(id, `${one.name}0`)
      await backend.rename(id, `${one.name}0`)
      await expect(backend.rename(id, other.name)).rejects.toBeInstanceOf(SandboxError)
      expect((await backend.inspect(id))?.name).toBe(`${one.name}0`)
      await backend.remove(id)
      await expect(backend.rename(id, one.name)).rejects.toMatchObject({ code: 'sandbox_lost' })
      await backend.remove((await backend.inspect(other.name))?.id ?? '')
      for (const { volume } of [one, other]) await backend.removeVolume(volume)
    },
  )

  apart('stops, starts again with the same files and another boot, and is idempotent', async () => {
    const { backend } = fixture()
    const { bench, sandbox } = await Bench.start(fixture())
    await sh(sandbox, 'echo kept > file')
    await backend.start(bench.container.id)
    await backend.stop(bench.container.id)
    await backend.stop(bench.container.id)
    expect(await backend.inspect(bench.container.id)).toMatchObject({ state: 'stopped' })
    const stream = await backend.openStream(bench.container.id)
    await backend.start(bench.container.id)
    const again = await bench.connect({ stream })
    expect(again.bootId).not.toBe(sandbox.bootId)
    expect((await sh(again, 'cat file')).out).toBe('kept\n')
    await again.close()
    await bench.remove()
  })

  apart('pauses, where it can, and answers again after a resume; both are idempotent', async () => {
    const { backend } = fixture()
    if (!(await backend.capabilities()).pause) return
    const { bench, sandbox } = await Bench.start(fixture())
    const { id } = bench.container
    await backend.pause(id)
    await backend.pause(id)
    expect(await backend.inspect(id)).toMatchObject({ state: 'paused' })
    let answered = false
    const answer = sandbox.commands().then(() => (answered = true))
    expect((await backend.list({})).find((one) => one.id === id)).toMatchObject({ state: 'paused' })
    expect(answered).toBe(false)
    await backend.resume(id)
    await backend.resume(id)
    expect(await answer).toBe(true)
    await backend.pause(id)
    await backend.stop(id)
    expect(await backend.inspect(id)).toMatchObject({ state: 'stopped' })
    await sandbox.close()
    await bench.remove()
  })

  apart('lists the volumes it made, with their slot, and not those it removed', async () => {
    const { backend } = fixture()
    const spec = fixture().spec()
    const made = await backend.create({ ...spec, labels: { ...spec.labels, 'sandlot.slot': spec.slot } })
    const own = (await backend.listVolumes()).find(({ name }) => name === spec.volume)
    expect(own?.labels['sandlot.slot']).toBe(spec.slot)
    await backend.remove(made.id)
    await backend.removeVolume(spec.volume)
    expect((await backend.listVolumes()).map(({ name }) => name)).not.toContain(spec.volume)
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

  apart('reports what does not exist', async () => {
    const { backend } = fixture()
    expect(await backend.inspect('no-such-sandbox')).toBeUndefined()
    await backend.remove('no-such-sandbox')
    await expect(backend.start('no-such-sandbox')).rejects.toMatchObject({ code: 'sandbox_lost' })
    await expect(backend.openStream('no-such-sandbox')).rejects.toMatchObject({ code: 'sandbox_lost' })
  })
}
