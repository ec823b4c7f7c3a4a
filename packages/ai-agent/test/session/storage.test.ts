/** The store under attack: a full disk, another program's lock, damaged rows. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { openSqliteWriter } from '@sandlot/storage/database/sqlite-file'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { toRequestError } from '../../src/acp/errors.ts'
import {
  AgentBench,
  ask,
  happened,
  heldTool,
  newSession,
  openCore,
  outcomes,
  whenIdle,
} from '../support/agent-fixture.ts'
import { textAnswer, toolCalls } from '../support/fake-provider.ts'

const run = promisify(execFile)
const reason = process.getuid?.() === 0 ? undefined : 'mounting a small disk needs root'

describe.skipIf(reason !== undefined)(`a full disk${reason === undefined ? '' : ` (${reason})`}`, () => {
  let disk: string
  beforeEach(async () => {
    disk = mkdtempSync(join(tmpdir(), 'sandlot-disk-'))
    await run('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'sandlot-test', disk])
  })
  afterEach(async () => {
    await run('umount', ['-l', disk])
    rmSync(disk, { recursive: true, force: true })
  })
  const fill = (): void => {
    const { bavail, bsize } = statfsSync(disk)
    writeFileSync(join(disk, 'ballast'), new Uint8Array(bavail * bsize))
  }

  test('is a typed error; the agent lives on, and the prompt with it when there is space', async () => {
    const slow = heldTool('slow', true)
    const call = { id: 'c', name: 'slow', args: { key: 'k' } }
    await using bench = await AgentBench.start([toolCalls([call]), textAnswer('one'), textAnswer('two')])
    const core = await openCore(disk, bench.provider, { tools: [slow.tool] })
    const session = await newSession(core)
    const { done, promptId } = await session.prompt('go')
    const heard = expect(done).rejects.toMatchObject({ name: 'StorageError', code: 'full' })
    await slow.whenBegun(1)
    fill()
    slow.release('k')
    await heard
    expect(session.running).toBe(false)
    const refused = await session.prompt('more').catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: 'full' })
    const told = toRequestError(refused, () => undefined)
    expect(told).toMatchObject({ message: expect.stringMatching(/disk of the server is full/) })
    expect(told.message).not.toContain(disk)

    rmSync(join(disk, 'ballast'))
    const next = await session.prompt('and now?')
    await next.done
    await whenIdle(session)
    expect(outcomes(session.log)).toEqual({ c: ['completed'] })
    expect(happened(session.log, 'prompt_ended').length).toBe(happened(session.log, 'prompt_started').length)
    expect((await core.store.log.read(session.id)).length).toBe(session.log.length)
    expect(promptId).not.toBe(next.promptId)
    await core.leave()
  })
})

test('a database that another program holds is a typed error, and works when it lets go', async () => {
  await using bench = await AgentBench.start([textAnswer('one')])
  const core = await bench.core()
  const session = await newSession(core)
  const other = openSqliteWriter(join(bench.folder, 'sessions.db'))
  other.exec('begin immediate')
  await expect(session.prompt('go')).rejects.toMatchObject({ name: 'StorageError', code: 'locked' })
  other.exec('rollback')
  other.close()
  const { done } = await ask(session, 'go')
  expect(await done).toMatchObject({ reason: 'completed' })
})

describe('a damaged row', () => {
  test.each([
    ['an event that is no JSON', "update events set json = '{' where session_id = ? and seq = 2"],
    [
      'an event of no known kind',
      `update events set json = '{"sessionUpdate":"x"}' where session_id = ? and seq = 2`,
    ],
    ['a mode of no known name', "update sessions set mode = 'x' where id = ?"],
    ['a running prompt that is not in the log', "update sessions set running_prompt_id = 'p_x' where id = ?"],
  ])('%s: neither the start nor another session is held up by it', async (_name, damage) => {
    const slow = heldTool('slow', true)
    const call = (id: string) => toolCalls([{ id, name: 'slow', args: { key: id } }])
    await using bench = await AgentBench.start([call('a'), call('b')])
    const core = await bench.core({ tools: [slow.tool] })
    const [broken, other] = [await newSession(core), await newSession(core)]
    for (const [n, session] of [broken, other].entries()) {
      await session.prompt('go')
      await slow.whenBegun(n + 1)
    }
    await core.leave()
    const file = openSqliteWriter(join(bench.folder, 'sessions.db'))
    file.prepare(damage).run(broken.id)
    file.close()

    for (let n = 0; n < 2; n++) bench.provider.add(textAnswer('done'))
    slow.release('a')
    slow.release('b')
    const next = await bench.core({ tools: [slow.tool] })
    await next.manager.resumeUnfinished()
    const whole = await next.manager.get('u_ada', other.id)
    await whenIdle(whole)
    expect(happened(whole.log, 'prompt_ended')).toMatchObject([{ reason: 'completed' }])
    expect((await next.manager.list('u_ada')).map(({ id }) => id).toSorted()).toEqual(
      [broken.id, other.id].toSorted(),
    )
    const opened = await next.manager.get('u_ada', broken.id).catch((error: unknown) => error)
    if (damage.startsWith('update events')) {
      expect(opened).toMatchObject({ name: 'StorageError', code: 'corrupt' })
      expect(next.warnings.map(({ message }) => message)).toContain('a prompt could not be resumed')
      expect(toRequestError(opened, () => undefined).message).toMatch(/something in it is damaged/)
      // It can still be removed.
      await next.manager.removal.delete('u_ada', broken.id)
      expect(await next.store.sessions.get(broken.id)).toBeUndefined()
    } else {
      expect(opened).toMatchObject({ id: broken.id })
    }
  })
})
