/** Sandboxes shared by the tests of a file. */
import { randomBytes } from 'node:crypto'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { afterAll, beforeAll, expect } from 'vitest'
import { type LocalSandboxes, openLocalSandboxes } from './local-sandboxes.ts'

/** Opened before the first test of the file or `describe`, disposed of after its last one. */
export function useSandboxes(): LocalSandboxes {
  let opened: LocalSandboxes
  beforeAll(async () => {
    opened = await openLocalSandboxes()
  }, 60_000)
  afterAll(() => opened.dispose())
  return new Proxy({} as LocalSandboxes, { get: (_, name) => Reflect.get(opened, name) as unknown })
}

/** The user's sandbox, with nothing in its workspace. */
export async function emptySandbox({ sandboxes }: LocalSandboxes, userId = 'u_test'): Promise<Sandbox> {
  const sandbox = await sandboxes.acquire(userId)
  for (const { path } of await sandbox.files.list('')) await sandbox.files.remove(path, { recursive: true })
  return sandbox
}

/** Fails unless the command exits with 0. */
export async function runIn(sandbox: Sandbox, command: string): Promise<void> {
  const running = await sandbox.run({ id: randomBytes(16).toString('hex'), command, autoAcknowledge: true })
  for await (const _ of running.output);
  expect((await running.exit).code).toBe(0)
}
