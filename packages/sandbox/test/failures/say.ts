import { expect } from 'vitest'

import { SandboxError } from '../../src/errors.ts'
import type { Sandboxes } from '../../src/controller/sandboxes.ts'
import { shell } from '../support/docker-fixture.ts'

/** Run shell text in this user's sandbox; what it printed, trimmed. */
export async function say(sandboxes: Sandboxes, text: string, user = 'ann'): Promise<string> {
  return (await shell(await sandboxes.acquire(user), text)).output.trim()
}

/**
 * Resolves when a command works in this user's sandbox; every failure on the way must be a typed
 * one.
 */
export async function usable(sandboxes: Sandboxes, user = 'ann'): Promise<void> {
  const attempt = async (): Promise<string> => {
    try {
      return await say(sandboxes, 'echo works', user)
    } catch (error) {
      return error instanceof SandboxError ? `${error.code}: ${error.message}` : `not typed: ${String(error)}`
    }
  }
  const seen: string[] = []
  await expect
    .poll(async () => seen[seen.push(await attempt()) - 1], { timeout: 90_000, interval: 50 })
    .toBe('works')
  expect(seen.filter((outcome) => outcome.startsWith('not typed'))).toEqual([])
}
