import { randomInt } from 'node:crypto'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SANDBOX_BACKENDS } from '@sandlot/shared/config/sandbox-backends'
import { systemPackages, type SystemPackages } from '../setup/apt.ts'
import type { CliConfig } from '../config.ts'
import type { Command } from '../context.ts'
import { findProgram } from '../programs/find-program.ts'
import { runInteractive } from '../programs/run-interactive.ts'
import { setUp } from '../setup/setup.ts'
import { succeeds } from '../programs/run.ts'
import { seconds, type Step, StepError } from '../steps.ts'
import { listenForStop } from '../processes/stop-signals.ts'
import { nextToCluster } from '../testing/next-to-cluster.ts'
import { removeTestLeftovers } from '../testing/leftovers.ts'
import {
  closingLine,
  closingLines,
  countCheck,
  type Counts,
  countVitest,
  failedFiles,
  failureLines,
  readVitestRun,
  secondTry,
  skipLines,
  sum,
  type VitestRun,
} from '../testing/summary.ts'

const POSTGRES_PROGRAM = '/usr/lib/postgresql/*/bin/initdb'
/** Path of libFuzzer on Debian, for sbxd. */
const FUZZER_LIBRARY = '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a'

const CLOCK_LIBRARY = '/usr/lib/*/faketime/libfaketime.so.1'
/** Tests of a full run that are repeated with the clock of their processes 400 days ahead. */
const AHEAD = [
  { project: 'unit', options: [] },
  { project: 'e2e', options: ['test/e2e/older-data.e2e.test.ts'] },
] as const

const REPORTER = fileURLToPath(new URL('../testing/reporter.ts', import.meta.url))

/** Checks that count as one test each, cheapest first. */
const CHECKS = [
  { name: 'format', command: 'oxfmt', args: ['--check'] },
  { name: 'weight', command: process.execPath, args: ['--conditions=sandlot-source', 'test/weigh.ts'] },
  { name: 'lint', command: 'oxlint', args: ['--type-aware'] },
  { name: 'types', command: 'tsc', args: ['-p', 'tsconfig.json'] },
] as const

/** Runs of vitest; the projects of one share its workers. */
const RUNS = [['unit'], ['engine', 'e2e'], ['cluster']] as const

/** Files of tests on a cluster, by a part of their names, that an ordinary run has time for. */
const QUICK_ON_CLUSTER = [
  'kubernetes/kubernetes.cluster',
  'kubernetes/policy.cluster',
  'kubernetes/proof.cluster',
  'cluster/chart',
]
const ON_CLUSTER = '{packages/*/test,test}/**/*.cluster.test.ts'
/** Files of failures on a cluster, and how many of them an ordinary run draws by its seed. */
const FAILURES_ON_CLUSTER = /\/failures\/kubernetes\/|\/replicas\/|\/copies\.cluster/
const DRAWN_FAILURES = 2
const USAGE =
  './sandlot test [--full], or ./sandlot test kubernetes [--context NAME --image REFERENCE] [file…]'

/**
 * Prepares the machine and runs every test. The last line counts them, the one before the unsteady
 * files. With `kubernetes` it runs only the tests on a cluster, all samples of them.
 */
