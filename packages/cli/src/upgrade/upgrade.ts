/** One upgrade from its first step to its last, or back. */
import { spawn } from 'node:child_process'
import { constants, cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { recordFile } from '../processes/children.ts'
import { down } from '../commands/down.ts'
import type { CliConfig } from '../config.ts'
import type { Context } from '../context.ts'
import { dumpDatabase, refuseOthers, replaceDatabase } from '../deployment/database.ts'
import { readRecord } from '../processes/pid-file.ts'
import { isRunning } from '../processes/process-mark.ts'
import { isOnPostgres } from '../deployment/replicas.ts'
import { askReadiness } from '../deployment/ready.ts'
import { runInteractive } from '../programs/run-interactive.ts'
import { StepError } from '../steps.ts'
import { attachBranch, switchTo, type Versions } from './checkout.ts'
import { enter, type Journal, leave } from './journal.ts'

/** From the moment that the processes run; what is built before takes its time. */
const READY_MS = 90_000
const LOOK_MS = 200

type State = Omit<Journal, 'owner' | 'checkout'>

/**
 * Backup, stop, copy of the data, new version, start, check; back where it does not become ready.
 * Stays as long as the Sandlot runs that it has started. Returns the exit code.
 */
export async function upgrade(
  context: Context,
  versions: Versions,
  { withBackup }: { withBackup: boolean },
): Promise<number> {
  const { config, steps } = context
  const record = readRecord(recordFile(config))
  const wasRunning = record !== undefined && isRunning(record.up)
  const replicas = wasRunning ? record.replicas : undefined
  const state: State = { step: 'backup', ...versions, data: config.data, wasRunning, replicas }
  enter(config.root, state)
  try {
    if (withBackup) await makeBackup(config)
    enter(config.root, { ...state, step: 'stop' })
    await down({ ...context, args: [] })
    enter(config.root, { ...state, step: 'copy' })
    await steps.run('Copy of the data', () => keepData(config))
  } catch (error) {
    dropCopy(config.data)
    leave(config.root)
    throw error
  }
  return switchAndStart(context, state)
}

/**
 * Finishes or undoes what a killed upgrade began. Returns the exit code, or undefined where it had
 * changed nothing and is forgotten.
 */
export async function continueUpgrade(context: Context, left: Journal): Promise<number | undefined> {
  const { config, steps } = context
  if (left.data !== config.data)
    throw new StepError(
      `An upgrade of this clone with the data folder ${left.data} was interrupted.`,
      `Finish that first: SANDLOT_DATA=${left.data} ./sandlot up`,
    )
  switch (left.step) {
    case 'backup':
    case 'stop':
    case 'copy':
      dropCopy(config.data)
      leave(config.root)
      steps.note(`An upgrade to ${left.to.name} was interrupted before it had changed anything.`)
      return undefined
    case 'switch':
    case 'start':
      steps.note(`An upgrade to ${left.to.name} was interrupted; it goes on.`)
      return switchAndStart(context, left)
    case 'undo':
    case 'restart':
      steps.note(`The way back to ${left.from.name} was interrupted; it goes on.`)
      return goBack(context, left, 'it did not become ready')
  }
}

/** By the version that is here, as an operator would. */
async function makeBackup(config: CliConfig): Promise<void> {
  const code = await runInteractive(join(config.root, 'sandlot'), ['backup'], {
    cwd: config.root,
    environment: config.environment,
  })
  if (code === 0) return
  throw new StepError(
    'No backup was made, so nothing was upgraded.',
    'What it said is above. To go on without one: ./sandlot upgrade --without-backup',
  )
}

async function switchAndStart(context: Context, state: State): Promise<number> {
  const { config, steps, print } = context
  const { from, to } = state
  enter(config.root, { ...state, step: 'switch' })
  await steps.run(`Version ${to.name}`, () => switchTo(config, to.commit))
  enter(config.root, { ...state, step: 'start' })
  const started = await startAndCheck(config, state)
  if (started.problem !== undefined) return goBack(context, state, started.problem)
  if (state.movesBranch && from.branch !== undefined) await attachBranch(config, from.branch, to.commit)
  leave(config.root)
  dropCopy(config.data)
  print(`Sandlot was upgraded from ${from.name} to ${to.name}.`)
  if (!state.wasRunning) await down({ ...context, args: [] })
  return started.ended
}

async function goBack(context: Context, state: State, problem: string): Promise<number> {
  const { config, steps, print } = context
  const { from, to } = state
  enter(config.root, { ...state, step: 'undo' })
  await down({ ...context, args: [] })
  await steps.run(`Back to ${from.name}, with its data`, async () => {
    await switchTo(config, from.commit)
    if (from.branch !== undefined) await attachBranch(config, from.branch, from.commit)
    await putDataBack(config)
  })
  enter(config.root, { ...state, step: 'restart' })
  const again = state.wasRunning ? await startAndCheck(config, state) : undefined
  leave(config.root)
  print(`${to.name} was not taken over: ${problem}.`)
  if (again?.problem !== undefined)
    throw new StepError(
      `${from.name} is here again, with its data, and does not become ready either: ${again.problem}.`,
      './sandlot doctor looks for the reason.',
    )
  print(`Sandlot is ${from.name} again, with all that it had.`)
  await again?.ended
  return 1
}

interface Started {
  /** Why it is not ready; undefined: it is. */
  problem: string | undefined
  /** Its exit code, once it has ended; of one that was running already: 0 at once. */
  ended: Promise<number>
}

/** Starts the version that is checked out, by its own launcher, unless it runs already. */
async function startAndCheck(config: CliConfig, { replicas }: Pick<State, 'replicas'>): Promise<Started> {
  const several = replicas === undefined ? [] : ['--replicas', String(replicas)]
  const running = readRecord(recordFile(config))
  const child =
    running !== undefined && isRunning(running.up)
      ? undefined
      : spawn(join(config.root, 'sandlot'), ['up', ...several], {
          cwd: config.root,
          env: config.environment,
          stdio: 'inherit',
        })
  // From a terminal the child gets Ctrl-C itself; this process only outlives it.
  const forward = (signal: NodeJS.Signals): void => {
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child?.kill(signal)
  }
  const names: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const name of names) process.on(name, forward)
  let code: number | undefined
  const ended = new Promise<number>((resolve) => {
    if (child === undefined) resolve(0)
    child?.once('error', () => resolve(127)).once('close', (number) => resolve(number ?? 1))
  }).then((number) => {
    for (const name of names) process.off(name, forward)
    return (code = number)
  })
  let readyBy = Infinity
  for (;;) {
    if (child !== undefined && code !== undefined) return { problem: `it ended with ${code}`, ended }
    const record = readRecord(recordFile(config))
    const alive = record !== undefined && isRunning(record.up)
    if (alive && (await askReadiness(record.url))?.ready === true) return { problem: undefined, ended }
    // The service is the last to start: from then on nothing is built any more.
    if (
      readyBy === Infinity &&
      Object.keys(record?.children ?? {}).some((name) => name.startsWith('service'))
    )
      readyBy = performance.now() + READY_MS
    if (performance.now() > readyBy || (child === undefined && !alive))
      return { problem: `it was not ready within ${READY_MS / 1000} seconds`, ended }
    await sleep(LOOK_MS)
  }
}

