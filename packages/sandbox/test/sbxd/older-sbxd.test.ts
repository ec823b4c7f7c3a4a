/** A sandbox that was started by an earlier version runs its sbxd, until it is stopped. */
import { randomBytes } from 'node:crypto'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { encodeFrame, FrameType } from '../../src/sbxd/protocol/frames.ts'
import { type BackendFixture, Bench, finish, newId, sh } from '../contract/harness.ts'
import { buildOlderSbxd, whyNoOlderSbxd } from '../support/build-sbxd.ts'
import { localProcessFixture } from '../support/local-process-fixture.ts'

const missing = whyNoOlderSbxd()
if (missing !== undefined) process.stderr.write(`an older sbxd: left out, ${missing}\n`)

describe.skipIf(missing !== undefined)('an older sbxd', () => {
  let fixture: BackendFixture
  beforeAll(async () => {
    fixture = await localProcessFixture(buildOlderSbxd)
  }, 60_000)
  afterAll(() => fixture.dispose())

  test('runs commands, keeps their ends, and forgets what was acknowledged', async () => {
    const { bench, sandbox } = await Bench.start(fixture)
    await sandbox.files.write('file', Buffer.from('there\n'))
    const request = { id: newId(), command: 'cat file; exit 4' }
    await finish(await sandbox.run(request))
    await sandbox.close()
    const again = await bench.connect()
    const found = await again.attach(request.id, {}, { acknowledged: true })
    expect(found && (await finish(found))).toMatchObject({ code: 4, out: 'there\n' })
    found?.acknowledge({ stdout: 6 })
    expect(await again.attach(request.id, {}, { acknowledged: true })).toBeUndefined()
  })

  test('says of a stop only that it was one', async () => {
    const { sandbox } = await Bench.start(fixture)
    const command = await sandbox.run({ id: newId(), command: 'sleep 100', autoAcknowledge: true })
    await command.cancel(1_000)
    const exit = await command.exit
    expect(exit.cause).toBe('cancel')
    expect(exit).not.toHaveProperty('stopped')
  })

  test('does not count frames, so that late bytes of another controller cost the stream, and nothing more', async () => {
    const { bench, sandbox } = await Bench.start(fixture)
    const command = await sandbox.run({ id: newId(), command: 'read -r x; echo "got $x"', stdin: true })
    const late = await bench.open()
    late.on('error', () => {}).resume()
    late.write(encodeFrame(FrameType.DATA, 0, 1, randomBytes(20), { header: 11, payload: 13 }))
    expect(await sandbox.closed).toMatchObject({ code: 'sandbox_lost' })
    const again = await bench.connect()
    const attached = await again.attach(command.id)
    await attached?.writeStdin(Buffer.from('it\n'))
    expect(attached && (await finish(attached))).toMatchObject({ out: 'got it\n' })
    expect(await sh(again, 'echo ok')).toMatchObject({ out: 'ok\n' })
  })
})
