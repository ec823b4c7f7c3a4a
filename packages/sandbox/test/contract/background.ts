import { expect } from 'vitest'

import type { Sandbox } from '../../src/sandbox.ts'
import type { Suite } from '../support/contract.ts'
import { Bench, finish, marker, newId, sh, survivors } from './harness.ts'

const MOST_JOBS = 16

export function backgroundTests({ it, sandbox, fixture }: Suite): void {
  const job = (on: Sandbox, command: string, maxAgeMs?: number) =>
    on.run({
      id: newId(),
      command,
      background: true,
      autoAcknowledge: true,
      maxAgeMs,
    })

  it('lists a job as one, also to the next controller, who can end it', async () => {
    const { bench, sandbox: first } = await Bench.start(fixture())
    const m = marker()
    const { id } = await job(first, `sleep ${m}`)
    await sh(first, 'true')
    expect(await first.commands()).toContainEqual({
      id,
      state: 'running',
      background: true,
      terminal: false,
    })
    await first.close()
    const second = await bench.connect()
    expect(second.found).toContainEqual({ id, state: 'running', background: true, terminal: false })
    expect((await survivors(second, m)).length).toBe(1)
    const again = await second.attach(id, {}, { autoAcknowledge: true })
    await again?.cancel(5_000)
    expect(again && (await finish(again))).toMatchObject({ cause: 'cancel' })
    expect(await survivors(second, m)).toEqual([])
    await second.close()
    await bench.remove()
  })

  it('ends a job at its greatest age, with all that it started', async () => {
    const m = marker()
    const aged = await job(sandbox(), `setsid sleep ${m} & trap "" TERM; while :; do sleep 0.05; done`, 300)
    expect((await finish(aged)).cause).toBe('timeout')
    expect(await survivors(sandbox(), m)).toEqual([])
  })

  it('takes the earlier of a timeout and the greatest age', async () => {
    const started = await sandbox().run({
      id: newId(),
      command: 'sleep 300',
      background: true,
      maxAgeMs: 3_600_000,
      timeoutMs: 200,
      autoAcknowledge: true,
    })
    expect((await finish(started)).cause).toBe('timeout')
  })

  it('limits the number of jobs, and runs other commands next to them', async () => {
    const { bench, sandbox: own } = await Bench.start(fixture())
    const jobs = []
    for (let i = 0; i < MOST_JOBS; i++) jobs.push(await job(own, 'read -r -t 300 < <(sleep 300)'))
    await expect(job(own, 'true')).rejects.toMatchObject({
      code: 'limit_reached',
      message: expect.stringContaining('background') as string,
    })
    expect((await sh(own, 'echo works')).out).toBe('works\n')
    await jobs[0]?.cancel(0)
    await jobs[0]?.exit
    await finish(await job(own, 'true'))
    await own.close()
    await bench.remove()
  })

  it('need not wait for a reader: its output is cut, and a log can be read while it runs', async () => {
    const { bench, sandbox: first } = await Bench.start(fixture())
    const id = newId()
    await first.run({
      id,
      command: 'seq 400000; echo done >>printed; read -r -t 300 < <(sleep 300)',
      background: true,
      policy: { kind: 'cut', head: 1_000, tail: 1_000 },
      spool: { afterBytes: 0, maxBytes: 1_000_000 },
    })
    await first.close()
    const second = await bench.connect()
    await sh(second, 'until test -e printed; do sleep 0.02; done')
    expect((await sh(second, `head -n 2 .tool-outputs/${id}.txt`)).out).toBe('1\n2\n')
    expect(second.found).toMatchObject([{ id, state: 'running', background: true }])
    const again = await second.attach(id, {}, { autoAcknowledge: true })
    await again?.cancel(0)
    const result = again && (await finish(again))
    expect(result?.out.slice(0, 4)).toBe('1\n2\n')
    expect(result?.out.endsWith('\n400000\n')).toBe(true)
    expect(result?.out.length).toBe(2_000)
    await second.close()
    await bench.remove()
  })

  it('ends jobs at a reset', async () => {
    const { bench, sandbox: own } = await Bench.start(fixture())
    const m = marker()
    const started = await job(own, `trap "" TERM; sleep ${m} & sleep ${m}`)
    await own.reset()
    expect((await finish(started)).cause).toBe('cancel')
    expect(await survivors(own, m)).toEqual([])
    await own.close()
    await bench.remove()
  })

  it('begins where its session is, and does not move it', async () => {
    const options = { session: newId() }
    await sh(sandbox(), 'mkdir -p jobs; cd jobs; export J=1', options)
    const inside = await sh(sandbox(), 'basename "$PWD"; echo $J; cd /; export J=2', {
      ...options,
      background: true,
    })
    expect(inside).toMatchObject({ out: 'jobs\n1\n', session: 'unchanged' })
    expect((await sh(sandbox(), 'basename "$PWD"; echo $J', options)).out).toBe('jobs\n1\n')
  })

  it('refuses an age that is none', async () => {
    for (const maxAgeMs of [0, -1, Number.NaN, 2 ** 50])
      await expect(job(sandbox(), 'true', maxAgeMs)).rejects.toMatchObject({ code: 'invalid_arguments' })
  })
}
