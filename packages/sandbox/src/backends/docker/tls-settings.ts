/**
 * The docker command's own settings for an engine behind TLS, read alike by the launcher, the agent
 * and the gate.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface EngineTlsVariables {
  /** A folder with `ca.pem`, `cert.pem` and `key.pem`. */
  DOCKER_CERT_PATH?: string | undefined
  /** Anything but nothing and `0` turns TLS on. */
  DOCKER_TLS_VERIFY?: string | undefined
}

/**
 * Certificates in PEM; undefined where none are asked for. What is wrong with them is a sentence in
 * `problems`.
 */
export function readEngineTls(
  { DOCKER_CERT_PATH: folder, DOCKER_TLS_VERIFY: verify }: EngineTlsVariables,
  problems: string[],
): { ca: Buffer; cert: Buffer; key: Buffer } | undefined {
  if (verify === undefined || verify === '' || verify === '0') return undefined
  // Plaintext is not what was asked for, and the docker command's own folder is a home that our
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