/** The data of the version before, in the data folder, until the new version is ready. */
const FOLDER = 'before-upgrade'
/** Made anew at each start, or not changed by a version: people's files stay where they are. */
const NOT_COPIED =
  /^(run|replicas|log|backups|workspaces|restored-settings|before-upgrade.*|.*\.db-shm|.*\.db\.before-.*)$/

/** Of both schemas, where they are on PostgreSQL. */
const DUMP = 'postgres.dump'

/** Only while Sandlot is down. What an interrupted copy left is replaced. */
async function keepData(config: CliConfig): Promise<void> {
  const { data } = config
  const draft = join(data, `${FOLDER}.partial`)
  dropCopy(data)
  if (isOnPostgres(config)) {
    await refuseOthers(config)
    mkdirSync(draft, { recursive: true, mode: 0o700 })
    await dumpDatabase(config, join(draft, DUMP))
  }
  for (const name of readdirSync(data)) {
    if (NOT_COPIED.test(name)) continue
    cpSync(join(data, name), join(draft, name), {
      recursive: true,
      preserveTimestamps: true,
      verbatimSymlinks: true,
      // Shares the blocks where the file system can.
      mode: constants.COPYFILE_FICLONE,
      // Sockets of running servers, if any were left.
      filter: (path) => !path.endsWith('.sock'),
    })
  }
  renameSync(draft, join(data, FOLDER))
}

/** The copy takes the place of what is there, one file after another; a second call goes on. */
async function putDataBack(config: CliConfig): Promise<void> {
  const { data } = config
  const folder = join(data, FOLDER)
  if (!existsSync(folder)) return
  const dump = join(folder, DUMP)
  if (existsSync(dump)) {
    await replaceDatabase(config, dump)
    rmSync(dump)
  }
  // A log comes after its database, which takes the newer log away.
  for (const name of readdirSync(folder).toSorted()) {
    const log = name.endsWith('.db') ? [`${name}-wal`, `${name}-shm`] : []
    for (const old of [name, ...log]) rmSync(join(data, old), { recursive: true, force: true })
    renameSync(join(folder, name), join(data, name))
  }
  dropCopy(data)
}

function dropCopy(data: string): void {
  for (const name of [`${FOLDER}.partial`, FOLDER]) rmSync(join(data, name), { recursive: true, force: true })
}
