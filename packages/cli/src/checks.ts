import { accessSync, constants, existsSync, readFileSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { check, type Finding, report, unknown } from '@sandlot/sandbox/doctor/finding'
import { examineMachine } from '@sandlot/sandbox/doctor/machine'
import { messageOf } from '@sandlot/shared/errors'
import { recordFile } from './children.ts'
import type { CliConfig } from './config.ts'
import { gateSocket } from './gate.ts'
import { DEFAULT_IMAGE } from './images.ts'
import { readRecord } from './pid-file.ts'
import { isRunning } from './processes.ts'
import { askReadiness, checkPortIsFree } from './ready.ts'
import { StepError } from './steps.ts'

/** Below this a workspace, an image or a database soon fails to be written. */
const FREE_BYTES = 2 * 1024 ** 3

const bad = (id: string, name: string, message: string, fix: string): Finding => ({
  id,
  group: 'must',
  name,
  message,
  state: 'failed',
  fix,
})
const ok = (id: string, name: string, message: string): Finding => ({
  id,
  group: 'must',
  name,
  message,
  state: 'ok',
})

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
    return bad(
      id,
      name,
      `${config.data} cannot be written (${messageOf(error)})`,
      'Give this user the folder, or set SANDLOT_DATA to another one.',
    )
  }
  const { bavail, bsize } = statfsSync(nearest)
  const gibibytes = (bavail * bsize) / 1024 ** 3
  const free = `${gibibytes.toFixed(gibibytes < 10 ? 1 : 0)} GiB free`
  return check('must', id, name, bavail * bsize >= FREE_BYTES, {
    ok: `${config.data}, ${free}${existsSync(config.data) ? '' : ' (made at the first start)'}`,
    bad: `${config.data} has only ${free}`,
    fix: 'Make room: docker system df shows what the engine holds.',
  })
}

function nearestExisting(path: string): string {
  return existsSync(path) || path === '/' ? path : nearestExisting(dirname(path))
}

/** Where commands run: the engine, its host, and a sandbox that is made to prove itself. */
async function sandboxes(config: CliConfig): Promise<Finding[]> {
  if (config.backend !== 'docker') {
    return [
      check('warn', 'isolation', 'Isolation', false, {
        ok: '',
        bad: 'SANDLOT_SANDBOX=local-process isolates nothing: commands run as you, on this machine',
        fix: 'Unset SANDLOT_SANDBOX; it is for tests and for machines without an engine.',
      }),
    ]
  }
  const runtime = config.environment['SANDLOT_SANDBOX_RUNTIME']
  return [
    gate(config),
    ...(await examineMachine({
      image: config.sandboxImage ?? DEFAULT_IMAGE,
      ...(config.dockerHost === undefined ? {} : { dockerHost: config.dockerHost }),
      ...(runtime === undefined || runtime === '' ? {} : { runtime }),
    })),
  ]
}

/** Whether the agent that runs has only the gate's socket; read from what the process was really started with. */
function gate(config: CliConfig): Finding {
  const [id, name] = ['engine-gate', 'Engine gate']
  const record = readRecord(recordFile(config))
  const agent = record?.children['ai-agent']
  if (agent === undefined || !isRunning(agent))
    return unknown('warn', id, name, 'Sandlot does not run; its processes are looked at while they do')
  const host = environmentOf(agent.pid)?.get('DOCKER_HOST')
  if (host === undefined) return unknown('warn', id, name, `process ${agent.pid} cannot be looked at`)
  return check('warn', id, name, host === `unix://${gateSocket(config)}`, {
    ok: 'only the gate holds the engine’s socket',
    bad: `the agent reaches the engine itself, at ${host}`,
    fix: 'Start Sandlot by ./sandlot up or by docker/compose.yaml: both put the gate between them.',
  })
}

/** What a process was started with; undefined for somebody else's, or one that has ended. */
function environmentOf(pid: number): Map<string, string> | undefined {
  try {
    const pairs = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0')
    return new Map(pairs.map((pair) => [pair.split('=', 1)[0] ?? '', pair.slice(pair.indexOf('=') + 1)]))
  } catch {
    return undefined
  }
}

function model(config: CliConfig): Finding {
  const [id, name] = ['model', 'Model']
  const has = (variable: string): boolean =>
    (config.environment[variable] ?? config.environment[`${variable}_FILE`] ?? '') !== ''
  if (has('OPENAI_MODEL')) return ok(id, name, config.environment['OPENAI_MODEL'] ?? 'from a file')
  if (has('OPENAI_API_KEY') || has('OPENAI_BASE_URL')) {
    return bad(
      id,
      name,
      'A model key or address is set, but no model',
      'Set OPENAI_MODEL to the name of the model, or unset the others for the demo model.',
    )
  }
  return report(id, name, 'the demo model answers; set OPENAI_MODEL and OPENAI_API_KEY for a real one')
}

async function running(config: CliConfig): Promise<Finding> {
  const [id, name] = ['running', 'Sandlot']
  const record = readRecord(recordFile(config))
  if (record === undefined || !isRunning(record.up)) {
    try {
      await checkPortIsFree(config.host, config.port)
      return ok(id, name, `not running; port ${config.port} is free`)
    } catch (error) {
      return bad(
        id,
        name,
        messageOf(error),
        error instanceof StepError ? error.fix : 'Set PORT to another one.',
      )
    }
  }
  const logs = `Look at the logs in ${config.data}/log`
  const readiness = await askReadiness(record.url)
  if (readiness === undefined)
    return bad(id, name, `It runs (process ${record.up.pid}) but does not answer at ${record.url}`, logs)
  const missing = readiness.reasons
    .filter((reason) => !reason.ok)
    .map((reason) => `${reason.part}: ${reason.message}`)
    .join('; ')
  return readiness.ready
    ? ok(id, name, `running at ${record.url}${missing === '' ? '' : `; ${missing}`}`)
    : bad(id, name, `Running at ${record.url}, not ready: ${missing}`, logs)
}

/** Every check, those first without which nothing runs. Never rejects: a check that breaks is a finding. */
export async function runChecks(config: CliConfig): Promise<Finding[]> {
  const findings = [
    node(),
    dataDirectory(config),
    model(config),
    await running(config),
    ...(await sandboxes(config)),
  ]
  const of = (group: Finding['group']): Finding[] => findings.filter((finding) => finding.group === group)
  return [...of('must'), ...of('warn'), ...of('report')]
}
