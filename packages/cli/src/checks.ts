import { accessSync, constants, existsSync, readFileSync, statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { check, failed, type Finding, ok, report } from '@sandlot/sandbox/controller/finding'
import { messageOf } from '@sandlot/shared/errors'
import { auditChains } from '@sandlot/shared/office/audit'
import { LOW_DISK_BYTES } from '@sandlot/shared/config/low-disk'
import { BACKUP_STATUS_FILE, type BackupStatus, backupStatus } from '@sandlot/shared/office/backup-status'
import { childEnvironment } from './child-env.ts'
import { recordFile } from './children.ts'
import type { CliConfig } from './config.ts'
import { databaseCheck } from './database.ts'
import { readRecord } from './pid-file.ts'
import { isRunning } from './processes.ts'
import { run } from './run.ts'
import { publicUrlCheck } from './public-url-check.ts'
import { isOnPostgres, serviceUrls } from './replicas.ts'
import { askReadiness, checkPortIsFree } from './ready.ts'
import { sandboxes } from './sandbox-checks.ts'
import { signInChecks } from './sign-in-checks.ts'
import { StepError } from './steps.ts'

function node(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return check('must', 'node', 'Node', major > 24 || (major === 24 && minor >= 11), {
    ok: process.version,
    bad: `${process.version} is too old; 24.11 is needed`,
    fix: 'Run ./sandlot from the checkout: it brings its own Node.',
  })
}

function dataDirectory(config: CliConfig): Finding {
  const [id, name] = ['data', 'Data directory']
  const nearest = nearestExisting(config.data)
  try {
    accessSync(nearest, constants.W_OK | constants.X_OK)
  } catch (error) {
    return failed(
      'must',
      id,
      name,
      `${config.data} cannot be written (${messageOf(error)})`,
      'Give this user the folder, or set SANDLOT_DATA to another one.',
    )
  }
  const { bavail, bsize } = statfsSync(nearest)
  const gibibytes = (bavail * bsize) / 1024 ** 3
  const free = `${gibibytes.toFixed(gibibytes < 10 ? 1 : 0)} GiB free`
  return check('must', id, name, bavail * bsize >= LOW_DISK_BYTES, {
    ok: `${config.data}, ${free}${existsSync(config.data) ? '' : ' (made at the first start)'}`,
    bad: `${config.data} has only ${free}`,
    fix: 'Make room: docker system df shows what the engine holds.',
  })
}

function nearestExisting(path: string): string {
  return existsSync(path) || path === '/' ? path : nearestExisting(dirname(path))
}

function model(config: CliConfig): Finding {
  const [id, name] = ['model', 'Model']
  const has = (variable: string): boolean =>
    (config.environment[variable] ?? config.environment[`${variable}_FILE`] ?? '') !== ''
  if (has('OPENAI_MODEL')) return ok('must', id, name, config.environment['OPENAI_MODEL'] ?? 'from a file')
  if (has('OPENAI_API_KEY') || has('OPENAI_BASE_URL')) {
    return failed(
      'must',
      id,
      name,
      'A model key or address is set, but no model',
      'Set OPENAI_MODEL to the name of the model, or unset the others for the demo model.',
    )
  }
  return report(id, name, 'the demo model answers; set OPENAI_MODEL and OPENAI_API_KEY for a real one')
}

/** Nothing where Sandlot was never started: there is nothing to back up. */
function lastBackup(config: CliConfig): Finding[] {
  const [id, name] = ['backup', 'Last backup']
  const started = isOnPostgres(config) ? join('keys', 'deployment.json') : 'sessions.db'
  if (!existsSync(join(config.data, started))) return []
  const fix = './sandlot backup, or SANDLOT_BACKUP_EVERY_HOURS; docs/backup.md says how.'
  let status: BackupStatus
  try {
    status = backupStatus.parse(JSON.parse(readFileSync(join(config.data, BACKUP_STATUS_FILE), 'utf8')))
  } catch {
    return [failed('warn', id, name, 'none was ever made', fix)]
  }
  const { last, failed: problem } = status
  const made =
    last === undefined
      ? 'none was ever made'
      : `${last.at}, ${Math.ceil(last.bytes / 1024 ** 2)} MiB, read again whole: ${last.file}`
  if (problem !== undefined)
    return [failed('warn', id, name, `${made}; the one of ${problem.at} failed: ${problem.message}`, fix)]
  if (last === undefined || !existsSync(last.file))
    return [failed('warn', id, name, last === undefined ? made : `${made} is not there any more`, fix)]
  return [ok('warn', id, name, made)]
}

async function silentAmong(urls: readonly string[]): Promise<string[]> {
  const ready = await Promise.all(urls.map(async (url) => (await askReadiness(url))?.ready === true))
  return urls.filter((_, place) => ready[place] !== true)
}

async function running(config: CliConfig): Promise<Finding> {
  const [id, name] = ['running', 'Sandlot']
  const record = readRecord(recordFile(config))
  if (record === undefined || !isRunning(record.up)) {
    try {
      await checkPortIsFree(config.host, config.port)
      return ok('must', id, name, `not running; port ${config.port} is free`)
    } catch (error) {
      return failed(
        'must',
        id,
        name,
        messageOf(error),
        error instanceof StepError ? error.fix : 'Set PORT to another one.',
      )
    }
  }
  const logs = `Look at the logs in ${config.data}/log`
  const [, ...others] = serviceUrls(record.url, record.replicas ?? 1)
  const silent = await silentAmong(others)
  if (silent.length > 0)
    return failed('must', id, name, `It runs, but nothing is ready at ${silent.join(' and ')}`, logs)
  const readiness = await askReadiness(record.url)
  if (readiness === undefined)
    return failed(
      'must',
      id,
      name,
      `It runs (process ${record.up.pid}) but does not answer at ${record.url}`,
      logs,
    )
  const missing = readiness.reasons
    .filter((reason) => !reason.ok)
    .map((reason) => `${reason.part}: ${reason.message}`)
    .join('; ')
  return readiness.ready
    ? ok(
        'must',
        id,
        name,
        `running at ${[record.url, ...others].join(' and ')}${missing === '' ? '' : `; ${missing}`}`,
      )
    : failed('must', id, name, `Running at ${record.url}, not ready: ${missing}`, logs)
}

const AUDIT_FIX = 'docs/audit.md says what to do; the last backup has the lines as they were.'
const AUDIT_NAMES = { agent: 'Audit log of the agent', service: 'Audit log of the service' } as const

/** One finding for each log that there is: every line is as it was written. */
async function auditChecks(config: CliConfig): Promise<Finding[]> {
  const program = join(config.root, 'packages', 'service', 'dist', 'check-audit.js')
  if (!existsSync(program)) return []
  try {
    const printed = await run(process.execPath, [program], {
      cwd: config.root,
      environment: childEnvironment('service', config.environment),
      fix: AUDIT_FIX,
    })
    return auditChains.parse(JSON.parse(printed)).chains.map(({ source, ...chain }) => {
      const { lines, head, problems, problemCount } = chain
      const [id, name] = [`audit-${source}`, AUDIT_NAMES[source]]
      if (problemCount === 0)
        return ok(
          'must',
          id,
          name,
          `${lines} lines, as they were written; the last is ${head.seq}, hash ${head.hash}`,
        )
      const more = problemCount > problems.length ? ` … and ${problemCount - problems.length} more` : ''
      return failed('must', id, name, `${problems.join(' ')}${more}`, AUDIT_FIX)
    })
  } catch (error) {
    return [failed('must', 'audit', 'Audit log', `It could not be read: ${messageOf(error)}`, AUDIT_FIX)]
  }
}

/** Only of a Sandlot that runs: a proxy in front of none has nothing to lead to. */
async function publicUrl(config: CliConfig): Promise<Finding[]> {
  const record = readRecord(recordFile(config))
  const runs = record !== undefined && isRunning(record.up)
  return runs ? publicUrlCheck(config.environment['SANDLOT_PUBLIC_URL']) : []
}

/**
 * Every check, those first without which nothing runs. Never rejects: a check that breaks is a
 * finding.
 */
export async function runChecks(config: CliConfig): Promise<Finding[]> {
  const findings = [
    node(),
    dataDirectory(config),
    model(config),
    await running(config),
    ...(await databaseCheck(config)),
    ...lastBackup(config),
    ...(await auditChecks(config)),
    ...(await publicUrl(config)),
    ...(await signInChecks(config)),
    ...(await sandboxes(config)),
  ]
  const of = (group: Finding['group']): Finding[] => findings.filter((finding) => finding.group === group)
  return [...of('must'), ...of('warn'), ...of('report')]
}
