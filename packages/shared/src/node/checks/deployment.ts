/**
 * Checks that `./sandlot doctor` and the page share: Node, data, model, backups and audit logs of
 * one deployment.
 */
import { accessSync, constants, existsSync, readFileSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { LOW_DISK_BYTES } from '../../config/low-disk.ts'
import { messageOf } from '../../base/errors.ts'
import { check, failed, type Finding, ok, report } from '../../base/finding.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import type { AuditChains } from '../../admin/audit.ts'
import { type BackupStatus, backupStatus } from '../../admin/backup-status.ts'

/** The calling process. */
export function nodeCheck(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return check('must', 'node', 'Node', major > 24 || (major === 24 && minor >= 11), {
    ok: process.version,
    bad: `${process.version} is too old; 24.11 is needed`,
    fix: 'Run ./sandlot from the checkout: it brings its own Node.',
  })
}

export function dataFolderCheck(folder: string): Finding {
  const [id, name] = ['data', 'Data directory']
  const nearest = nearestExisting(folder)
  try {
    accessSync(nearest, constants.W_OK | constants.X_OK)
  } catch (error) {
    return failed(
      'must',
      id,
      name,
      `${folder} cannot be written (${messageOf(error)})`,
      'Give this user the folder, or set SANDLOT_DATA to another one.',
    )
  }
  const { bavail, bsize } = statfsSync(nearest)
  const free = `${formatBytes(bavail * bsize)} free`
  return check('must', id, name, bavail * bsize >= LOW_DISK_BYTES, {
    ok: `${folder}, ${free}${existsSync(folder) ? '' : ' (made at the first start)'}`,
    bad: `${folder} has only ${free}`,
    fix: 'Make room: docker system df shows what the engine holds.',
  })
}

function nearestExisting(path: string): string {
  return existsSync(path) || path === '/' ? path : nearestExisting(dirname(path))
}

const MODEL = ['model', 'Model'] as const

/** `name`: the configured model; undefined: the demo. */
export function modelCheck(name: string | undefined): Finding {
  return name === undefined
    ? report(...MODEL, 'the demo model answers; set OPENAI_MODEL and OPENAI_API_KEY for a real one')
    : ok('must', ...MODEL, name)
}

/** A key or an address is set, and no name. */
export function namelessModel(): Finding {
  return failed(
    'must',
    ...MODEL,
    'A model key or address is set, but no model',
    'Set OPENAI_MODEL to the name of the model, or unset the others for the demo model.',
  )
}

/**
 * `file`: the status file of backups. `isThere`: checks for the backup’s own file; absent in a
 * process that cannot see its folder.
 */
export function backupCheck(
  file: string,
  isThere: (path: string) => boolean = (path) => existsSync(path),
): Finding {
  const [id, name] = ['backup', 'Last backup']
  const fix = './sandlot backup, or SANDLOT_BACKUP_EVERY_HOURS; docs/backup.md says how.'
  let status: BackupStatus
  try {
    status = backupStatus.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    return failed('warn', id, name, 'none was ever made', fix)
  }
  const { last, failed: problem } = status
  const made =
    last === undefined
      ? 'none was ever made'
      : `${last.at}, ${formatBytes(last.bytes)}, read again whole: ${last.file}`
  if (problem !== undefined)
    return failed('warn', id, name, `${made}; the one of ${problem.at} failed: ${problem.message}`, fix)
  if (last === undefined || !isThere(last.file))
    return failed('warn', id, name, last === undefined ? made : `${made} is not there any more`, fix)
  return ok('warn', id, name, made)
}

const AUDIT_FIX = 'docs/audit.md says what to do; the last backup has the lines as they were.'
const AUDIT_NAMES = { agent: 'Audit log of the agent', service: 'Audit log of the service' } as const

/** One finding for each log: unchanged or not. */
export function auditChecks({ chains }: AuditChains): Finding[] {
  return chains.map(({ source, lines, head, problems, problemCount }) => {
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
}

/** The logs are not readable. */
export function unreadAudit(error: unknown): Finding {
  return failed('must', 'audit', 'Audit log', `It could not be read: ${messageOf(error)}`, AUDIT_FIX)
}
