/**
 * Settings of the docker command for an engine behind TLS, read alike by launcher, agent and gate.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface EngineTlsVariables {
  /** A folder with `ca.pem`, `cert.pem` and `key.pem`. */
  DOCKER_CERT_PATH?: string | undefined
  /** Any value but an empty one and `0` enables TLS. */
  DOCKER_TLS_VERIFY?: string | undefined
}

/**
 * Certificates in PEM; undefined when none are requested. Problems are added as sentences to
 * `problems`.
 */
export function readEngineTls(
  { DOCKER_CERT_PATH: folder, DOCKER_TLS_VERIFY: verify }: EngineTlsVariables,
  problems: string[],
): { ca: Buffer; cert: Buffer; key: Buffer } | undefined {
  if (verify === undefined || verify === '' || verify === '0') return undefined
  // Plaintext was not requested, and the docker command's default folder is in a home, which our
  // processes do not have.
  if (folder === undefined || folder === '') {
    problems.push('DOCKER_TLS_VERIFY is set, but not DOCKER_CERT_PATH')
    return undefined
  }
  if (!existsSync(folder)) {
    problems.push(`DOCKER_CERT_PATH: there is no folder ${folder}`)
    return undefined
  }
  try {
    const read = (name: string): Buffer => readFileSync(join(folder, name))
    return { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem') }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    problems.push(`DOCKER_CERT_PATH: it must hold ca.pem, cert.pem and key.pem (${why})`)
    return undefined
  }
}
