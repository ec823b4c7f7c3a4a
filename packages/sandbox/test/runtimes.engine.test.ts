/**
 * The contract on what else people run containers with: other OCI runtimes and user namespaces, each on an engine of
 * its own. An ordinary run draws one and its quick groups; a full run takes all.
 */
import { readFileSync } from 'node:fs'

import { describe, expect, test } from 'vitest'

import { campaign, extent, sample } from '../../../test/campaign.ts'
import { testBackend } from './contract.ts'
import type { BackendFixture } from './contract/harness.ts'
import { dockerFixture, shell } from './docker-fixture.ts'
import { findProgram, type OwnEngineOptions, startOwnEngine, whyNoOwnEngine } from './failures/own-engine.ts'

interface Runtime {
  name: string
  /** The program that must be installed. */
  program: string
  engine: (path: string) => OwnEngineOptions
  /** The name to ask for; none where it is the engine as a whole that differs. */
  runtime?: string
  /** Shell text whose output shows that this really is it. */
  proof: { command: string; shows: RegExp }
  /** Title → reason. */
  skips: Record<string, string>
  /**
   * It enforces no limit of memory and processes here: nothing that tries them is run, a watchdog looks on, and an
   * ordinary run, for which it is too slow, only starts it.
   */
  unlimited?: boolean
}

const NO_COMPILER = 'the small image has no compiler'
const SMALL_ENGINE = {
  'is not locked by a forged state': NO_COMPILER,
  'ends a process whose first thread has ended': NO_COMPILER,
  'clears a bomb of processes and threads': NO_COMPILER,
  'needs no more memory for a forged state than for an honest one': NO_COMPILER,
}
const NO_LIMITS = 'it runs with --ignore-cgroups: no limits'
const NO_SUBREAPER = 'gVisor of 2022 has no PR_SET_CHILD_SUBREAPER'
const TERMINAL = 'seen to fail there: its terminals do less than Linux’s'
const SLOW = 'hundreds of commands in a session outlast the test: ptrace makes each take a third of a second'

const runtimes: Runtime[] = [
  {
    name: 'crun',
    program: 'crun',
    runtime: 'crun',
    engine: (path) => ({ runtimes: { crun: { path } } }),
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
        'its /proc/self/status names no signals, and coreutils’ ls fails on its statx',
      'writes the long output of every command while files are written': SLOW,
      'keeps what children print shortly after the main process': NO_SUBREAPER,
      'survives kill -9 -1 and every signal to process 1':
        'it lets a command signal process 1: its own sandbox ends, and is made again',
      'hides process 1 from commands': 'it opens /proc/1/fd and /proc/1/maps, though not the memory',
      'clears a fork bomb and works on': NO_LIMITS,
      'says that there is no room for another process, and has room after a reset': NO_LIMITS,
      'tells an out-of-memory kill from any other': NO_LIMITS,
      'holds a command to lower limits': NO_LIMITS,
      'knows where a shell stopped, however it ended':
        'one of its rows, a script without #!, leaves the session as it was',
      'holds few of many sessions, the ones used last': SLOW,
      'does not change what a script prints and how it ends': SLOW,
      'names the hash of everything that each stream printed': 'it counts no page faults',
      'is a terminal: all three descriptors, controlling, of the given size': TERMINAL,
      'echoes, edits lines and whole characters, and ends the input by a key': TERMINAL,
      'ends an input whose last line is not finished': TERMINAL,
      'lets ^C reach what runs in the foreground, and ^Z, fg and bg work': TERMINAL,
      'tells the foreground when its size changes': TERMINAL,
      'delivers everything that was shown before the end': TERMINAL,
      'may be closed and opened again by a command': TERMINAL,
      'cancels a whole tree: new sessions, double forks, stopped and deaf processes': NO_SUBREAPER,
      'kills a command that ignores TERM at its timeout': 'a shell is too slow in setting its trap',
      'a deleted file that is still open counts': 'it is not seen among the open files there',
      'hard links count once, holes not at all, and no directory hides anything':
        'it reckons a file’s blocks from its length, so a hole counts',
      'who does not write goes on': 'it does not tell who writes, so all are ended',
    },
    unlimited: true,
  },
]

/** Verified with 4.3.1, Debian's, by `podman system service`: it starts, takes the image, and refuses the container. */
test.skip('Podman (its socket takes a seccomp profile only as the path of a file on its host, never as text)')

for (const each of sample('runtimes', runtimes, 1)) {
  const path = findProgram(each.program)
  const reason = whyNoOwnEngine() ?? (path === undefined ? `${each.program} is not installed` : undefined)
  if (path === undefined || reason !== undefined) {
    test.skip(`${each.name} (${reason ?? ''})`)
    continue
  }
  describe(`on ${each.name}`, () => {
    test('the setting chooses it, it proves itself, and one that the engine does not know is told', async () => {
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
    spec: (change = {}) => fixture.spec({ ...(runtime === undefined ? {} : { runtime }), ...change }),
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
