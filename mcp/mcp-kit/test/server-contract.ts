/**
 * What each of our servers does alike, as tests: time limit, cancelling, limit per user, no
 * credential, wrong settings, log.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { ServedBeside } from './served-beside.ts'
import { failureOf, textOf } from './stdio-server.ts'

export interface Contract {
  /** URL of the program. */
  main: URL
  /** Arguments of a call that nothing remembers. */
  fresh: () => Record<string, unknown>
  /** Names of its settings. */
  timeoutMs: string
  perMinute: string
  /** Settings without a credential, and what a call says then. */
  poor: Record<string, string>
  missing: string
  /** Settings with which it does not start, the name that it says, and what it must not say. */
  wrong: { env: Record<string, string>; says: string; hides: string }
  /** What is asked and found in the tests of this file; never in a log. */
  unspoken: RegExp
}

/** Call at the end of the file: the log is looked at last. */
export function serverContract(beside: ServedBeside, contract: Contract): void {
  const { main, fresh, timeoutMs, perMinute, poor, missing, wrong, unspoken } = contract

  describe('as every server of ours', () => {
    // First those that ask nothing: what is cut off may still arrive while the next one runs.
    test('without a credential it starts, lists its tool, and says what is missing', async () => {
      const without = await beside.start(poor)
      expect((await without.client.listTools()).tools).toHaveLength(1)
      const result = await without.call(fresh())
      expect(failureOf(result)).toEqual({ code: 'needs_auth' })
      expect(textOf(result)).toContain(missing)
      expect(beside.service.seen).toEqual([])
    })

    test('a wrong setting ends it, and is told by name, without its value', async () => {
      const args = ['--conditions=sandlot-source', fileURLToPath(main)]
      const ended = await promisify(execFile)(process.execPath, args, { env: wrong.env }).catch(
        (error: unknown) => error,
      )
      expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining(wrong.says) })
      expect((ended as { stderr: string }).stderr).not.toContain(wrong.hides)
    })

    test('a lookup that is cancelled closes its connection', async () => {
      beside.service.play({ hang: true })
      const stop = new AbortController()
      const lookup = beside.server.call(fresh(), { signal: stop.signal })
      await expect.poll(() => beside.service.seen.length).toBeGreaterThan(0)
      stop.abort()
      await expect(lookup).rejects.toThrow()
      await Promise.all(beside.service.seen.map(({ abandoned }) => abandoned))
    })

    test('nothing within the time limit: said, and the connection is closed; each user has a limit of their own', async () => {
      const strict = await beside.start({ [timeoutMs]: '200', [perMinute]: '2' })
      beside.service.play({ hang: true })
      const late = await strict.call(fresh(), { userId: 'ann' })
      expect(failureOf(late)).toEqual({ code: 'timeout' })
      expect(textOf(late)).toContain('within 0.2 seconds')
      await beside.service.seen[0]?.abandoned
      await strict.call(fresh(), { userId: 'ann' })
      const refused = await strict.call(fresh(), { userId: 'ann' })
      expect(failureOf(refused)).toMatchObject({
        code: 'rate_limited',
        retryAfterSeconds: expect.any(Number),
      })
      expect(failureOf(await strict.call(fresh(), { userId: 'bob' }))).toEqual({ code: 'timeout' })
    })

    test('its log has one line for each lookup, and nothing of what was asked or found', () => {
      const lines = beside.server
        .log()
        .split('\n')
        .filter((line) => line.includes('"lookup ended"'))
      expect(lines.length).toBeGreaterThan(10)
      expect(lines.join('')).not.toMatch(unspoken)
    })
  })
}
