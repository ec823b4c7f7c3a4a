import { existsSync, lstatSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseEnv } from 'node:util'
import { SANDBOX_BACKENDS } from '@sandlot/shared/config/sandbox-backends'
import { SETTINGS } from '@sandlot/shared/config/settings'
import { runningRecord } from '../processes/children.ts'
import type { CliConfig } from '../config.ts'
import type { Context } from '../context.ts'
import { requireDeployment } from '../deployment/deployment.ts'
import { findProgram } from '../programs/find-program.ts'
import { askReadiness, openableUrl } from '../deployment/ready.ts'
import { run } from '../programs/run.ts'
import { StepError } from '../steps.ts'
import { UNIT_MARK, unitText } from './unit.ts'

const USAGE = 'Usage: ./sandlot install [--print|--remove]'
const UNIT = 'sandlot.service'
const STANDARD_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const READY_MS = 300_000
const ENGINE_SOCKET = '/var/run/docker.sock'

/** Folder of an operator's units, and the folder that exists while systemd runs. */
interface SystemdPlaces {
  units: string
  running: string
}
export const SYSTEMD: SystemdPlaces = { units: '/etc/systemd/system', running: '/run/systemd/system' }

/** `./sandlot install`. Returns the exit code. */
export async function installUnit(context: Context, places: SystemdPlaces): Promise<number> {
  const { args, print } = context
  const [option, ...more] = args
  if (more.length > 0 || (option !== undefined && option !== '--print' && option !== '--remove')) {
    print(USAGE)
    return 2
  }
  const file = join(places.units, UNIT)
  if (option === '--remove') {
    requireSystemd(places)
    return remove(context, file)
  }
  const text = unitOf(context.config)
  if (option === '--print') {
    print(text.trimEnd())
    return 0
  }
  requireSystemd(places)
  return write(context, file, text)
}

/**
 * Stops the unit of this checkout. Returns a function that starts it again; undefined if no unit
 * runs.
 * @throws StepError without permission, or if the upgrade would create files the unit cannot write.
 */
export async function stopUnit(
  context: Context,
  { units, running }: SystemdPlaces,
): Promise<(() => Promise<void>) | undefined> {
  const { root, data } = context.config
  const file = join(units, UNIT)
  const isOurs = existsSync(file) && readFileSync(file, 'utf8').startsWith(`${UNIT_MARK}${root}\n`)
  if (!existsSync(running) || !isOurs || !(await isActive(context))) return undefined
  if (process.getuid?.() !== 0 || statSync(data).uid !== 0)
    throw new StepError(
      'systemd runs this Sandlot: root must stop and start it, and the owner of its files must upgrade it. Nothing was done.',
      `As root: systemctl stop sandlot. As ${personOf(statSync(data).uid).name}: this command again. As root: systemctl start sandlot.`,
    )
  await systemctl(context, 'stop', UNIT)
  return () => systemctl(context, 'start', UNIT)
}

function requireSystemd({ running, units }: SystemdPlaces): void {
  if (!existsSync(running))
    throw new StepError(
      'This machine does not use systemd, so there is nothing to install.',
      'Configure your init system to run ./sandlot up at boot, as the user who runs it now (./sandlot install --print shows a unit). With compose, containers start with the engine.',
    )
  if (process.getuid?.() !== 0)
    throw new StepError(`Writing ${join(units, UNIT)} needs root.`, 'Run the same command as root.')
}

