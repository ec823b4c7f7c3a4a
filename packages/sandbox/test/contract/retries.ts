import { randomBytes } from 'node:crypto'
import { Duplex } from 'node:stream'

import fc from 'fast-check'
import { expect } from 'vitest'

import { sample } from '../../../../test/campaign.ts'
import type { Suite } from '../support/contract.ts'
import type { ConnectedSandbox } from '../../src/sbxd/client.ts'
import { SandboxError } from '../../src/errors.ts'
import {
  encodeFrame,
  FrameType,
  HEADER_BYTES,
  HELLO_CRC,
  MAX_PAYLOAD,
  RESYNC_BYTES,
} from '../../src/sbxd/protocol/frames.ts'
import { type Bench, finish, newId, sh } from './harness.ts'

/** Repeated requests, and connections that are cut on this side of any stream. */
export function retryTests({ alone, slow }: Suite): void {
  const patience = slow
    ? { heartbeatMs: 2_000, handshakeMs: 10_000 }
    : { heartbeatMs: 200, handshakeMs: 1_000 }
  const persist = <T>(bench: Bench, work: (sandbox: ConnectedSandbox) => Promise<T>): Promise<T> =>
    persistFor(patience, bench, work)

  alone('runs a command once, whatever is retried', async ({ sandbox, bench }) => {
    const request = { id: newId(), command: 'echo line >> once; echo out' }
    const first = await finish(await sandbox.run(request))
    await sandbox.close()
    const again = await bench.connect()
    const second = await finish(await again.run(request))
    expect(second).toMatchObject({ ...first, out: 'out\n' })
    expect((await sh(again, 'cat once')).out).toBe('line\n')
  })

  alone(
    'runs a command once, also where its acknowledged end was lost by the controller',
    async ({ sandbox, bench }) => {
      const request = { id: newId(), command: 'echo line >> once; echo out; echo er >&2; exit 3' }
      const { out, err, ...ended } = await finish(await sandbox.run({ ...request, autoAcknowledge: true }))
      expect([out, err]).toEqual(['out\n', 'er\n'])
      await expect.poll(() => sandbox.commands()).toEqual([])
      await sandbox.close()
      const again = await bench.connect()
      const nothingMore = { ...ended, out: '', err: '' }
      expect(await finish(await again.run(request))).toEqual(nothingMore)
      const asked = await again.attach(request.id, { stdout: 2 }, { acknowledged: true })
      expect(asked && (await finish(asked))).toEqual(nothingMore)
      expect(await again.attach(request.id)).toBeUndefined()
      expect((await sh(again, 'cat once')).out).toBe('line\n')
    },
  )

  alone('does not take one command for another of the same id', async ({ sandbox }) => {
    const [running, ended] = [newId(), newId()]
    const command = await sandbox.run({ id: running, command: 'sleep 300' })
    await expect(sandbox.run({ id: running, command: 'true' })).rejects.toMatchObject({
      code: 'start_failed',
    })
    await command.cancel(0)
    expect(await sh(sandbox, 'exit 3', { id: ended })).toMatchObject({ code: 3 })
    expect(await sh(sandbox, 'echo other', { id: ended })).toMatchObject({ code: 0, out: 'other\n' })
    const asked = await sandbox.attach(ended, {}, { acknowledged: true })
    expect(await asked?.exit).toMatchObject({ code: 0 })
  })

  alone(
    'loses its stream, and no command, to bytes of an earlier controller inside of a frame',
    async ({ sandbox, bench }) => {
      await sandbox.close()
      const request = { id: newId(), command: 'echo line >> once; echo out' }
      const stream = await bench.open()
      const broken = await bench.connect({ stream: breakAt(stream, request.command) })
      await expect(broken.run(request)).rejects.toMatchObject({ code: 'sandbox_lost' })
      expect(await broken.closed).toMatchObject({ code: 'sandbox_lost' })
      const again = await bench.connect()
      expect(await again.attach(request.id)).toBeUndefined()
      expect(await finish(await again.run(request))).toMatchObject({ out: 'out\n' })
      expect((await sh(again, 'cat once')).out).toBe('line\n')
    },
  )

  alone('keeps the end of a command until it is acknowledged', async ({ sandbox, bench }) => {
    const id = newId()
    const command = await sandbox.run({ id, command: 'echo kept; exit 4' })
    await command.exit
    await sandbox.close()
    const second = await bench.connect()
    expect(await second.commands()).toMatchObject([{ id, state: 'ended' }])
    const attached = await second.attach(id)
    const result = attached && (await finish(attached))
    expect(result).toMatchObject({ code: 4, out: 'kept\n' })
    attached?.acknowledge({ stdout: 5 })
    expect(await second.commands()).toEqual([])
    expect(await second.attach(id)).toBeUndefined()
  })

  alone('refuses an attach beyond what was printed', async ({ sandbox }) => {
    const id = newId()
    await (
      await sandbox.run({ id, command: 'echo x' })
    ).exit
    await expect(sandbox.attach(id, { stdout: 100 })).rejects.toMatchObject({ code: 'invalid_arguments' })
  })

  alone('moves a command to whoever attaches last', async ({ sandbox }) => {
    const first = await sandbox.run({ id: newId(), command: 'read -r x; echo "got $x"', stdin: true })
    const second = await sandbox.attach(first.id)
    await expect(first.exit).rejects.toMatchObject({ code: 'fenced' })
    await second?.writeStdin(Buffer.from('this\n'))
    expect(second && (await finish(second))).toMatchObject({ out: 'got this\n' })
  })

  alone('continues stdin where the last connection left it', async ({ sandbox, bench }) => {
    const command = await sandbox.run({
      id: newId(),
      command: 'while read -r line; do echo "got $line"; done',
      stdin: true,
    })
    await command.writeStdin(Buffer.from('one\ntw'))
    for await (const _ of command.output) break
    await sandbox.close()
    const again = await bench.connect()
    const resumed = await again.attach(command.id)
    await resumed?.writeStdin(Buffer.from('o\n'))
    await resumed?.closeStdin()
    expect(resumed && (await finish(resumed)).out).toBe('got one\ngot two\n')
  })

  alone(
    'finds its way after a connection was cut in the middle of a frame, wherever',
    async ({ sandbox, bench }) => {
      await sandbox.close()
      const hello = encodeFrame(FrameType.HELLO, 0, 0, randomBytes(58), HELLO_CRC)
      const big = encodeFrame(FrameType.START, 0, 1, randomBytes(60_000), { header: 1, payload: 1 })
      const junk = Buffer.from('{"stream":true,"stdin":true,"stdout":true}'.repeat(100))
      const cuts = [1, 2, 15, 16, 17, 40, hello.length - 1].map((n) => hello.subarray(0, n))
      for (const bytes of [
        ...cuts,
        big.subarray(0, 20),
        big.subarray(0, 59_999),
        junk,
        randomBytes(65_536),
      ]) {
        const stream = await bench.open()
        await new Promise((resolve) => stream.write(bytes, resolve))
        stream.destroy()
        expect(await persist(bench, (again) => sh(again, 'echo ok'))).toMatchObject({ out: 'ok\n' })
      }
    },
  )

  alone(
    'P08 runs once and loses nothing when cut at any byte of a session, in either direction',
    async ({ sandbox, bench }) => {
      await sandbox.close()
      let lines = 0
      await fc.assert(
        fc.asyncProperty(fc.nat(900), fc.nat(900), async (written, read) => {
          const request = { id: newId(), command: 'echo line >> cuts; seq 1 50; echo end >&2' }
          const stream = cutAfter(await bench.open(), HANDSHAKE_BYTES + written, read)
          await bench
            .connect({ stream, heartbeatMs: 200 })
            .then((cut) => cut.run(request).then(finish))
            .catch((error: unknown) => expect(error).toBeInstanceOf(SandboxError))
          const result = await persist(bench, async (again) =>
            finish(await again.run({ ...request, autoAcknowledge: true })),
          )
          const seq = Array.from({ length: 50 }, (_, i) => `${i + 1}\n`).join('')
          expect(result).toMatchObject({ cause: 'exited', code: 0, out: seq, err: 'end\n' })
          lines += 1
        }),
        { numRuns: 25, endOnFailure: true },
      )
      const kept = await persist(bench, (again) => sh(again, 'wc -l < cuts'))
      expect(Number(kept.out)).toBe(lines)
    },
  )

  alone(
    'resumes input and output wherever a session was cut, no byte lost or doubled',
    async ({ sandbox, bench }) => {
      await sandbox.close()
      // Both directions of the longest session that the echo of these bytes makes.
      const step = slow ? 13 : 1
      const places = Array.from({ length: 2_600 / step }, (_, place) => place * step)
      const cuts = [
        ...places.map((written) => ({ written, read: Number.MAX_SAFE_INTEGER })),
        ...places.map((read) => ({ written: Number.MAX_SAFE_INTEGER, read })),
      ]
      for (const { written, read } of sample('resumed sessions', cuts, 16)) {
        const echo = echoSession(randomBytes(2_000))
        const inner = await bench.open()
        const stream = cutAfter(inner, written + HANDSHAKE_BYTES, read)
        await bench
          .connect({ stream, heartbeatMs: 200 })
          .then((first) => echo.go(first))
          .catch((error: unknown) => expect(error).toBeInstanceOf(SandboxError))
        await persist(bench, (again) => echo.go(again))
        expect(echo.wrong(), `cut after ${written} bytes written, ${read} read`).toBeUndefined()
      }
    },
  )

  alone('forgets half a request of a controller that is gone', async ({ sandbox, bench }) => {
    const long = { id: newId(), command: `: ${'x'.repeat(100_000)}` }
    const inner = await bench.open()
    // All of the first piece, nothing of the second.
    const stream = cutAfter(inner, HANDSHAKE_BYTES + HEADER_BYTES + MAX_PAYLOAD + 4, Number.MAX_SAFE_INTEGER)
    const cut = await bench.connect({ stream })
    await expect(cut.run(long)).rejects.toMatchObject({ code: 'sandbox_lost' })
    await sandbox.close()
    const fresh = await persist(bench, (again) => sh(again, 'echo fresh'))
    expect(fresh).toMatchObject({ out: 'fresh\n' })
  })

  alone('answers every reset, and none to a controller that did not ask', async ({ sandbox, bench }) => {
    await Promise.all([sandbox.reset(), sandbox.reset()])
    await sandbox.run({ id: newId(), command: 'for i in {1..100}; do sleep 300 & done; wait' })
    for (let i = 0; i < 20; i += 1) await sandbox.commands()
    const unanswered = sandbox.reset()
    unanswered.catch(() => {})
    await sandbox.commands()
    await sandbox.close()
    const again = await bench.connect()
    const broken = again.closed.then((why) => why?.message)
    // A second reset ends after the first, wherever that one's answer went.
    await again.reset()
    await again.commands()
    await again.close()
    expect(await broken).toBeUndefined()
  })

  alone('can be told to stop connecting', async ({ bench }) => {
    await expect(bench.connect({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'cancelled' })
  })
}

/** `cat` of these bytes, over as many connections as it takes. */
function echoSession(sent: Buffer): {
  go: (sandbox: ConnectedSandbox) => Promise<void>
  wrong: () => string | undefined
} {
  const id = newId()
  let got = Buffer.alloc(0)
  let over = false
  return {
    async go(sandbox) {
      if (over) return
      const command =
        (await sandbox.attach(id, { stdout: got.length })) ??
        (await sandbox.run({ id, command: ['cat'], stdin: true }))
      const write = async (): Promise<void> => {
        for (let at = command.stdinOffset; at < sent.length; at += 300)
          await command.writeStdin(sent.subarray(at, at + 300))
        await command.closeStdin()
      }
      const writing = write().catch((error: unknown) => error)
      for await (const { offset, data } of command.output) {
        if (offset !== got.length) throw new Error(`${got.length} bytes came, then those at ${offset}`)
        got = Buffer.concat([got, data])
        command.acknowledge({ stdout: got.length })
      }
      expect(await command.exit).toMatchObject({ cause: 'exited', code: 0, bytes: { stdout: sent.length } })
      command.acknowledge({ stdout: got.length })
      over = true
      await writing
    },
    wrong: () => (over && got.equals(sent) ? undefined : `${got.length} of ${sent.length} bytes came`),
  }
}

/** Filler and one HELLO without the key. */
const HANDSHAKE_BYTES = RESYNC_BYTES + 78

/** Passes bytes on until so many were written or read, then breaks. */
function cutAfter(stream: Duplex, written: number, read: number): Duplex {
  let [toWrite, toRead] = [written, read + 1]
  const outer = new Duplex({
    read: () => {},
    write(chunk: Buffer, _encoding, done) {
      const piece = chunk.subarray(0, toWrite)
      toWrite -= piece.length
      stream.write(piece, () => {
        if (toWrite === 0) outer.destroy()
        done()
      })
    },
    destroy(error, done) {
      stream.destroy()
      done(error)
    },
  })
  stream.on('error', () => {})
  stream.on('data', (chunk: Buffer) => {
    const piece = chunk.subarray(0, toRead)
    toRead -= piece.length
    if (!outer.destroyed) outer.push(piece)
    if (toRead === 0) outer.destroy()
  })
  return outer
}

/** Passes bytes on, and puts some of another controller before this text. */
function breakAt(stream: Duplex, text: string): Duplex {
  const outer = new Duplex({
    read: () => {},
    write(chunk: Buffer, _encoding, done) {
      const at = chunk.indexOf(text)
      const parts = [chunk.subarray(0, at), Buffer.from('another'), chunk.subarray(at)]
      stream.write(at === -1 ? chunk : Buffer.concat(parts), () => done())
    },
    destroy(error, done) {
      stream.destroy()
      done(error)
    },
  })
  stream.on('error', () => {})
  stream.on('data', (chunk: Buffer) => outer.push(chunk))
  return outer
}

/**
 * Connect and do this, again and again until no connection breaks: what a controller does, each
 * time with a new epoch. Bytes of an earlier connection may arrive late, through another stream of
 * the engine, and break a new one; a late HELLO among them is refused for its old epoch.
 */
async function persistFor<T>(
  patience: { heartbeatMs: number; handshakeMs: number },
  bench: Bench,
  work: (sandbox: ConnectedSandbox) => Promise<T>,
): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      bench.epoch += 1
      const sandbox = await bench.connect(patience)
      try {
        return await work(sandbox)
      } finally {
        await sandbox.close()
      }
    } catch (error) {
      const broken =
        error instanceof SandboxError &&
        (error.unreachable || ['protocol', 'sandbox_lost', 'timeout'].includes(error.code))
      if (!broken || attempt === 9) throw error
    }
  }
}
