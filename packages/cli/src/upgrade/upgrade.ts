/** Runs an upgrade, or its rollback. */
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

/** Counted from the start of the service: building before it may take longer. */
const READY_MS = 90_000
const POLL_MS = 200

type State = Omit<Journal, 'owner' | 'checkout'>

/**
 * Backs up, stops, copies the data, switches, starts and checks; rolls back if the new version does
 * not become ready. Runs as long as the Sandlot that it has started. Returns the exit code.
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
    await steps.run('Copy the data', () => copyData(config))
  } catch (error) {
    dropCopy(config.data)
    leave(config.root)
    throw error
  }
  return switchAndStart(context, state)
}

/**
 * Finishes or rolls back a killed upgrade. Returns the exit code; undefined if it had changed
 * nothing.
 */
export async function continueUpgrade(context: Context, left: Journal): Promise<number | undefined> {
  const { config, steps } = context
  if (left.data !== config.data)
    throw new StepError(
      `An upgrade of this clone with the data folder ${left.data} was interrupted.`,
      `Finish it first: SANDLOT_DATA=${left.data} ./sandlot up`,
    )
  switch (left.step) {
    case 'backup':
    case 'stop':
    case 'copy':
      dropCopy(config.data)
      leave(config.root)
      steps.note(`An upgrade to ${left.to.name} was interrupted before it changed anything.`)
      return undefined
    case 'switch':
    case 'start':
      steps.note(`Resuming the interrupted upgrade to ${left.to.name}.`)
      return switchAndStart(context, left)
    case 'undo':
    case 'restart':
      steps.note(`Resuming the interrupted rollback to ${left.from.name}.`)
      return goBack(context, left, 'it did not become ready')
  }
}

/** Runs `./sandlot backup` of the current version. */
async function makeBackup(config: CliConfig): Promise<void> {
  const code = await runInteractive(join(config.root, 'sandlot'), ['backup'], {
    cwd: config.root,
    environment: config.environment,
  })
  if (code === 0) return
  throw new StepError(
    'The backup failed, so nothing was upgraded.',
    'Its output is above. To upgrade without a backup: ./sandlot upgrade --without-backup',
  )
}

async function switchAndStart(context: Context, state: State): Promise<number> {
  const { config, steps, print } = context
  const { from, to } = state
  enter(config.root, { ...state, step: 'switch' })
  await steps.run(`Switch to ${to.name}`, () => switchTo(config, to.commit))
  enter(config.root, { ...state, step: 'start' })
  const started = await startAndCheck(config, state)
  if (started.problem !== undefined) return goBack(context, state, started.problem)
  if (state.movesBranch && from.branch !== undefined) await attachBranch(config, from.branch, to.commit)
  leave(config.root)
  dropCopy(config.data)
  print(`Upgraded Sandlot from ${from.name} to ${to.name}.`)
  if (!state.wasRunning) await down({ ...context, args: [] })
  return started.ended
}

async function goBack(context: Context, state: State, problem: string): Promise<number> {
  const { config, steps, print } = context
  const { from, to } = state
  enter(config.root, { ...state, step: 'undo' })
  await down({ ...context, args: [] })
  await steps.run(`Roll back to ${from.name} and its data`, async () => {
    await switchTo(config, from.commit)
    if (from.branch !== undefined) await attachBranch(config, from.branch, from.commit)
    await restoreData(config)
  })
  enter(config.root, { ...state, step: 'restart' })
  const again = state.wasRunning ? await startAndCheck(config, state) : undefined
  leave(config.root)
  print(`The upgrade to ${to.name} failed: ${problem}.`)
  if (again?.problem !== undefined)
    throw new StepError(
      `Rolled back to ${from.name} and its data, but it does not become ready either: ${again.problem}.`,
      'Run ./sandlot doctor to find the cause.',
    )
  print(`Rolled back to ${from.name}, with all its data.`)
  await again?.ended
  return 1
}

interface Started {
  /** Reason why it is not ready; undefined: it is. */
  problem: string | undefined
  /** Its exit code when it ends; 0 at once if it was already running. */
  ended: Promise<number>
}

/** Starts the checked-out version with its own launcher, unless it already runs. */
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
    if (child !== undefined && code !== undefined) return { problem: `it exited with code ${code}`, ended }
    const record = readRecord(recordFile(config))
    const alive = record !== undefined && isRunning(record.up)
    if (alive && (await askReadiness(record.url))?.ready === true) return { problem: undefined, ended }
    // The service starts last, after the build.
    if (
      readyBy === Infinity &&
      Object.keys(record?.children ?? {}).some((name) => name.startsWith('service'))
    )
      readyBy = performance.now() + READY_MS
    if (performance.now() > readyBy || (child === undefined && !alive))
      return { problem: `it was not ready within ${READY_MS / 1000} seconds`, ended }
    await sleep(POLL_MS)
  }
}

/** Copy of the old version's data, in the data folder, until the new version is ready. */
const FOLDER = 'before-upgrade'
/** Recreated at each start, or not changed by an upgrade, like users' files. */
const NOT_COPIED =
  /^(run|replicas|log|backups|workspaces|restored-settings|before-upgrade.*|.*\.db-shm|.*\.db\.before-.*)$/

/** Dump of both schemas, on PostgreSQL. */
const DUMP = 'postgres.dump'

/** Copies the data while Sandlot is down. Replaces an interrupted copy. */
async function copyData(config: CliConfig): Promise<void> {
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
      // Shares blocks if the file system supports it.
      mode: constants.COPYFILE_FICLONE,
      // Sockets cannot be copied.
      filter: (path) => !path.endsWith('.sock'),
    })
  }
  renameSync(draft, join(data, FOLDER))
}

/** Moves the copy back, file by file; a second call continues. */
async function restoreData(config: CliConfig): Promise<void> {
  const { data } = config
  const folder = join(data, FOLDER)
  if (!existsSync(folder)) return
  const dump = join(folder, DUMP)
  if (existsSync(dump)) {
    await replaceDatabase(config, dump)
    rmSync(dump)
  }
  // A log is moved after its database, whose move deletes the newer log.
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
