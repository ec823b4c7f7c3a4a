import { expect, test } from 'vitest'

import { judgeSetting } from '../../src/doctor/host.ts'

test.each([
  ['a file', 'core', 'ok', 'no program of the host hears of a crash'],
  ['a file elsewhere', '/var/crash/core.%p', 'ok', 'no program of the host hears of a crash'],
  ['a program', '|/usr/lib/systemd/systemd-coredump %P', 'failed', 'those of sandboxes do not'],
  ['a socket, which knows no limit', '@/run/coredump.socket', 'failed', 'one in a sandbox too'],
])('core_pattern is %s', (_what, pattern, state, words) => {
  expect(judgeSetting('core-pattern', pattern)).toMatchObject({
    state,
    message: expect.stringContaining(words),
  })
})
