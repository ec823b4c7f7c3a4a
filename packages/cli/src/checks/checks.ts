import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '@sandlot/shared/base/errors'
import { failed, type Finding, inOrder, ok } from '@sandlot/shared/base/finding'
import {
  auditChecks,
  backupCheck,
  dataFolderCheck,
  modelCheck,
  namelessModel,
  nodeCheck,
  unreadAudit,
} from '@sandlot/shared/node/checks/deployment'
import { publicUrlCheck } from '@sandlot/shared/node/checks/public-url'
import { SIGN_IN_FIX, signInChecks } from '@sandlot/shared/node/checks/sign-in'
import { auditChains } from '@sandlot/shared/admin/audit'
import { BACKUP_STATUS_FILE } from '@sandlot/shared/admin/backup-status'
import { readOidcProviders } from '@sandlot/shared/account/oidc-config'
import { childEnvironment } from '../processes/child-env.ts'
import { runningRecord } from '../processes/children.ts'
import type { CliConfig } from '../config.ts'
import { databaseCheck } from '../deployment/database.ts'
import { run } from '../programs/run.ts'
import { isOnPostgres, serviceUrls } from '../deployment/replicas.ts'
import { askReadiness, checkPortIsFree } from '../deployment/ready.ts'
import { sandboxes } from './sandbox-checks.ts'
import { StepError } from '../steps.ts'

function model(config: CliConfig): Finding {
  const has = (variable: string): boolean =>
    (config.environment[variable] ?? config.environment[`${variable}_FILE`] ?? '') !== ''
  if (has('OPENAI_MODEL')) return modelCheck(config.environment['OPENAI_MODEL'] ?? 'from a file')
  return has('OPENAI_API_KEY') || has('OPENAI_BASE_URL') ? namelessModel() : modelCheck(undefined)
}

/** None before the first start: there is nothing to back up. */
function lastBackup(config: CliConfig): Finding[] {
  const started = isOnPostgres(config)
    ? join(config.keys, 'deployment.json')
    : join(config.data, 'sessions.db')
  if (!existsSync(started)) return []
  return [backupCheck(join(config.data, BACKUP_STATUS_FILE))]
}

async function silentAmong(urls: readonly string[]): Promise<string[]> {
  const ready = await Promise.all(urls.map(async (url) => (await askReadiness(url))?.ready === true))
  return urls.filter((_, place) => ready[place] !== true)
}

async function running(config: CliConfig): Promise<Finding> {
  const [id, name] = ['running', 'Sandlot']
  const record = runningRecord(config)
  if (record === undefined) {
    try {
      await checkPortIsFree(config.host, config.port)
      return ok('must', id, name, `not running; port ${config.port} is free`)
    } catch (error) {
      return failed(
        'must',
        id,
        name,
        messageOf(error),
        error instanceof StepError ? error.fix : 'Set PORT to another port.',
      )
    }
  }
  const logs = `See the logs in ${config.data}/log`
  const [, ...others] = serviceUrls(record.url, record.replicas ?? 1)
  const silent = await silentAmong(others)
  if (silent.length > 0)
    return failed('must', id, name, `running, but nothing is ready at ${silent.join(' and ')}`, logs)
  const readiness = await askReadiness(record.url)
  if (readiness === undefined)
    return failed(
      'must',
      id,
      name,
      `running (process ${record.up.pid}), but it does not answer at ${record.url}`,
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
    : failed('must', id, name, `running at ${record.url}, but not ready: ${missing}`, logs)
}

/** One finding for each audit log. */
async function auditLogs(config: CliConfig): Promise<Finding[]> {
  const program = join(config.root, 'packages', 'service', 'dist', 'people', 'check-audit.js')
  if (!existsSync(program)) return []
  try {
    const printed = await run(process.execPath, [program], {
      cwd: config.root,
      environment: childEnvironment('service', config.environment),
      fix: 'docs/audit.md says what to do.',
    })
    return auditChecks(auditChains.parse(JSON.parse(printed)))
  } catch (error) {
    const said = error instanceof StepError ? error.details.split('\n').at(-1) : ''
    return [unreadAudit(said === '' ? error : said)]
  }
}

/** Checks `SANDLOT_OIDC`, read as the service reads it. */
async function signIn({ environment, host, port }: CliConfig): Promise<Finding[]> {
  const readText = (path: string): string => readFileSync(path, 'utf8')
  const wrong = (message: string): Finding[] => [failed('must', 'sign-in', 'Sign-in', message, SIGN_IN_FIX)]
  let text: string
  try {
    const file = environment['SANDLOT_OIDC_FILE'] ?? ''
    text = file === '' ? (environment['SANDLOT_OIDC'] ?? '') : readText(file)
  } catch (error) {
    return wrong(`SANDLOT_OIDC_FILE: ${messageOf(error)}`)
  }
  if (text === '') return []
  const read = readOidcProviders(text, readText)
  if ('problems' in read) return wrong(`SANDLOT_OIDC: ${read.problems.join('; ')}`)
  const origin = (environment['SANDLOT_PUBLIC_URL'] ?? '').replace(/\/+$/, '') || `http://${host}:${port}`
  return signInChecks(read.providers, origin)
}

/** Skipped unless Sandlot runs: a proxy would have nothing to connect to. */
async function publicUrl(config: CliConfig): Promise<Finding[]> {
  if (runningRecord(config) === undefined) return []
  return publicUrlCheck(config.environment['SANDLOT_PUBLIC_URL'])
}

/** Runs every check, required ones first. Never rejects: a check that throws is a finding. */
export async function runChecks(config: CliConfig): Promise<Finding[]> {
  return inOrder([
    nodeCheck(),
    dataFolderCheck(config.data),
    model(config),
    await running(config),
    ...(await databaseCheck(config)),
    ...lastBackup(config),
    ...(await auditLogs(config)),
    ...(await publicUrl(config)),
    ...(await signIn(config)),
    ...(await sandboxes(config)),
  ])
}
