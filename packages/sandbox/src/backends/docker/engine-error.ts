import { SandboxError } from '../../errors.ts'
import type { EngineAddress } from './connection.ts'

/** HTTP status and message of an engine's answer. dockerode sets these on its errors. */
interface EngineAnswer {
  statusCode: number
  message: string
}

const isGate = (address: EngineAddress): boolean => address.kind === 'unix' && address.gate === true

/** Status and message of a dockerode error. Undefined when there was no answer. */
export function engineAnswer(error: unknown): EngineAnswer | undefined {
  if (!(error instanceof Error) || !('statusCode' in error) || typeof error.statusCode !== 'number')
    return undefined
  const json = 'json' in error ? error.json : undefined
  const own =
    typeof json === 'object' && json !== null && 'message' in json && typeof json.message === 'string'
      ? json.message
      : undefined
  return { statusCode: error.statusCode, message: own ?? error.message.trim() }
}

/**
 * Converts a failure of an engine call; the message says what to do. `doing` names the step, for
 * example `create the sandbox`.
 */
export function toSandboxError(error: unknown, address: EngineAddress, doing: string): SandboxError {
  if (error instanceof SandboxError) return error
  const answer = engineAnswer(error)
  if (answer) return fromAnswer(answer, doing, error)
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (code === 'EACCES' || code === 'EPERM') {
    return new SandboxError(
      'engine_unavailable',
      `This process may not open the Docker engine at ${address.shown}. Add its user to the group docker, or run it as root.`,
      { cause: error },
    )
  }
  if (
    code === 'ENOENT' ||
    code === 'ECONNREFUSED' ||
    code === 'ENOTFOUND' ||
    code === 'EHOSTUNREACH' ||
    code === 'ENOTSOCK'
  ) {
    const what = isGate(address)
      ? `engine-gate, which passes requests on to the Docker engine, does not answer at ${address.shown} (${code}). It is restarted automatically; if it stays unreachable, check its log.`
      : `No Docker engine answers at ${address.shown} (${code}). Start it, for example with "sudo systemctl start docker", or point DOCKER_HOST at one that runs.`
    return new SandboxError('engine_unavailable', what, { cause: error, unreachable: true })
  }
  const detail = error instanceof Error ? error.message : String(error)
  const whose = isGate(address) ? 'engine-gate' : 'the Docker engine'
  return new SandboxError(
    'engine_unavailable',
    `The connection to ${whose} at ${address.shown} broke while trying to ${doing}: ${detail}. Try again; if it persists, check the log of ${whose}.`,
    { cause: error, unreachable: true },
  )
}

function fromAnswer(answer: EngineAnswer, doing: string, cause: unknown): SandboxError {
  if (answer.statusCode === 404 && /no such image/i.test(answer.message))
    return missingImage(answer.message, cause)
  if (
    answer.statusCode === 404 ||
    (answer.statusCode === 409 && /marked for removal|not running/i.test(answer.message))
  ) {
    return new SandboxError(
      'sandbox_lost',
      `The sandbox no longer exists on the Docker engine: ${answer.message}.`,
      { cause },
    )
  }
  if (/no space left on device/i.test(answer.message)) {
    return new SandboxError(
      'engine_unavailable',
      `The Docker engine's disk is full, so it could not ${doing}. Free some space and try again.`,
      {
        cause,
      },
    )
  }
  return new SandboxError(
    'engine_unavailable',
    settingRefused(answer.message) ??
      `The Docker engine could not ${doing} (HTTP ${answer.statusCode}): ${shorten(answer.message)}`,
    // Statuses of the gate, or a proxy, for an unreachable engine.
    { cause, unreachable: [502, 503, 504].includes(answer.statusCode) },
  )
}

/**
 * Message for a setting that the engine does not support, in the wording of Docker 20.10 to 28 and
 * Podman 4.3.
 */
function settingRefused(message: string): string | undefined {
  const runtime = /unknown (?:or invalid runtime name:|runtime specified) (\S+)/i.exec(message)?.[1]
  if (runtime !== undefined)
    return `The Docker engine knows no runtime "${runtime}". Name it under "runtimes" in the engine's daemon.json and reload the engine, or set SANDLOT_SANDBOX_RUNTIME to one that "docker info" lists.`
  if (message.includes('opening seccomp profile failed'))
    return 'This engine (Podman) reads a system call filter only from a file on its own host, so it cannot be given the one that every sandbox must have. Use Docker Engine.'
  return undefined
}

/** Some engines answer with the whole request. */
function shorten(message: string): string {
  const most = 600
  return message.length <= most ? message : `${message.slice(0, most)} …`
}

/**
 * Messages of 20.10 for a task that containerd still has, and for one whose creation a crash
 * interrupted: the same at each try.
 */
const FORGOTTEN = /\btask [0-9a-f]+: already exists|\bid already in use\b/i

/**
 * True when a start failed because containerd still has a container that the engine considers
 * ended.
 */
export function isForgottenTask(error: unknown): boolean {
  const answer = engineAnswer(error)
  return answer?.statusCode === 500 && FORGOTTEN.test(answer.message)
}

/** The sandbox image is not on the engine. */
export function missingImage(reference: string, cause?: unknown): SandboxError {
  return new SandboxError(
    'engine_unavailable',
    `The sandbox image is missing on the Docker engine (${reference}). Build it with docker/build-images.sh, or with "./sandlot up".`,
    cause === undefined ? undefined : { cause },
  )
}

/** The engine took longer than a call's deadline. */
export function deadlineError(address: EngineAddress, doing: string, ms: number): SandboxError {
  return new SandboxError(
    'engine_unavailable',
    `The Docker engine at ${address.shown} did not ${doing} within ${Math.round(ms / 1000)} s. It may be overloaded or stuck; try again, then check its log.`,
  )
}

/** The answer, or undefined for one of these statuses. */
export async function unless<T>(statuses: readonly number[], answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    const status = engineAnswer(error)?.statusCode
    if (status !== undefined && statuses.includes(status)) return undefined
    throw error
  }
}

/** The answer, or undefined for a 404. */
export function absentIf404<T>(answer: Promise<T>): Promise<T | undefined> {
  return unless([404], answer)
}
