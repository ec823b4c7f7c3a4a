import { expect, test } from 'vitest'

import { judgeHost, judgeRoom, judgeSetting } from '../../src/doctor/host.ts'

test.each([
  ['a file', 'core', 'ok', 'no program of the host is started by a crash'],
  ['a file elsewhere', '/var/crash/core.%p', 'ok', 'no program of the host is started by a crash'],
  ['a program', '|/usr/lib/systemd/systemd-coredump %P', 'failed', 'those of sandboxes do not'],
  ['a socket, which knows no limit', '@/run/coredump.socket', 'failed', 'one in a sandbox too'],
])('core_pattern is %s', (_what, pattern, state, words) => {
  expect(judgeSetting('core-pattern', pattern)).toMatchObject({
    state,
    message: expect.stringContaining(words),
  })
})

/** The last good and the first bad value of each setting. */
const EDGES: [id: string, good: string, bad: string][] = [
  ['core-pattern', 'core', '|/usr/bin/handler'],
  ['unprivileged-bpf', '1', '0'],
  ['unprivileged-bpf', '2', '0'],
  ['userfaultfd', '0', '1'],
  ['io-uring', '1', '0'],
  ['io-uring', '2', '0'],
  ['kptr', '1', '0'],
  ['dmesg', '1', '0'],
  ['ksm', '0', '1'],
  ['pid-max', '65536', '65535'],
  ['file-max', '134217728', '134217727'],
  ['file-max', '9223372036854775807', '2466170'],
  ['overcommit', '0', '2'],
  ['overcommit', '1', '2'],
  ['inotify-instances', '128', '127'],
  ['inotify-watches', '65536', '65535'],
  ['pty-max', '4096', '4095'],
]

test.each(EDGES)('%s may be %s and not %s, and says what mends it', (id, good, bad) => {
  expect(judgeSetting(id, good)).toMatchObject({ id, group: 'warn', state: 'ok' })
  const fix: unknown = expect.stringMatching(/^(sysctl|echo) /)
  expect(judgeSetting(id, bad)).toMatchObject({ id, group: 'warn', state: 'failed', fix })
})

test('no setting is without its edges', async () => {
  const ids = (await judgeHost(false)).map(({ id }) => id)
  expect([...new Set(EDGES.map(([id]) => id))].toSorted()).toEqual(ids.toSorted())
})

const GiB = 1024 ** 3
const ROOM = { bsize: 4096, bavail: (2 * GiB) / 4096, files: 1000, ffree: 50, type: 0xef53 }

test.each([
  ['room at the edge', {}, []],
  ['a block less', { bavail: ROOM.bavail - 1 }, ['disk']],
  ['larger blocks', { bsize: 8192, bavail: ROOM.bavail / 2 - 1 }, ['disk']],
  ['a file entry less', { ffree: 49 }, ['inodes']],
  ['neither', { bavail: 0, ffree: 0 }, ['disk', 'inodes']],
  ['no fixed number of entries', { files: 0, ffree: 0 }, []],
])('a disk with %s', (_what, change, failed) => {
  const findings = judgeRoom({ ...ROOM, ...change })
  expect(findings.filter(({ state }) => state === 'failed').map(({ id }) => id)).toEqual(failed)
  expect(findings.find(({ id }) => id === 'disk-kind')).toMatchObject({ message: 'ext4' })
})
