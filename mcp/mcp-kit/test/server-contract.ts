/**
 * Tests of every server: time limit, cancelling, limit per user, missing credential, wrong settings,
 * log.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { TestServers } from './test-servers.ts'
import { failureOf, textOf } from './stdio-server.ts'

export interface Contract {
  /** URL of the program. */
  main: URL
  /** Arguments of a call that is not cached. */
  fresh: () => Record<string, unknown>
  /** Names of its settings. */
  timeoutMs: string
  perMinute: string
  /** Settings without a credential, and the message of a call. */
  poor: Record<string, string>
  missing: string
  /** Invalid settings, the name in the message, and a text that must not be in it. */
  wrong: { env: Record<string, string>; says: string; hides: string }
  /** Arguments and results in the tests, which must not be logged. */
  unspoken: RegExp
}

/** Call at the end of the file: the log is checked last. */
export function serverContract(servers: TestServers, contract: Contract): void {
  const { main, fresh, timeoutMs, perMinute, poor, missing, wrong, unspoken } = contract

  describe('as every server of ours', () => {
    // First those that ask nothing: what is cut off may still arrive while the next one runs.
    test('without a credential it starts, lists its tool, and says what is missing', async () => {
      const without = await servers.start(poor)
      expect((await without.client.listTools()).tools).toHaveLength(1)
      const result = await without.call(fresh())
      expect(failureOf(result)).toEqual({ code: 'needs_auth' })
      expect(textOf(result)).toContain(missing)
      expect(servers.service.seen).toEqual([])
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
      servers.service.play({ hang: true })
      const stop = new AbortController()
      const lookup = servers.server.call(fresh(), { signal: stop.signal })
      await expect.poll(() => servers.service.seen.length).toBeGreaterThan(0)
      stop.abort()
      await expect(lookup).rejects.toThrow()
      await Promise.all(servers.service.seen.map(({ abandoned }) => abandoned))
    })

    test('nothing within the time limit: said, and the connection is closed; each user has a limit of their own', async () => {
      const strict = await servers.start({ [timeoutMs]: '200', [perMinute]: '2' })
      servers.service.play({ hang: true })
      const late = await strict.call(fresh(), { userId: 'ann' })
      expect(failureOf(late)).toEqual({ code: 'timeout' })
      expect(textOf(late)).toContain('within 0.2 seconds')
      await servers.service.seen[0]?.abandoned
      await strict.call(fresh(), { userId: 'ann' })
      const refused = await strict.call(fresh(), { userId: 'ann' })
      expect(failureOf(refused)).toMatchObject({
        code: 'rate_limited',
        retryAfterSeconds: expect.any(Number),
      })
      expect(failureOf(await strict.call(fresh(), { userId: 'bob' }))).toEqual({ code: 'timeout' })
    })

    test('its log has one line for each lookup, and nothing of what was asked or found', () => {
      const lines = servers.server
        .log()
        .split('\n')
        .filter((line) => line.includes('"lookup ended"'))
      expect(lines.length).toBeGreaterThan(10)
      expect(lines.join('')).not.toMatch(unspoken)
    })
  })
}
