import { accessSync, constants, existsSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { recordFile } from './children.ts'
import type { CliConfig } from './config.ts'
import { askEngine } from './engine.ts'
import { DEFAULT_IMAGE } from './images.ts'
import { readRecord } from './pid-file.ts'
import { isRunning } from './processes.ts'
import { askReadiness, checkPortIsFree } from './ready.ts'
import { succeeds } from './run.ts'
import { messageOf } from '@sandlot/shared/errors'
import { StepError } from './steps.ts'

/** What one check found. `fix` is there exactly when it is not ok. */
export type Finding =
  | { name: string; ok: true; message: string; warnings: string[] }
  | { name: string; ok: false; message: string; fix: string }

const ok = (name: string, message: string, warnings: string[] = []): Finding => ({
  name,
  ok: true,
  message,
  warnings,
})
const bad = (name: string, message: string, fix: string): Finding => ({ name, ok: false, message, fix })

/** Below this a workspace, an image or a database soon fails to be written. */
const FREE_BYTES = 2 * 1024 ** 3

function node(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const name = 'Node'
  return major > 24 || (major === 24 && minor >= 11)
    ? ok(name, process.version)
    : bad(
        name,
        `${process.version} is too old; 24.11 is needed.`,
        'Run ./sandlot from the checkout: it brings its own Node.',
      )
}

async function engine(config: CliConfig): Promise<Finding> {
  const name = 'Docker engine'
  if (config.backend !== 'docker') {
    return ok(name, 'not used', [
      'SANDLOT_SANDBOX=local-process isolates nothing: commands run as you, on this machine.',
    ])
  }
  const answer = await askEngine(config)
  if (!(answer instanceof Error))
    return ok(name, `version ${answer.version}, API ${answer.apiVersion ?? 'unknown'}`, answer.warnings)
  return bad(
    name,
    answer.message,
    config.dockerHost === undefined
      ? './sandlot up, which installs and starts one'
      : 'Start the engine that DOCKER_HOST names, or unset it.',
  )
}

async function image(config: CliConfig): Promise<Finding> {
  const name = 'Sandbox image'
  if (config.backend !== 'docker') return ok(name, 'not used')
  const wanted = config.sandboxImage ?? DEFAULT_IMAGE
  return (await succeeds('docker', ['image', 'inspect', wanted], config.environment))
    ? ok(name, wanted)
    : bad(
        name,
        `${wanted} is not there.`,
        config.sandboxImage === undefined ? 'docker/build-images.sh' : `docker pull ${wanted}`,
      )
}

function dataDirectory(config: CliConfig): Finding {
  const name = 'Data directory'
  const nearest = nearestExisting(config.data)
  try {
    accessSync(nearest, constants.W_OK | constants.X_OK)
  } catch (error) {
    return bad(
      name,
      `${config.data} cannot be written (${messageOf(error)}).`,
      'Give this user the folder, or set SANDLOT_DATA to another one.',
    )
  }
  const { bavail, bsize } = statfsSync(nearest)
  const gibibytes = (bavail * bsize) / 1024 ** 3
  const free = `${gibibytes.toFixed(gibibytes < 10 ? 1 : 0)} GiB free`
  return bavail * bsize < FREE_BYTES
    ? bad(
        name,
        `${config.data} has only ${free}.`,
        'Make room: docker system df shows what the engine holds.',
      )
    : ok(name, `${config.data}, ${free}${existsSync(config.data) ? '' : ' (made at the first start)'}`)
}

function nearestExisting(path: string): string {
  return existsSync(path) || path === '/' ? path : nearestExisting(dirname(path))
}

function model(config: CliConfig): Finding {
  const name = 'Model'
  const has = (variable: string): boolean =>
    (config.environment[variable] ?? config.environment[`${variable}_FILE`] ?? '') !== ''
  if (has('OPENAI_MODEL')) return ok(name, config.environment['OPENAI_MODEL'] ?? 'from a file')
  if (has('OPENAI_API_KEY') || has('OPENAI_BASE_URL')) {
    return bad(
      name,
      'A model key or address is set, but no model.',
      'Set OPENAI_MODEL to the name of the model, or unset the others for the demo model.',
    )
  }
  return ok(name, 'the demo model answers', ['Set OPENAI_MODEL and OPENAI_API_KEY for a real one.'])
}

async function running(config: CliConfig): Promise<Finding> {
  const name = 'Sandlot'
  const record = readRecord(recordFile(config))
  if (record === undefined || !isRunning(record.up)) {
    try {
      await checkPortIsFree(config.host, config.port)
      return ok(name, `not running; port ${config.port} is free`)
    } catch (error) {
      return bad(name, messageOf(error), error instanceof StepError ? error.fix : 'Set PORT to another one.')
    }
  }
  const readiness = await askReadiness(record.url)
  if (readiness === undefined)
    return bad(
      name,
      `It runs (process ${record.up.pid}) but does not answer at ${record.url}.`,
      `Look at the logs in ${config.data}/log`,
    )
  const missing = readiness.reasons
    .filter((reason) => !reason.ok)
    .map((reason) => `${reason.part}: ${reason.message}`)
  return readiness.ready
    ? ok(name, `running at ${record.url}`, missing)
    : bad(
        name,
        `Running at ${record.url}, not ready: ${missing.join('; ')}`,
        `Look at the logs in ${config.data}/log`,
      )
}

/** Every check, in the order in which a person would look. Never rejects: a check that breaks is a finding. */
export async function runChecks(config: CliConfig): Promise<Finding[]> {
  return [
    node(),
    dataDirectory(config),
    await engine(config),
    await image(config),
    model(config),
    await running(config),
  ]
}