/** @throws StepError before the first `up`, which may have to install packages: the unit cannot. */
function unitOf(config: CliConfig): string {
  requireDeployment(config)
  const { uid, gid } = statSync(config.data)
  const { name: user, home } = personOf(uid)
  const launcher = join(config.root, 'sandlot')
  const set = config.environment['SANDLOT_BACKUP_DIR'] ?? ''
  const backups = set === '' ? undefined : resolve(config.root, set)
  const special = [config.root, config.data, config.keys, backups ?? ''].find((path) =>
    /[\s"'\\%$;:]/.test(path),
  )
  if (special !== undefined)
    throw new StepError(
      `A unit cannot contain the path ${special}: it has a space or a special character of systemd.`,
      'Move it to a path without one.',
    )
  if (!existsSync(launcher))
    throw new StepError(`${launcher} is missing.`, 'Run the command from the checkout.')
  return unitText({
    root: config.root,
    data: config.data,
    keys: config.keys,
    backups,
    user,
    home,
    group: groupOf(gid),
    moreGroups: uid === 0 || config.dockerHost !== undefined ? [] : engineGroup(),
    path: programPath(config),
    localEngine: config.dockerHost === undefined && SANDBOX_BACKENDS[config.backend].needsEngine,
    port: config.port,
  })
}

/** The group of the engine's socket. */
function engineGroup(): string[] {
  try {
    const { gid } = statSync(ENGINE_SOCKET)
    return gid === 0 ? [] : [groupOf(gid)]
  } catch {
    return [] // no engine yet
  }
}

/** @throws StepError for a user that is not in /etc/passwd. */
function personOf(uid: number): { name: string; home: string } {
  const row = rowOf('passwd', uid)
  const [name, home] = [row?.[0], row?.[5]]
  if (name !== undefined && home !== undefined) return { name, home }
  throw new StepError(
    `The data folder belongs to user ${uid}, who is not in /etc/passwd.`,
    'Change the owner of the checkout and the data folder to a user of this machine (chown -R).',
  )
}

function groupOf(gid: number): string {
  return rowOf('group', gid)?.[0] ?? String(gid)
}

function rowOf(table: 'passwd' | 'group', id: number): string[] | undefined {
  const rows = readFileSync(`/etc/${table}`, 'utf8').split('\n')
  return rows.map((row) => row.split(':')).find((row) => row[2] === String(id))
}

/** The standard PATH, and the folder of Node if that is elsewhere. */
function programPath({ environment, root }: CliConfig): string {
  const folders = (environment['PATH'] ?? '').split(':').filter((folder) => !folder.startsWith(root))
  const found = findProgram('npx', { PATH: folders.join(':') })
  const own = found === undefined ? [] : [dirname(found)]
  return [...new Set([...own.filter((folder) => folder !== '/bin'), ...STANDARD_PATH.split(':')])].join(':')
}

async function write(context: Context, file: string, text: string): Promise<number> {
  const { config, steps, print } = context
  const before = readOurs(file, config)
  print(`${file}:\n\n${text}`)
  const elsewhere = setElsewhere(config)
  if (elsewhere.length > 0)
    steps.note(
      `! The unit does not have these settings, which are set in this shell but not in .env: ${elsewhere.join(', ')}`,
    )
  if (before === text) steps.note('The unit is already installed and unchanged.')
  else writeFileSync(file, text, { mode: 0o644 })
  await systemctl(context, 'daemon-reload')
  const byHand = runningRecord(config) !== undefined && !(await isActive(context))
  await systemctl(context, 'enable', ...(byHand ? [] : ['--now']), UNIT)
  if (byHand) {
    print(
      'Sandlot will start at boot. It now runs outside systemd; to switch: ./sandlot down && systemctl start sandlot',
    )
    return 0
  }
  const url = openableUrl(config.host, config.port)
  await steps.run('Start', () => answers(url))
  print(`Sandlot runs at ${url} and will start at boot. Its log: journalctl -u sandlot`)
  if (before !== undefined && before !== text)
    print('The unit has changed; apply it with systemctl restart sandlot.')
  return 0
}

/** Waits for an answer: the first start may have to build. */
async function answers(url: string): Promise<void> {
  const deadline = performance.now() + READY_MS
  while ((await askReadiness(url)) === undefined) {
    if (performance.now() > deadline)
      throw new StepError(
        `${url} did not answer within ${READY_MS / 1000} seconds.`,
        'See: systemctl status sandlot, and journalctl -u sandlot -n 50',
      )
    await sleep(500)
  }
}

async function remove(context: Context, file: string): Promise<number> {
  const { config, print } = context
  if (readOurs(file, config) === undefined) {
    print(`${file} does not exist; nothing was removed.`)
    return 0
  }
  await systemctl(context, 'disable', '--now', UNIT)
  rmSync(file)
  await systemctl(context, 'daemon-reload')
  print(`Removed ${file}. Sandlot is stopped and no longer starts at boot; all data is kept.`)
  return 0
}

/** @throws StepError for a unit of another checkout, or one written by hand. */
function readOurs(file: string, { root }: CliConfig): string | undefined {
  if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return undefined
  const text = readFileSync(file, 'utf8')
  const [first = ''] = text.split('\n')
  if (first === `${UNIT_MARK}${root}`) return text
  throw new StepError(
    first.startsWith(UNIT_MARK)
      ? `${file} belongs to another Sandlot, in ${first.slice(UNIT_MARK.length)}.`
      : `${file} was not written by this command.`,
    'Remove it first, with ./sandlot install --remove in that checkout or by hand.',
  )
}

/** Settings of this shell that are not in `.env`, which is all that a unit reads. */
function setElsewhere({ environment, root }: CliConfig): string[] {
  const file = join(root, '.env')
  const inFile = existsSync(file) ? parseEnv(readFileSync(file, 'utf8')) : {}
  const isSetting = (name: string): boolean =>
    name.replace(/_FILE$/, '') in SETTINGS || name.startsWith('DOCKER_')
  return Object.entries(environment).flatMap(([name, value]) =>
    value === undefined || !isSetting(name) || name in inFile || isOwn(name, value, root) ? [] : [name],
  )
}

/** True for a variable that this launcher has set. */
function isOwn(name: string, value: string, root: string): boolean {
  const filledIn = ['SANDLOT_ENV_FILE_NAMES', 'SANDLOT_OTHER_SETTINGS']
  return filledIn.includes(name) || (name === 'SANDLOT_DATA' && value === join(root, '.sandlot'))
}

async function isActive({ config }: Context): Promise<boolean> {
  const state = await run('systemctl', ['is-active', UNIT], {
    cwd: '/',
    environment: config.environment,
    fix: 'See: systemctl status sandlot',
    alsoGood: [3, 4],
  })
  return state.trim() === 'active'
}

async function systemctl({ config, steps }: Context, ...args: string[]): Promise<void> {
  await steps.run(`systemctl ${args.join(' ')}`, () =>
    run('systemctl', args, {
      cwd: '/',
      environment: config.environment,
      fix: 'See: journalctl -u sandlot -n 50',
    }),
  )
}
