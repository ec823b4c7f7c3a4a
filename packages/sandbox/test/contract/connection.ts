import { randomBytes } from 'node:crypto'

import { expect } from 'vitest'

import type { Suite } from '../support/contract.ts'
import { encodeFrame, FrameType } from '../../src/sbxd/protocol/frames.ts'
import { finish, newId, sh } from './harness.ts'

/** Connections over the streams that the backend opens. */
export function connectionTests({ alone, fixture }: Suite): void {
  alone('is not disturbed by bytes of an earlier controller that come late', async ({ sandbox, bench }) => {
    await sandbox.close()
    bench.epoch = 9
    const newer = await bench.connect()
    let isClosed = false
    void newer.closed.then(() => (isClosed = true))
    const late = await bench.open()
    late.on('error', () => {}).resume()
    const frame = (bytes: number): Buffer =>
      encodeFrame(FrameType.DATA, 0, 1, randomBytes(bytes), { header: 11, payload: 13 })
    // Frames of its own are so short that none of these gets inside of one on the way.
    for (const bytes of [frame(20), frame(30_000), frame(60_000).subarray(0, 30_000), randomBytes(3_000)]) {
      await new Promise((resolve) => late.write(bytes, resolve))
      expect(await sh(newer, 'echo ok')).toMatchObject({ out: 'ok\n' })
    }
    expect(isClosed).toBe(false)
    late.destroy()
  })

  alone(
    'continues a running command on a new connection, no byte lost or doubled',
    async ({ sandbox, bench }) => {
      const id = newId()
      const command = await sandbox.run({
        id,
        command: 'for ((i = 0; i < 40; i++)); do echo "line $i"; sleep 0.02; done',
        merge: true,
      })
      let all = Buffer.alloc(0)
      for await (const chunk of command.output) {
        all = Buffer.concat([all, chunk.data])
        if (all.length > 50) break
      }
      await sandbox.close()
      await expect(command.exit).rejects.toMatchObject({ code: 'cancelled' })
      const again = await bench.connect()
      expect(again.bootId).toBe(sandbox.bootId)
      expect(again.found).toMatchObject([{ id, state: 'running' }])
      const resumed = await again.attach(id, { stdout: all.length })
      for await (const chunk of resumed?.output ?? []) {
        expect(chunk.offset).toBe(all.length)
        all = Buffer.concat([all, chunk.data])
      }
      expect(all.toString()).toBe(Array.from({ length: 40 }, (_, i) => `line ${i}\n`).join(''))
      expect(await resumed?.exit).toMatchObject({ cause: 'exited', code: 0, bytes: { stdout: all.length } })
    },
  )

  alone(
    'refuses a wrong key and an old epoch, and leaves the controller undisturbed',
    async ({ sandbox, bench }) => {
      bench.epoch = 5
      await sandbox.close()
      const current = await bench.connect()
      const command = await current.run({
        id: newId(),
        command: 'read -r x; echo "$x"',
        stdin: true,
        autoAcknowledge: true,
      })
      await expect(bench.connect({ key: randomBytes(32) })).rejects.toMatchObject({ code: 'protocol' })
      await expect(bench.connect({ epoch: 4 })).rejects.toMatchObject({ code: 'fenced' })
      await command.writeStdin(Buffer.from('still here\n'))
      expect(await finish(command)).toMatchObject({ out: 'still here\n' })
    },
  )

  alone('gives way to a newer controller', async ({ sandbox, bench }) => {
    const command = await sandbox.run({ id: newId(), command: 'sleep 300' })
    const newer = await bench.connect({ epoch: 9 })
    expect(await sandbox.closed).toMatchObject({ code: 'fenced' })
    await expect(command.exit).rejects.toMatchObject({ code: 'fenced' })
    await expect(sandbox.run({ id: newId(), command: 'true' })).rejects.toMatchObject({ code: 'fenced' })
    const taken = await newer.attach(command.id)
    await taken?.cancel(0)
    expect(await taken?.exit).toMatchObject({ cause: 'cancel' })
  })

  alone(
    'ends what is pending when the connection is closed, and nothing inside',
    async ({ sandbox, bench }) => {
      const command = await sandbox.run({ id: newId(), command: 'sleep 300' })
      const output = finish(command)
      const read = sandbox.files.read('x')
      await sandbox.close()
      await expect(output).rejects.toMatchObject({ code: 'cancelled' })
      await expect(read).rejects.toMatchObject({ code: 'cancelled' })
      await expect(command.writeStdin(Buffer.from('x'))).rejects.toMatchObject({ code: 'cancelled' })
      expect(await sandbox.closed).toBeUndefined()
      const again = await bench.connect()
      expect(await again.commands()).toMatchObject([{ id: command.id, state: 'running' }])
    },
  )

  alone('says that the sandbox is lost when it goes away', async ({ sandbox, bench }) => {
    const command = await sandbox.run({ id: newId(), command: 'sleep 300' })
    const output = finish(command)
    output.catch(() => {})
    await fixture().backend.stop(bench.container.id)
    expect(await sandbox.closed).toMatchObject({ code: 'sandbox_lost' })
    await expect(output).rejects.toMatchObject({ code: 'sandbox_lost' })
    await expect(sandbox.files.stat('')).rejects.toMatchObject({ code: 'sandbox_lost' })
  })

  alone('never fills memory for a controller that does not read', async ({ sandbox, bench }) => {
    await sandbox.run({ id: newId(), command: 'yes' })
    await sandbox.run({ id: newId(), command: 'yes >&2' })
    await sandbox.close()
    const again = await bench.connect()
    const before = await again.commands()
    expect(before).toHaveLength(2)
    for (const { id } of before) await (await again.attach(id))?.cancel(0)
  })
}