export const test: Command = async ({ config, args, steps, print }) => {
  const onCluster = args[0] === 'kubernetes'
  const unknown = onCluster ? undefined : args.find((arg) => arg !== '--full')
  if (unknown !== undefined) {
    print(`Unknown argument "${unknown}". Usage: ${USAGE}`)
    return 2
  }
  using stop = listenForStop()
  const packages = systemPackages(config, stop.signal)
  const full = onCluster || args.includes('--full')
  await steps.run('Programs for tests', (step) => installTestPrograms(config, packages, step, full))
  await setUp(config, steps, packages, stop.signal)
  const seed = config.testSeed ?? randomInt(2 ** 31 - 1)
  const environment = testEnvironment(config, seed, full)
  const inRoot = { cwd: config.root, environment }
  if (onCluster) return testKubernetes(args.slice(1), inRoot)
  print(
    `Seed ${seed}. To draw the same samples: SANDLOT_TEST_SEED=${seed} ./sandlot test${full ? ' --full' : ''}`,
  )

  const results: { name: string; counts: Counts; ms: number }[] = []
  const measure = async (name: string, work: () => Promise<Counts>): Promise<void> => {
    stop.signal.throwIfAborted()
    print(`\n── ${name}`)
    const started = performance.now()
    results.push({ name, counts: await work(), ms: performance.now() - started })
  }
  const skips: string[] = []
  const failures: string[] = []
  const unsteady: string[] = []
  const hasCluster = await buildPeers(inRoot)
  if (!hasCluster) skips.push('skipped every test on a cluster: the reason is above')
  for (const { name, command, args: options } of CHECKS) {
    await measure(name, async () => countCheck(await runInteractive(command, [...options], inRoot)))
  }
  for (const projects of RUNS.filter(([project]) => project !== 'cluster' || hasCluster)) {
    await measure(projects.join(', '), async () => {
      const isQuick = projects.some((project) => project === 'cluster') && !full
      const chosen = isQuick ? chooseOnCluster(config.root, seed) : { files: [], left: [] }
      skips.push(...chosen.left.map((file) => `skipped ${file}: ./sandlot test kubernetes has it`))
      const first = await runVitest(projects, inRoot, chosen.files)
      const run = full ? first : await tryAgain(projects, first, inRoot, unsteady)
      skips.push(...skipLines(run))
      failures.push(...failureLines(run))
      return countVitest(run)
    })
  }
  if (full) {
    const ahead = { ...inRoot, environment: { ...environment, ...clockAhead() } }
    for (const { project, options } of AHEAD)
      await measure(`${project}, 400 days ahead`, async () => {
        const run = await runVitest([project], ahead, options)
        failures.push(...failureLines(run))
        return countVitest(run)
      })
  }
  if (SANDBOX_BACKENDS[config.backend].needsEngine)
    await steps.run('Remove leftovers of interrupted tests', (step) => removeTestLeftovers(config, step))

  print('')
  for (const { name, counts, ms } of results)
    print(`${name.padEnd(11)} ${closingLine(counts)}  (${seconds(ms)})`)
  const total = sum(results.map(({ counts }) => counts))
  const fromRoot = (text: string): string => text.replaceAll(`${config.root}/`, '')
  for (const line of [...skips, ...closingLines(failures, unsteady, total)]) print(fromRoot(line))
  return total.failed === 0 ? 0 : 1
}

/** Files of an ordinary run on a cluster: the quick ones, and failures drawn by the seed. */
function chooseOnCluster(root: string, seed: number): { files: string[]; left: string[] } {
  const all = globSync(ON_CLUSTER, { cwd: root }).toSorted()
  const failures = all.filter((file) => FAILURES_ON_CLUSTER.test(file))
  const turned = failures.map((_, place) => failures[(seed + place) % failures.length] ?? '')
  const drawn = turned.slice(0, DRAWN_FAILURES)
  const isChosen = (file: string): boolean =>
    drawn.includes(file) || QUICK_ON_CLUSTER.some((part) => file.includes(part))
  return { files: all.filter(isChosen), left: all.filter((file) => !isChosen(file)) }
}

/** Only the tests on a cluster, of our own or a given one; further words are files for vitest. */
function testKubernetes(args: string[], inRoot: InRoot): Promise<number> {
  const command = nextToCluster(args, (files) => ['vitest', 'run', '--project', 'cluster', ...files])
  return runInteractive(process.execPath, command, inRoot)
}

/**
 * Builds programs by others, once a machine; without one, its tests are skipped. False without
 * those of a Kubernetes.
 */
async function buildPeers(inRoot: InRoot): Promise<boolean> {
  const build = (file: string): Promise<number> =>
    runInteractive(process.execPath, ['--conditions=sandlot-source', file], inRoot)
  await build('packages/ai-agent/test/peers/build.ts')
  return (await build('test/cluster/build.ts')) === 0
}

/**
 * Installs missing programs: a compiler and clang for sbxd's tests, libseccomp to compile the
 * system call profile, git for the rules of the repository, ripgrep for the search tools on
 * local-process.
 */
