/**
 * The contract on what else people run containers with: other OCI runtimes and user namespaces, each on an engine of
 * its own. An ordinary run draws one and its quick groups; a full run takes all.
 */
import { readFileSync } from 'node:fs'

import { describe, expect, test } from 'vitest'

import { campaign, sample } from '../../../test/campaign.ts'
import { testBackend } from './contract.ts'
import { Bench, sh, type BackendFixture } from './contract/harness.ts'
import { dockerFixture } from './docker-fixture.ts'
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
   * Debian's runsc: only the quick groups can pass, and only a full run has the time for them. It enforces no limit of
   * memory and processes here, so nothing that tries them is run, and a watchdog looks on.
   */
  old?: boolean
}

const NO_COMPILER = 'the small image has no compiler'
const SMALL_ENGINE = {
  'is not locked by a forged state': NO_COMPILER,
  'ends a process whose first thread has ended': NO_COMPILER,
  'clears a bomb of processes and threads': NO_COMPILER,
  'hard links count once, holes not at all, and no directory hides anything':
    'directories take no blocks on the tmpfs of this engine',
}
/** Hence no path can be opened safely inside, and whatever needs files fails. */
const NO_OPENAT2 = 'Debian’s gVisor of December 2022 has no openat2(2)'

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
      'says that a program does not exist or cannot run': NO_OPENAT2,
      'names the hash of everything that each stream printed': 'gVisor counts no page faults',
      'keeps the whole of a cut output in a file': NO_OPENAT2,
      'holds a command to lower limits': 'it runs with --ignore-cgroups: no limits',
    },
    old: true,
  },
]

for (const each of sample('runtimes', runtimes, 1)) {
  const path = findProgram(each.program)
  const reason = whyNoOwnEngine() ?? (path === undefined ? `${each.program} is not installed` : undefined)
  if (path === undefined || reason !== undefined) {
    test.skip(`${each.name} (${reason ?? ''})`)
    continue
  }
  describe(`on ${each.name}`, () => {
    test('it is really that', async () => {
      const fixture = await open(each, path)
      try {
        const { sandbox } = await Bench.start(fixture)
        expect((await sh(sandbox, each.proof.command)).out.trim()).toMatch(each.proof.shows)
        await sandbox.close()
      } finally {
        await fixture.dispose()
      }
    })
    if (each.old && !campaign.full) return
    testBackend({
      name: each.name,
      ownProcesses: each.old !== true,
      quick: !campaign.full || each.old === true,
      skips: each.skips,
      open: () => open(each, path),
    })
  })
}

/** A deployment on an engine of its own with that runtime; both go with `dispose`. */
async function open(each: Runtime, path: string): Promise<BackendFixture> {
  const engine = await startOwnEngine(each.engine(path))
  const fixture = await dockerFixture({ host: engine.host })
  const { runtime } = each
  const watchdog = each.old ? setInterval(() => watchMemory(() => engine.dispose()), 250) : undefined
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
