/**
 * The contract on what else people run containers with: other OCI runtimes and user namespaces,
 * each on an engine of its own. An ordinary run draws one of those that this machine can have, and
 * its quick groups; a full run takes all.
 */
import { existsSync, readFileSync } from 'node:fs'

import { describe, expect, test } from 'vitest'

import { campaign, extent, sample } from '../../../../../test/campaign.ts'
import { testBackend } from '../../support/contract.ts'
import type { BackendFixture } from '../../contract/harness.ts'
import { dockerFixture, shell } from '../../support/docker-fixture.ts'
import {
  findProgram,
  type OwnEngineOptions,
  startOwnEngine,
  whyNoOwnEngine,
} from '../../failures/own-engine.ts'

interface Runtime {
  name: string
  /** The program that must be installed. */
  program: string
  engine: (path: string) => OwnEngineOptions
  /** The name to ask for; none where it is the engine as a whole that differs. */
  runtime?: string
  /** Shell text whose output shows that this really is it. */
  proof: { command: string; shows: RegExp }
  /** Why this machine cannot have it. */
  whyNot?: () => string | undefined
  /** Title → reason. */
  skips: Record<string, string>
  /** ptrace makes a command take a third of a second. */
  slow?: boolean
  /**
   * It enforces no limit of memory and processes here: nothing that tries them is run, a watchdog
   * looks on, and an ordinary run, for which it is too slow, only starts it.
   */
  unlimited?: boolean
}

const NO_COMPILER = 'the small image has no compiler'
const SMALL_ENGINE = {
  'is not locked by a forged state': NO_COMPILER,
  'ends a process whose first thread has ended': NO_COMPILER,
  'clears a bomb of processes and threads': NO_COMPILER,
  'needs no more memory for a forged state than for an honest one': NO_COMPILER,
  'a deleted file counts that only a thread holds, or that is the program itself': NO_COMPILER,
  'a process that hides its bytes is ended while the host is short of disk, and one that hides and sleeps is not':
    NO_COMPILER,
  'a process that holds bytes written by others, and wrote none itself, is ended as well': NO_COMPILER,
  'a process that uses space by attributes instead of bytes is ended as well': NO_COMPILER,
}
const NO_LIMITS = 'it runs with --ignore-cgroups: no limits'
/* Missing in gVisor of 2022, seen by hand and in its sources. */
const NO_SUBREAPER =
  'no PR_SET_CHILD_SUBREAPER: what its parent leaves behind goes to process 1, not to the shim'
const NO_TTY = 'its /dev/tty cannot be opened: EIO, for everybody'
const STILL_NAMED = 'it says of a deleted file that it still has a name (st_nlink 1)'
const NO_KEYS =
  'its line discipline knows no keys: ^C and ^Z are bytes, nothing is erased, and ^D does not end a read'

/** crun refuses a machine whose controllers are partly in version 1 and partly in version 2. */
function bothCgroupVersions(): string | undefined {
  const file = '/sys/fs/cgroup/unified/cgroup.controllers'
  const controllers = existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
  return controllers === ''
    ? undefined
    : `of the cgroup controllers ${controllers} is in version 2, the others are not`
}

const runtimes: Runtime[] = [
  {
    name: 'crun',
    program: 'crun',
    runtime: 'crun',
    engine: (path) => ({ runtimes: { crun: { path } } }),
    whyNot: bothCgroupVersions,
    proof: { command: 'cat /proc/1/comm', shows: /^sbxd$/ },
    skips: SMALL_ENGINE,
  },
  {
    name: 'userns-remap',
    // dockerd makes the user `dockremap` with it where there is none.
    program: 'useradd',
    engine: () => ({ usernsRemap: 'default' }),
    proof: {
      command: 'awk \'{ print ($2 > 0) ? "mapped" : "not mapped" }\' /proc/self/uid_map',
      shows: /^mapped$/,
    },
    skips: SMALL_ENGINE,
  },
  {
    name: 'runsc',
    program: 'runsc',
    runtime: 'runsc',
    engine: (path) => ({
      runtimes: { runsc: { path, runtimeArgs: ['--platform=ptrace', '--network=none', '--ignore-cgroups'] } },
    }),
    proof: { command: 'dmesg | head -1', shows: /gVisor/ },
    skips: {
      ...SMALL_ENGINE,
      'starts a command with the usual signals, descriptors and no core files':
        'its /proc/self/status names no signals, and coreutils’ ls and stat fail on its statx (EINVAL)',
      'counts page faults': 'it counts none',
      'reports files of any date': 'it makes 3.8 seconds after 1970 of half a second before',
      'keeps what children print shortly after the main process': NO_SUBREAPER,
      'survives kill -9 -1 and every signal to process 1':
        'it lets a command signal process 1: its own sandbox ends, and is made again',
      'hides process 1 from commands':
        'it opens /proc/1/fd, maps and environ to the same user; memory, root and binary stay closed',
      'clears a fork bomb and works on': NO_LIMITS,
      'says that there is no room for another process, and has room after a reset': NO_LIMITS,
      'distinguishes an out-of-memory kill from any other': NO_LIMITS,
      'holds a command to lower limits': NO_LIMITS,
      'is a terminal: all three descriptors, controlling, of the given size': NO_TTY,
      'may be closed and opened again by a command': NO_TTY,
      'echoes, edits lines and whole characters, and ends the input by a key': NO_KEYS,
      'ends an input whose last line is not finished': NO_KEYS,
      'lets ^C reach what runs in the foreground, and ^Z, fg and bg work': NO_KEYS,
      'notifies the foreground when its size changes': 'its TIOCSWINSZ keeps the size and sends no SIGWINCH',
      'cancels a whole tree: stopped processes':
        'it hangs up a group in which one is stopped as soon as any process of the session ends; nobody is left, but it was no cancel',
      'a deleted file that is still open counts': STILL_NAMED,
      'a deleted file counts whose path was longer than any link can say': STILL_NAMED,
      'a hole in a file counts nothing': 'it reckons a file’s blocks from its length',
      'a command that does not write continues':
        'its /proc/<pid>/io always says 0, so nobody can be told to be the writer and all are ended',
    },
    slow: true,
    unlimited: true,
  },
]

