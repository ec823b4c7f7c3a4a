import { Readable } from 'node:stream'

import { expect } from 'vitest'

import { slotLabels } from '../../src/names.ts'
import type { Suite } from '../support/contract.ts'
import { Bench, deploymentOf, sh } from './harness.ts'

const MAKE = String.raw`umask 027; mkdir -p 'a b/ü
c' empty; printf x > 'a b/ü
c/-file'; ln 'a b/ü
c/-file' hard; ln -s 'a b/nowhere' link; mkfifo pipe
head -c 3000000 /dev/urandom > large; truncate -s 5000000 sparse; chmod 4750 empty; chmod 400 large
touch -d 2020-01-02 hard; mkdir closed; printf y > closed/in; chmod 500 closed
printf z > "$(printf 'n%.0s' $(seq 250))"`
const LOOK = String.raw`find . ! -name growing ! -path . -printf '%p %y %m %s %T@ %n %l\n' | LC_ALL=C sort
find . -type f ! -name growing -exec sha256sum {} + | LC_ALL=C sort`

export function copyTests({ apart, fixture }: Suite): void {
  apart('copies a workspace in use, and fills a new one with the same', async () => {
    const { volumes, copies } = fixture().backend.inventory
    const { bench, sandbox } = await Bench.start(fixture())
    expect(await sh(sandbox, MAKE)).toMatchObject({ err: '', code: 0 })
    const before = await sh(sandbox, LOOK)
    const growing = sh(sandbox, 'while sleep 0.01; do echo more >> growing; done')
    growing.catch(() => {})
    const tar: Buffer[] = []
    for await (const bytes of copies.read(bench.spec.volume)) tar.push(bytes)

    const spec = fixture().spec({ uid: bench.spec.uid })
    const labels = slotLabels(deploymentOf(spec), spec)
    const volume = { name: spec.volume, labels }
    expect(await copies.exists(spec.volume)).toBe(false)
    await copies.write(volume, Readable.from(tar))
    expect(await copies.exists(spec.volume)).toBe(true)
    expect((await volumes.list()).find(({ name }) => name === spec.volume)?.labels).toMatchObject(labels)
    await expect(copies.write(volume, Readable.from(tar))).rejects.toMatchObject({ code: 'exists' })
    const restored = await Bench.start(fixture(), { ...spec, hasWorkspace: true })
    expect((await sh(restored.sandbox, LOOK)).out).toBe(before.out)
    expect(await sh(restored.sandbox, 'printf w > closed/../new && rm new')).toMatchObject({ code: 0 })
    await bench.remove()
    await restored.bench.remove()
  })

  apart('takes back a workspace that cannot be filled, and reads none that is missing', async () => {
    const { copies } = fixture().backend.inventory
    const { volume: name, slot, uid } = fixture().spec()
    const labels = slotLabels(deploymentOf({ volume: name, slot }), { slot, uid, volume: name })
    const noTar = Readable.from([Buffer.alloc(20_000, 'x')])
    await expect(copies.write({ name, labels }, noTar)).rejects.toMatchObject({
      code: 'engine_unavailable',
      message: expect.stringContaining('tar') as string,
    })
    expect(await copies.exists(name)).toBe(false)
    await expect(copies.read(name)[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: 'sandbox_lost',
    })
  })
}
