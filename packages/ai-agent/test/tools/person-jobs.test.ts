import { expect, test } from 'vitest'
import { pollJobs, takeEndedJobs } from '../../src/tools/background/ends.ts'
import { PersonJobs } from '../../src/tools/background/person-jobs.ts'
import { TestBatch } from '../calls/test-batch.ts'
import { useSandboxes } from './use-sandboxes.ts'

const local = useSandboxes()

test('what runs in the background is listed with its chat, read and ended, whichever chat started it', async () => {
  const batch = new TestBatch({ sandboxes: () => local.sandboxes })
  const rows = [
    { id: 's_other', title: 'Other', updatedAt: Date.now() },
    { id: 's_build', title: 'Build it', updatedAt: Date.now() },
  ]
  let reads = 0
  const jobs = new PersonJobs({
    store: {
      sessions: { list: async () => rows as never },
      log: { read: async (id) => (reads++, id === 's_build' ? batch.log : []) },
    },
    connected: (userId) => local.sandboxes.connected(userId),
    now: Date.now,
  })
  expect(await jobs.list('u_test')).toEqual([])
  await batch.call('run_shell_command', { command: 'echo up; exec sleep 60', background: true }, 'c1')
  await batch.call('run_shell_command', { command: 'true', background: true }, 'c2')

  const waitFor = async (isSo: () => Promise<boolean>): Promise<void> => {
    while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10))
  }
  await waitFor(async () => (await jobs.list('u_test')).length === 1)
  const [job] = await jobs.list('u_test')
  expect(job).toMatchObject({
    line: 'echo up; exec sleep 60',
    session: { id: 's_build', title: 'Build it' },
    startedAt: expect.any(Number),
  })
  const before = reads
  await jobs.list('u_test')
  // Known paths are not read again.
  expect(reads).toBe(before)
  const id = job?.id ?? ''
  await waitFor(async () => (await jobs.output('u_test', id)) === 'up\n')
  await expect(jobs.output('u_bob', id)).rejects.toMatchObject({ code: 'not_found' })

  await jobs.end('u_test', id)
  expect(await jobs.list('u_test')).toEqual([])
  await expect(jobs.end('u_test', id)).rejects.toMatchObject({ code: 'not_found' })
  // Its chat still learns that it was stopped.
  const texts: unknown[] = []
  const ends = takeEndedJobs({
    promptId: 'p',
    log: () => batch.log,
    poll: (ours) => pollJobs(local.sandboxes)('u_test', ours),
    now: Date.now,
  })
  for await (const group of ends) texts.push(...group.map(({ _meta }) => _meta.sandlot.event))
  expect(texts).toContainEqual(expect.objectContaining({ text: expect.stringContaining('was stopped') }))
})