/**
 * Verified with 4.3.1, Debian's, by `podman system service`: it starts, takes the image, and
 * refuses the container.
 */
test.skip('Podman (its socket takes a seccomp profile only as the path of a file on its host, never as text)')

const possible: { each: Runtime; path: string }[] = []
for (const each of runtimes) {
  const path = findProgram(each.program)
  const reason =
    whyNoOwnEngine() ?? (path === undefined ? `${each.program} is not installed` : each.whyNot?.())
  if (path === undefined || reason !== undefined) test.skip(`${each.name} (${reason ?? ''})`)
  else possible.push({ each, path })
}

// Drawn only now: a run whose one runtime is not here would try none.
for (const { each, path } of sample('runtimes', possible, 1)) {
  describe(`on ${each.name}`, () => {
    test('the setting chooses it, it proves itself, and an unknown one is reported', async () => {
      const engine = await startOwnEngine(each.engine(path))
      const fixture = await dockerFixture({ host: engine.host })
      try {
        const chosen = fixture.controller(each.runtime === undefined ? {} : { runtime: each.runtime })
        const sandbox = await chosen.acquire('someone')
        expect((await shell(sandbox, each.proof.command)).output.trim()).toMatch(each.proof.shows)
        if (each.runtime === undefined) return
        const [container = ''] = await fixture.containers()
        expect(await engine.docker('inspect', '--format', '{{.HostConfig.Runtime}}', container)).toBe(
          each.runtime,
        )
        await expect(fixture.controller({ runtime: 'nonesuch' }).acquire('another')).rejects.toMatchObject({
          code: 'engine_unavailable',
          message: expect.stringMatching(/no runtime "nonesuch"/),
        })
      } finally {
        await fixture.dispose()
        await engine.dispose()
      }
    })
    if (each.unlimited && !campaign.full) return
    testBackend({
      name: each.name,
      ownProcesses: true,
      quick: !campaign.full,
      skips: each.skips,
      slow: each.slow ?? false,
      open: () => open(each, path),
    })
  })
}

/** A deployment on an engine of its own with that runtime; both go with `dispose`. */
async function open(each: Runtime, path: string): Promise<BackendFixture> {
  // Room for what is written faster than the watcher of the disk looks.
  const engine = await startOwnEngine({ ...each.engine(path), bytes: extent(2 ** 29, 2 ** 31) })
  const fixture = await dockerFixture({ host: engine.host })
  const { runtime } = each
  const watchdog = each.unlimited ? setInterval(() => watchMemory(() => engine.dispose()), 250) : undefined
  return {
    backend: fixture.backend,
    spec: (change = {}) => fixture.spec({ runtime, ...change }),
    async dispose() {
      clearInterval(watchdog)
      await fixture.dispose()
      await engine.dispose()
    },
  }
}

/** End everything before the host runs out of memory. */
function watchMemory(end: () => Promise<void>): void {
  const info = readFileSync('/proc/meminfo', 'utf8')
  const kilobytes = (name: string): number => Number(new RegExp(`^${name}: +(\\d+)`, 'm').exec(info)?.[1])
  if (kilobytes('MemAvailable') < kilobytes('MemTotal') / 8) void end()
}