async function installTestPrograms(
  config: CliConfig,
  packages: SystemPackages,
  step: Step,
  full: boolean,
): Promise<void> {
  const has = (program: string): boolean => findProgram(program, config.environment) !== undefined
  const missing = [
    ...(has('chromium') || has('chromium-browser') || has('google-chrome') ? [] : ['chromium']),
    ...(has('gcc') && existsSync('/usr/include/stdlib.h') ? [] : ['gcc', 'libc6-dev']),
    ...(existsSync('/usr/include/seccomp.h') ? [] : ['libseccomp-dev']),
    ...['make', 'git', 'clang'].filter((program) => !has(program)),
    ...(has('rg') ? [] : ['ripgrep']),
    ...(has('initdb') || globSync(POSTGRES_PROGRAM).length > 0 ? [] : ['postgresql']),
    ...(full && globSync(CLOCK_LIBRARY).length === 0 ? ['faketime'] : []),
  ]
  // Its test is skipped without it: some distributions have none.
  const composes =
    has('docker-compose') || (await succeeds('docker', ['compose', 'version'], config.environment))
  // The stores are also tested through it, if it is there.
  const pooler = has('pgbouncer') || existsSync('/usr/sbin/pgbouncer') ? [] : ['pgbouncer']
  // Other runtimes, seven megabytes, only as root; without one, its tests are skipped.
  const runtimes = process.getuid?.() === 0 ? ['crun', 'runsc'].filter((program) => !has(program)) : []
  // Parts of a Kubernetes, only as root; without one, its tests are skipped. An engine has brought
  // its own containerd.
  const cluster =
    process.getuid?.() === 0
      ? [
          ...(has('etcd') ? [] : ['etcd-server']),
          ...(has('containerd') ? [] : ['containerd']),
          ...(existsSync('/usr/lib/cni/bridge') ? [] : ['containernetworking-plugins']),
          ...(has('nft') ? [] : ['nftables']),
          ...(has('ip') ? [] : ['iproute2']),
        ]
      : []
  // The package of bookworm; elsewhere it is part of clang or has another number. Without it,
  // fuzzing is skipped.
  const fuzzer = globSync(FUZZER_LIBRARY).length > 0 ? [] : ['libclang-rt-14-dev']
  // It halves the cost of browser tests.
  const shell = has('chromium-headless-shell') ? [] : ['chromium-headless-shell']
  const optional = [
    ...shell,
    ...(composes ? [] : ['docker-compose']),
    ...pooler,
    ...runtimes,
    ...cluster,
    ...fuzzer,
  ]
  if (missing.length + optional.length > 0) await packages.install(missing, step, optional)
  else step.result('already installed')
}

/**
 * Tests get no setting of this deployment: with a key from `.env` they would call a real model,
 * with its data folder write into it.
 */
function testEnvironment(config: CliConfig, seed: number, full: boolean): Record<string, string> {
  const kept = Object.entries(config.environment).filter(
    ([name, value]) =>
      value !== undefined && !/^(SANDLOT_|OPENAI_|DATABASE_URL|PORT$|HOST$|LOG_LEVEL)/.test(name),
  )
  return {
    ...Object.fromEntries(kept.map(([name, value]) => [name, value ?? ''])),
    SANDLOT_TEST_SEED: String(seed),
    SANDLOT_TEST_FULL: String(full),
  }
}

/** Sets the clock of the tests and of the processes that they start. */
function clockAhead(): Record<string, string> {
  const [library] = globSync(CLOCK_LIBRARY)
  if (library === undefined)
    throw new StepError('faketime is missing.', 'Install it: apt-get install faketime')
  return { LD_PRELOAD: library, FAKETIME: '+400d', DONT_FAKE_MONOTONIC: '1' }
}

interface InRoot {
  cwd: string
  environment: Record<string, string>
}

/** More failed files than this are not chance. */
const SECOND_TRIES = 4

/**
 * Runs failed files a second time, alone: on a busy machine, some of thousands of real processes
 * are late. Files that pass only then are listed at the end, to be fixed.
 */
async function tryAgain(
  projects: readonly string[],
  first: VitestRun,
  inRoot: InRoot,
  unsteady: string[],
): Promise<VitestRun> {
  const failed = failedFiles(first)
  if (failed.length === 0 || failed.length > SECOND_TRIES) return first
  const again = await runVitest(projects, inRoot, ['--no-file-parallelism', ...failed])
  const still = new Set(failedFiles(again))
  if (again.errors.length === 0)
    unsteady.push(...failed.filter((file) => again.files.has(file) && !still.has(file)))
  return secondTry(first, again)
}

/** `options` of vitest may name files, which are then the only ones. */
async function runVitest(
  projects: readonly string[],
  inRoot: InRoot,
  options: readonly string[] = [],
): Promise<VitestRun> {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-test-'))
  const file = join(folder, 'report.json')
  try {
    const args = [
      'run',
      ...options,
      ...projects.flatMap((project) => ['--project', project]),
      '--reporter=default',
      `--reporter=${REPORTER}`,
    ]
    const environment = { ...inRoot.environment, SANDLOT_TEST_REPORT: file }
    const vitest = ['vitest', ...args]
    const [program = '', ...rest] = projects.includes('cluster')
      ? [process.execPath, ...nextToCluster([], () => vitest)]
      : vitest
    const exitCode = await runInteractive(program, rest, { ...inRoot, environment })
    return readVitestRun(existsSync(file) ? readFileSync(file, 'utf8') : undefined, exitCode)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
