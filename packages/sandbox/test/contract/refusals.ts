import { expect } from 'vitest'

import type { Suite } from '../support/contract.ts'
import type { RunRequest } from '../../src/sandbox.ts'
import { finish, newId, sh } from './harness.ts'

export function refusalTests({ it, sandbox }: Suite): void {
  const invalid: [string, Partial<RunRequest>][] = [
    ['an id that is none', { id: 'x' }],
    ['an empty vector', { command: [] }],
    ['NUL in the text', { command: 'echo a\0b' }],
    ['half a surrogate pair', { command: 'echo \ud800' }],
    ['an argument over 128 KiB', { command: ['echo', 'x'.repeat(131_072)] }],
    ['a variable without a name', { env: { '': 'x' } }],
    ['a name with =', { env: { 'A=B': 'x' } }],
    ['NUL in a variable', { env: { A: 'x\0' } }],
    ['a huge variable', { env: { A: 'x'.repeat(2_000_000) } }],
    ['a timeout of 0', { timeoutMs: 0 }],
    ['a spool that begins too late', { spool: { afterBytes: 1_000_000, maxBytes: 1_000_000 } }],
  ]
  for (const [what, change] of invalid) {
    it(`refuses ${what}`, async () => {
      await expect(sandbox().run({ id: newId(), command: 'true', ...change })).rejects.toMatchObject({
        code: 'invalid_arguments',
      })
    })
  }

  it('refuses what the system finds too long', async () => {
    const args = Array.from({ length: 9 }, () => 'x'.repeat(120_000))
    await expect(sandbox().run({ id: newId(), command: ['/bin/true', ...args] })).rejects.toMatchObject({
      code: 'invalid_arguments',
    })
  })

  it('refuses more variables than the limit, and takes as many as that', async () => {
    const variables = (count: number): Record<string, string> =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`V${n}`, String(n)]))
    await expect(
      sandbox().run({ id: newId(), command: 'true', env: variables(4_097) }),
    ).rejects.toMatchObject({ code: 'invalid_arguments' })
    expect(await sh(sandbox(), 'echo $V0 $V4095', { env: variables(4_096) })).toMatchObject({
      out: '0 4095\n',
    })
  })

  it('finds a program along the PATH that it gets', async () => {
    const box = sandbox()
    await box.files.write('own-programs/greet', Buffer.from('#!/bin/sh\necho hello from $0\n'))
    await sh(box, 'chmod 755 own-programs/greet')
    const PATH = `${box.workspace}/own-programs:/usr/bin:/bin`
    expect(await sh(box, ['greet'], { env: { PATH } })).toMatchObject({
      out: `hello from ${box.workspace}/own-programs/greet\n`,
    })
    // Nobody else's changed by that.
    await expect(box.run({ id: newId(), command: ['greet'] })).rejects.toMatchObject({ code: 'start_failed' })
  })

  it('says that a program does not exist or cannot run', async () => {
    const box = sandbox()
    await expect(box.run({ id: newId(), command: ['no-such-program'] })).rejects.toMatchObject({
      code: 'start_failed',
    })
    await box.files.write('not-a-program', Buffer.from('text'))
    await expect(box.run({ id: newId(), command: [`${box.workspace}/not-a-program`] })).rejects.toMatchObject(
      { code: 'start_failed' },
    )
  })

  it('says that a directory does not exist', async () => {
    await expect(sandbox().run({ id: newId(), command: 'true', cwd: 'nowhere' })).rejects.toMatchObject({
      code: 'not_found',
    })
  })

  it('forgets a command that could not be started, so its id may be used again', async () => {
    const id = newId()
    await expect(sandbox().run({ id, command: ['no-such-program'] })).rejects.toMatchObject({
      code: 'start_failed',
    })
    const again = await sandbox().run({ id, command: ['echo', 'now'], autoAcknowledge: true })
    expect((await finish(again)).out).toBe('now\n')
  })

  it('refuses a request that was prepared for another boot', async () => {
    const box = sandbox()
    await expect(
      box.run({ id: newId(), command: 'echo x > foreign-boot', bootId: newId() }),
    ).rejects.toMatchObject({ code: 'sandbox_lost' })
    await expect(sh(box, 'test -e foreign-boot')).resolves.toMatchObject({ code: 1 })
  })

  it('refuses a signal that does not exist', async () => {
    const command = await sandbox().run({ id: newId(), command: 'cat', stdin: true, autoAcknowledge: true })
    await expect(command.signal('SIGNOPE')).rejects.toMatchObject({ code: 'invalid_arguments' })
    await command.closeStdin()
    await finish(command)
  })
}
