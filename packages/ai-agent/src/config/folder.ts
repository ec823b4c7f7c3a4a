/**
 * The folder of the operator's files: `SANDLOT_CONFIG` names `sandlot.json`, or a folder that may
 * have it and `agent.env`, lines of `NAME=value` for this process alone. The compose file mounts
 * such a folder.
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import type { Environment } from '@sandlot/shared/config'
import { messageOf } from '@sandlot/shared/base/errors'
import { SETTINGS } from '@sandlot/shared/config/settings'

const CONFIG_FILE = 'sandlot.json'
const ENV_FILE = 'agent.env'

/** Read when the process begins, before any file of ours. */
const TOO_LATE = /^(https?_proxy|no_proxy|NODE_.+)$/i

interface OperatorFiles {
  /** Absolute. */
  configFile: string
  /** The operator has named it, so it has to be there. */
  required: boolean
  /** The environment, with what the file adds; what is set already wins. */
  env: Environment
  /** The file with `agent.env`'s lines, and the names that it has added. */
  beside?: { path: string; names: ReadonlySet<string> }
}

export function operatorFiles(env: Environment, problems: string[]): OperatorFiles {
  const named = env['SANDLOT_CONFIG'] === '' ? undefined : env['SANDLOT_CONFIG']
  const inData = join(resolve(env['SANDLOT_DATA'] || './.sandlot'), CONFIG_FILE)
  if (named === undefined) return { configFile: inData, required: false, env }
  const path = resolve(named)
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true)
    return { configFile: path, required: true, env }
  const inFolder = join(path, CONFIG_FILE)
  const envFile = join(path, ENV_FILE)
  const merged = withFile(env, envFile, problems)
  const names = Object.keys(merged).filter((name) => merged[name] !== env[name])
  return {
    configFile: existsSync(inFolder) ? inFolder : inData,
    required: false,
    env: merged,
    beside: { path: envFile, names: new Set(names) },
  }
}

function withFile(env: Environment, path: string, problems: string[]): Environment {
  if (!existsSync(path)) return env
  let added: Record<string, string | undefined>
  try {
    added = parseEnv(readFileSync(path, 'utf8'))
  } catch (error) {
    problems.push(`${path}: cannot be read by user ${process.getuid?.()} (${messageOf(error)})`)
    return env
  }
  const merged = { ...env }
  for (const [name, value] of Object.entries(added)) {
    if (!isForOneProcess(name) || TOO_LATE.test(name))
      problems.push(`${path}: ${name} cannot be set here; set it in the environment of all processes (.env)`)
    else if (merged[name] === undefined || merged[name] === '') merged[name] = value
  }
  return merged
}

/**
 * False for a setting of other processes, which do not read the file: set for this one alone it
 * would contradict.
 */
function isForOneProcess(name: string): boolean {
  const plain = name.replace(/_FILE$/, '')
  if (plain === 'SANDLOT_CONFIG' || plain.startsWith('DOCKER_')) return false
  return (SETTINGS[plain]?.processes ?? []).every((process) => process === 'ai-agent')
}
