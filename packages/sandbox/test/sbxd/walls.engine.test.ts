/** The limits and the filter that sbxd sets itself, where the engine sets less. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { extent } from '../../../../test/campaign.ts'
import { readSeccompProfile } from '../../src/backends/docker/seccomp.ts'
import { isSafe } from '@sandlot/shared/base/finding'
import { judgeProof, probeSandbox } from '../../src/controller/proof.ts'
import { createFileLedger } from '../../src/controller/file-ledger.ts'
import type { SandboxProfile } from '../../src/backend.ts'
import type { Sandbox } from '../../src/sandbox.ts'
import { CompiledFilter, FilterCompiler, ownArchitecture } from '../backends/docker/seccomp-filter.ts'
import { testConfig } from '../support/config.ts'
import { docker, dockerFixture, type DockerFixture, shell } from '../support/docker-fixture.ts'
import { asOnKubernetes, looseBackend } from '../support/loose-backend.ts'

const run = promisify(execFile)

let fixture: DockerFixture
beforeAll(async () => {
  fixture = await dockerFixture()
})
afterAll(() => fixture.dispose())

describe('on an engine with its own filter and no limits of a process', () => {
  let sandbox: Sandbox
  const sh = async (command: string): Promise<string> => (await shell(sandbox, command)).output.trim()
  beforeAll(async () => {
    sandbox = await fixture.controller({ backend: looseBackend(fixture, asOnKubernetes) }).acquire('loose')
  })

  test('the proof finds nothing open', async () => {
    expect(isSafe(judgeProof(await probeSandbox(sandbox)))).toBe(true)
  })

  test('every limit is the template’s', async () => {
    const limits = await sh(
      String.raw`sed -n 's/^Max \(core\|open\|locked\|file size\|pending\|msgqueue\)[a-z ]* \([0-9]\+\) *\([0-9]*\).*/\1 \2 \3/p' /proc/self/limits`,
    )
    expect(limits.split('\n').toSorted()).toEqual([
      'core 1 1',
      'file size 4294967296 4294967296',
      'locked 65536 65536',
      'msgqueue 262144 262144',
      'open 4096 4096',
      'pending 1024 1024',
    ])
  })

  test('a command’s out-of-memory score is above that of process 1, and at most Linux’s highest', async () => {
    expect(await sh('cat /proc/1/oom_score_adj /proc/self/oom_score_adj')).toBe('990\n1000')
  })

  test.each([
    ['a pipeline', { command: 'cat /proc/self/status' }],
    ['a terminal', { command: 'cat /proc/self/status', terminal: { rows: 24, columns: 80 } }],
    ['a session', { command: 'cat /proc/self/status', session: 'walls' }],
    ['a job', { command: 'cat /proc/self/status', background: true }],
    ['what it leaves behind', { command: 'setsid -f cat /proc/self/status; sleep 0.5' }],
  ])('two filters hold %s', async (_what, request) => {
    const command = await sandbox.run({ id: crypto.randomUUID().replaceAll('-', ''), ...request })
    const chunks = await Array.fromAsync(command.output, ({ data }) => Buffer.from(data))
    command.acknowledge((await command.exit).bytes)
    expect(Buffer.concat(chunks).toString()).toMatch(
      /NoNewPrivs:\t1\r?\nSeccomp:\t2\r?\nSeccomp_filters:\t2\r?\n/,
    )
  })
})

describe('the debug filter', () => {
  const TRACED = `perl -e 'my $c = fork || do { sleep 9; exit }; print syscall(-e "/lib/ld-linux-aarch64.so.1" ? 117 : 101, 16, $c, 0, 0) < 0 ? 0 + $! : "open"; kill 9, $c'; env | grep -c SBXD`

  const withoutMark = (body: { Env: string[] }): void => {
    body.Env = body.Env.filter((line) => !line.startsWith('SBXD_PROFILE='))
  }

  /** The answer to ptrace with these words of the engine’s side and of the controller. */
  async function traced(
    user: string,
    word: SandboxProfile,
    loosen: Parameters<typeof looseBackend>[1] = () => {},
  ): Promise<string> {
    const ledger = createFileLedger(`${fixture.folder}/${user}.json`)
    const backend = looseBackend(fixture, loosen)
    const making = fixture.controller({ backend, ledger, profileFor: () => 'debug' })
    await making.acquire(user)
    const asking = fixture.controller({ backend, ledger, profileFor: () => word })
    return (await shell(await asking.acquire(user), TRACED)).output
  }

  test('is had by two words, the engine’s and the controller’s', async () => {
    expect(await traced('both', 'debug')).toBe('open0\n')
    expect(await traced('engine-only', 'default')).toBe('10\n')
  })

  test('has the mark of a Pod in an argument', async () => {
    const asInPod: Parameters<typeof looseBackend>[1] = (body) => {
      withoutMark(body)
      body.Cmd = ['--profile', 'debug']
    }
    expect(await traced('pod', 'debug', asInPod)).toBe('open0\n')
  })

  test('is not had without the engine’s mark, although the engine’s own filter is the looser one', async () => {
    expect(await traced('unmarked', 'debug', withoutMark)).toBe('10\n')
  })
})

describe('the filters of the image', () => {
  let compiler: FilterCompiler
  beforeAll(async () => {
    compiler = await FilterCompiler.build()
  })
  afterAll(() => compiler.dispose())

  test.each(['default', 'debug'] as const)(
    '%s: answers as the profile that the engine gets',
    async (profile) => {
      const { stdout } = await run(
        'docker',
        [
          'run',
          '--rm',
          '--network=none',
          '--entrypoint=cat',
          testConfig.image,
          `/usr/lib/sandlot/${profile}.bpf`,
        ],
        { encoding: 'buffer' },
      )
      const names = await compiler.names(ownArchitecture)
      const numbers = new Map([...names].map(([number, name]) => [name, number]))
      const ours = new CompiledFilter(ownArchitecture, stdout, numbers)
      const reference = await compiler.compile(await readSeccompProfile(profile), ownArchitecture)
      const argument = fc.oneof(
        fc.bigInt({ min: 0n, max: 64n }),
        fc.nat(31).map((bit) => 1n << BigInt(bit)),
        fc.constantFrom(0x5412n, 0x541cn, 0x5423n, 0x40000n, 0xffffffffn, 2114060288n),
        fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      )
      fc.assert(
        fc.property(fc.array(argument, { minLength: 6, maxLength: 6 }), (args) => {
          for (const name of names.values())
            expect(ours.byName(name, ...args), name).toBe(reference.byName(name, ...args))
        }),
        { numRuns: extent(60, 600) },
      )
      const ENOSYS = 38
      expect(ours.byNumber(Math.max(...names.keys()) + 1)).toBe(ENOSYS)
    },
  )
})

test.each([
  ['no filter', ['--tmpfs=/usr/lib/sandlot'], [], /sbxd: \/usr\/lib\/sandlot\/default\.bpf: No such file/],
  ['a profile that there is not', [], ['--profile', 'root'], /sbxd: --profile: Invalid argument/],
  ['a limit that is no number', [], ['--limit-nofile', '4k'], /sbxd: --limit-nofile: Invalid argument/],
])('sbxd does not start with %s', async (_what, options, args, words) => {
  const started = docker('run', '--rm', '--network=none', ...options, testConfig.image, ...args)
  await expect(started).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(words) })
})
