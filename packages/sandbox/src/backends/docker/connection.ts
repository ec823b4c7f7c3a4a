import { SandboxError } from '../../errors.ts'

/** Certificates for an engine behind TLS, in PEM. */
export interface EngineTls {
  ca?: string | Buffer
  cert?: string | Buffer
  key?: string | Buffer
}

/** The engine's parsed address, for both dockerode and the raw attach. */
export type EngineAddress =
  /** `gate`: engine-gate listens there, and passes requests on to an engine. */
  | { kind: 'unix'; socketPath: string; shown: string; gate?: boolean }
  | { kind: 'tcp'; host: string; port: number; tls?: EngineTls; shown: string }

const DEFAULT_SOCKET = '/var/run/docker.sock'

/**
 * Parses a `DOCKER_HOST` value: `unix:///path`, a bare absolute path, `tcp://host:port`,
 * `http(s)://host:port`, or nothing for the usual socket. Throws `invalid_arguments` for anything
 * else (ssh, npipe, fd).
 */
export function parseDockerHost(dockerHost?: string, tls?: EngineTls): EngineAddress {
  const text = dockerHost?.trim() || `unix://${DEFAULT_SOCKET}`
  if (text.startsWith('/')) return { kind: 'unix', socketPath: text, shown: text }
  if (text.startsWith('unix://')) {
    const socketPath = text.slice('unix://'.length) || DEFAULT_SOCKET
    if (!socketPath.startsWith('/')) throw badHost(text)
    return { kind: 'unix', socketPath, shown: socketPath }
  }
  if (!URL.canParse(text)) throw badHost(text)
  const url = new URL(text)
  if (
    !['tcp:', 'http:', 'https:'].includes(url.protocol) ||
    !url.hostname ||
    (url.pathname !== '' && url.pathname !== '/')
  ) {
    throw badHost(text)
  }
  const secure = url.protocol === 'https:' || tls !== undefined
  // WHATWG URLs drop the scheme's default port, and have none for tcp.
  const port = url.port
    ? Number(url.port)
    : url.protocol === 'http:'
      ? 80
      : url.protocol === 'https:'
        ? 443
        : secure
          ? 2376
          : 2375
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return { kind: 'tcp', host, port, ...(secure ? { tls: tls ?? {} } : {}), shown: `${url.hostname}:${port}` }
}

function badHost(text: string): SandboxError {
  return new SandboxError(
    'invalid_arguments',
    `DOCKER_HOST is "${text}". Use unix:///var/run/docker.sock or tcp://host:port; for ssh, forward the engine's socket and give its path.`,
  )
}
