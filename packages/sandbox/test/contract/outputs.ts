import { createHash } from 'node:crypto'

import { expect } from 'vitest'

import type { Suite } from '../support/contract.ts'
import { type RunRequest } from '../../src/sandbox.ts'
import { Bench, finish, newId, sh } from './harness.ts'

const sha = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Output of `seq 1 n`. */
const seq = (n: number): string => Array.from({ length: n }, (_, i) => `${i + 1}\n`).join('')

export function outputTests({ it, sandbox, fixture }: Suite): void {
  it('names the hash of everything that each stream printed', async () => {
    const result = await sh(sandbox(), 'seq 1 20000; printf "€" >&2')
    expect(result.sha256).toEqual({ stdout: sha(seq(20_000)), stderr: sha('€') })
    expect((await sh(sandbox(), 'true')).sha256).toEqual({ stdout: sha(''), stderr: sha('') })
  })

  it('names the hash of floods, on both streams of several commands at once', async () => {
    const box = sandbox()
    const text = (word: string, bytes: number): string =>
      `${word}\n`.repeat(Math.ceil(bytes / (word.length + 1))).slice(0, bytes)
    const print = (word: string, bytes: number): string => `yes ${word} | head -c ${bytes}`
    const one = async (n: number): Promise<void> => {
      const [out, errors] = [9_000_001 + n, 7_000_003 + n]
      const result = await sh(box, `${print(`a${n}`, out)} & ${print(`bb${n}`, errors)} >&2 & wait`)
      expect(result.sha256).toEqual({ stdout: sha(text(`a${n}`, out)), stderr: sha(text(`bb${n}`, errors)) })
    }
    await Promise.all([1, 2, 3].map(one))
    // The tail is not kept with the head: whatever comes first is hashed first.
    const cut = await sh(box, print('c', 5_000_001), { policy: { kind: 'cut', head: 50_000, tail: 7_000 } })
    expect(cut.sha256.stdout).toBe(sha(text('c', 5_000_001)))
  })

  it('keeps head and tail of each stream of a cut output, and counts the rest', async () => {
    const all = seq(100_000)
    const errors = all.slice(0, 50_000)
    const result = await sh(sandbox(), 'seq 1 100000; seq 1 100000 2>/dev/null | head -c 50000 >&2; exit 3', {
      policy: { kind: 'cut', head: 1_000, tail: 4_000 },
    })
    expect(result).toMatchObject({
      code: 3,
      bytes: { stdout: all.length, stderr: errors.length },
      sha256: { stdout: sha(all), stderr: sha(errors) },
      cut: {
        stdout: { from: 1_000, to: all.length - 4_000 },
        stderr: { from: 1_000, to: errors.length - 4_000 },
      },
    })
    expect(result.out).toBe(all.slice(0, 1_000) + all.slice(-4_000))
    expect(result.err).toBe(errors.slice(0, 1_000) + errors.slice(-4_000))
  })

  it('takes every byte of a program whose writes are packets, wherever an output is cut or limited', async () => {
    const box = sandbox()
    const [count, length] = [1_200, 2_999]
    const all = 'packet\n'.repeat((count * length) / 7 + 1).slice(0, count * length)
    // dd asks the kernel for packets; where it knows none, the bytes come as ever.
    const command = `yes packet | head -c ${count * length} | { dd bs=${length} iflag=fullblock oflag=direct 2>/dev/null || cat; }`
    expect(await sh(box, command)).toMatchObject({ code: 0, sha256: { stdout: sha(all) } })
    const [head, tail] = [4_100, 5_000]
    const cut = await sh(box, command, { policy: { kind: 'cut', head, tail } })
    expect(cut).toMatchObject({ bytes: { stdout: all.length }, sha256: { stdout: sha(all) } })
    expect(cut.out).toBe(all.slice(0, head) + all.slice(-tail))
    const limited = await sh(box, command, { policy: { kind: 'limit', bytes: 10_000 } })
    expect(limited).toMatchObject({ cause: 'output_limit', out: all.slice(0, 10_000) })
  })

  it('cuts nothing from an output that fits, and everything where nothing is kept', async () => {
    const box = sandbox()
    for (const [head, tail] of [
      [6, 0],
      [0, 6],
      [3, 3],
      [100_000, 100_000],
    ] as const) {
      const whole = await sh(box, 'printf 123456', { policy: { kind: 'cut', head, tail } })
      expect(whole).toMatchObject({ out: '123456', sha256: { stdout: sha('123456') } })
      expect(whole).not.toHaveProperty('cut')
    }
    for (const [head, tail, out] of [
      [0, 0, ''],
      [1, 0, '1'],
      [0, 1, '6'],
      [2, 3, '12456'],
    ] as const)
      expect(await sh(box, 'printf 123456', { policy: { kind: 'cut', head, tail } })).toMatchObject({
        out,
        bytes: { stdout: 6 },
        cut: { stdout: { from: head, to: 6 - tail } },
      })
    expect((await box.commands()).filter(({ state }) => state === 'ended')).toEqual([])
  })

  it('lets a cut command run on when its output is not taken', async () => {
    const box = sandbox()
    const command = await box.run({
      id: newId(),
      command: 'head -c 50000000 /dev/zero; echo x > cut-done',
      policy: { kind: 'cut', head: 100_000, tail: 100_000 },
      autoAcknowledge: true,
    })
    await sh(box, 'until test -e cut-done; do sleep 0.02; done')
    const result = await finish(command)
    expect(result.out).toHaveLength(200_000)
    expect(result).toMatchObject({
      bytes: { stdout: 50_000_000 },
      cut: { stdout: { from: 100_000, to: 49_900_000 } },
    })
  })

  it('keeps the whole of a cut output in a file', async () => {
    const box = sandbox()
    const all = seq(60_000)
    const result = await sh(box, 'seq 1 60000', {
      policy: { kind: 'cut', head: 10, tail: 10 },
      spool: { afterBytes: 1_000, maxBytes: 10_000_000 },
    })
    expect(Buffer.from(await box.files.read(result.spoolFile ?? '')).toString()).toBe(all)
    expect(result.out).toBe(all.slice(0, 10) + all.slice(-10))
  })

  it('hands head and tail of a cut output to a later connection, from any place', async () => {
    const { bench, sandbox: own } = await Bench.start(fixture())
    try {
      const all = seq(30_000)
      const id = newId()
      const first = await own.run({
        id,
        command: 'seq 1 30000',
        policy: { kind: 'cut', head: 500, tail: 700 },
      })
      await first.exit
      await own.close()
      const tail = all.length - 700
      for (const [from, expected] of [
        [0, all.slice(0, 500) + all.slice(tail)],
        [499, all.slice(499, 500) + all.slice(tail)],
        [500, all.slice(tail)],
        [10_000, all.slice(tail)],
        [tail + 100, all.slice(tail + 100)],
        [all.length, ''],
      ] as const) {
        const again = await bench.connect()
        const command = await again.attach(id, { stdout: from })
        const result = command && (await finish(command))
        expect(result).toMatchObject({ out: expected, sha256: { stdout: sha(all) } })
        if (from === all.length) command?.acknowledge(result?.bytes ?? {})
        else await again.close()
        if (from === all.length) expect(await again.commands()).toEqual([])
      }
    } finally {
      await bench.remove()
    }
  })

  it('ends with its own command, even if another process keeps writing into its pipe', async () => {
    const box = sandbox()
    for (const policy of [{ kind: 'cut', head: 10, tail: 10 }, undefined] as const) {
      const name = `pipe-${newId()}`
      const command = await box.run({
        id: newId(),
        command: `echo $$ >${name}; until test -e ${name}-open; do sleep 0.02; done`,
        policy,
        autoAcknowledge: true,
      })
      const stranger = await box.run({
        id: newId(),
        command: `until test -s ${name}; do sleep 0.02; done; exec 3>/proc/$(cat ${name})/fd/1; : >${name}-open
          for i in 1 2 3 4; do (while cat /dev/zero >&3; do :; done) & done; wait`,
        autoAcknowledge: true,
      })
      expect(await finish(command)).toMatchObject({ cause: 'exited', code: 0 })
      await stranger.cancel(0)
      await finish(stranger)
    }
  })

  it('ends a command at its output limit, with exactly so many bytes', async () => {
    const box = sandbox()
    expect(await sh(box, 'yes', { policy: { kind: 'limit', bytes: 300_000 } })).toMatchObject({
      cause: 'output_limit',
      out: 'y\n'.repeat(150_000),
      bytes: { stdout: 300_000, stderr: 0 },
    })
    const both = await sh(box, 'while :; do printf x; printf y >&2; done', {
      policy: { kind: 'limit', bytes: 5_000 },
    })
    expect(both.cause).toBe('output_limit')
    expect(both.bytes.stdout + both.bytes.stderr).toBe(5_000)
  })

  it('does not mind a command that prints just as much as it may', async () => {
    const policy = { kind: 'limit', bytes: 6 } as const
    expect(await sh(sandbox(), 'printf 123456; exit 2', { policy })).toMatchObject({
      cause: 'exited',
      code: 2,
      out: '123456',
    })
    expect(await sh(sandbox(), 'printf 1234567; exit 2', { policy })).toMatchObject({
      cause: 'output_limit',
      out: '123456',
    })
  })

  it('holds a command to lower limits', async () => {
    const box = sandbox()
    const { out } = await sh(box, 'ulimit -t; ulimit -f; ulimit -n; ulimit -v; nice', {
      limits: {
        cpuSeconds: 7,
        fileBytes: 2_048_000,
        openFiles: 99,
        addressSpaceBytes: 4_096_000_000,
        nice: 5,
      },
    })
    expect(out).toBe('7\n2000\n99\n4000000\n5\n')
    expect(
      await sh(box, 'exec head -c 100000 /dev/zero > too-long', { limits: { fileBytes: 5_000 } }),
    ).toMatchObject({ cause: expect.stringMatching(/^(signal|disk_quota)$/) as unknown })
    expect((await box.files.stat('too-long')).size).toBe(5_000)
    expect(await sh(box, 'while :; do :; done', { limits: { cpuSeconds: 1 } })).toMatchObject({
      cause: 'signal',
      signal: 'SIGXCPU',
    })
  })

  const refused: [string, Partial<RunRequest>][] = [
    ['a limit above that of the sandbox', { limits: { openFiles: 2 ** 40 } }],
    ['half a byte', { limits: { fileBytes: 0.5 } }],
    ['a negative limit', { limits: { cpuSeconds: -1 } }],
    ['a priority that does not exist', { limits: { nice: 20 } }],
    ['more head and tail than fits', { policy: { kind: 'cut', head: 200_000, tail: 100_000 } }],
    ['a limit of the output that is no number', { policy: { kind: 'limit', bytes: Number.NaN } }],
  ]
  for (const [what, change] of refused) {
    it(`refuses ${what}`, async () => {
      await expect(sandbox().run({ id: newId(), command: 'true', ...change })).rejects.toMatchObject({
        code: 'invalid_arguments',
      })
    })
  }
}
