/**
 * The model's text about a command stopped at some moment, next to the sandbox's facts: its lines,
 * and the processes that are left.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type SessionEvent, isLive, metaOf } from '@sandlot/shared/chat/events'
import { expect, test } from 'vitest'
import { sample } from '../../../../../test/campaign.ts'
import { TestBatch } from '../../calls/test-batch.ts'
import { useSandboxes } from '../use-sandboxes.ts'

const local = useSandboxes()

/** Writes `begun`, its processes, and `done` into a file of this name. */
const COMMANDS: Record<string, (file: string) => string> = {
  'one process': (file) => `echo begun $$ >> ${file}; echo up; sleep 0.3; echo done >> ${file}`,
  'a tree': (file) =>
    `echo begun $$ >> ${file}; for i in 1 2 3; do sleep 100 & echo pid $! >> ${file}; done; echo up; wait; echo done >> ${file}`,
  'a tree that ignores TERM': (file) =>
    `trap '' TERM; echo begun $$ >> ${file}; sleep 100 & echo pid $! >> ${file}; echo up; wait; wait; echo done >> ${file}`,
  'one that ends well on TERM': (file) =>
    `trap 'echo done >> ${file}; exit 0' TERM; echo begun $$ >> ${file}; sleep 100 & echo pid $! >> ${file}; echo up; wait`,
}
/** When Stop comes. */
const MOMENTS: Record<string, (event: SessionEvent) => boolean> = {
  'before it is sent': (event) => metaOf(event).attempt !== undefined,
  'when it prints': (event) => isLive(event) && metaOf(event).output !== undefined,
  never: () => false,
}
const CASES = Object.keys(COMMANDS).flatMap((command) =>
  Object.keys(MOMENTS).map((moment) => ({ command, moment })),
)

const without = (one: { command: string; moment: string }): boolean =>
  one.moment !== 'never' || one.command === 'one process'

test.each(sample('receipts', CASES.filter(without), 6))(
  '$command, stopped $moment',
  async ({ command, moment }) => {
    const batch = new TestBatch({ sandboxes: () => local.sandboxes })
    const file = `seen-${command}-${moment}`.replaceAll(' ', '-')
    const args = { command: COMMANDS[command]?.(file) ?? '' }
    const [outcome] = await batch.run([{ id: 'c1', name: 'run_shell_command', args }], (event) => {
      if (MOMENTS[moment]?.(event) === true) batch.stop.abort('cancelled')
    })
    const receipt = outcome?.forModel ?? ''
    // Whatever is left has had its time.
    await sleep(50)
    const sandbox = await local.sandboxes.acquire('u_test')
    const text = await sandbox.files.read(file).then(
      (bytes) => Buffer.from(bytes).toString(),
      () => '',
    )
    const pids = [...text.matchAll(/^(?:begun|pid) (\d+)$/gm)].map(([, pid]) => Number(pid))
    const alive = pids.filter((pid) => {
      try {
        return process.kill(pid, 0)
      } catch {
        return false
      }
    })
    expect(alive).toEqual([])
    if (moment === 'before it is sent') {
      expect(receipt).toBe(
        'The command was not run: the user stopped it before it was sent. It had no effect.',
      )
      expect(text).toBe('')
    } else if (moment === 'never') {
      expect(outcome?.status).toBe('completed')
      expect(text).toContain('done')
    } else {
      const [, processes] = /was ended, (\d+) process(?:es)? in/.exec(receipt) ?? []
      expect(outcome).toMatchObject({ status: 'failed', reason: 'cancelled' })
      // One process runs its `sleep` as another.
      if (command === 'one process') expect(['1', '2']).toContain(processes)
      else expect(Number(processes)).toBe(pids.length)
    }
  },
)
