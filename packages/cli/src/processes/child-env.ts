import type { Environment } from '@sandlot/shared/config'
import type { ProcessName } from '@sandlot/shared/config/setting'
import { settingNames } from '@sandlot/shared/config/settings'

/** Variables that any program needs on this machine; none is a secret. */
const MACHINE = [
  'PATH',
  'HOME',
  'USER',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'TZ',
  'TMPDIR',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
]

/** To the model and MCP servers; to providers of sign-in and push services. */
const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'NODE_USE_ENV_PROXY']
/** Set by the cluster in every Pod, and the file of kubectl. */
const CLUSTER = ['KUBERNETES_SERVICE_HOST', 'KUBERNETES_SERVICE_PORT', 'KUBECONFIG']
/** Certificates of the docker command. ai-agent has the gate's socket in place of the engine. */
const ENGINE_TLS = ['DOCKER_CERT_PATH', 'DOCKER_TLS_VERIFY']

/** Variables of libraries and other programs that each process receives beside its settings. */
const OTHERS = {
  'ai-agent': [
    ...PROXIES,
    // Read by the SDK of OpenTelemetry itself.
    'OTEL_TRACES_SAMPLER',
    'OTEL_TRACES_SAMPLER_ARG',
    // For our own MCP servers.
    'DUFFEL_ACCESS_TOKEN',
    'GOOGLE_ACCESS_TOKEN',
    'GOOGLE_REFRESH_TOKEN',
    'GOOGLE_CLIENT_ID',
    'GOOGLE_CLIENT_SECRET',
    ...CLUSTER,
  ],
  'engine-gate': ENGINE_TLS,
  // Has the engine itself: the gate cannot read volumes.
  backup: [...ENGINE_TLS, ...CLUSTER],
  service: PROXIES,
} as const satisfies Partial<Record<ProcessName, readonly string[]>>

export type ChildName = keyof typeof OTHERS

/** Names of the variables of one process: nothing but its own settings, and what libraries need. */
export function namesFor(child: ChildName): string[] {
  return [...settingNames(child), ...OTHERS[child]]
}

/** Variables that MCP servers of the configuration file refer to; each server gets only its own. */
const FOR_MCP_SERVERS = /^MCP_[A-Z0-9_]+$/

/** The environment of one child: of the machine, and its own names, each also as `NAME_FILE`. */
export function childEnvironment(child: ChildName, environment: Environment): Record<string, string> {
  const referred =
    child === 'ai-agent' ? Object.keys(environment).filter((name) => FOR_MCP_SERVERS.test(name)) : []
  const names = [...MACHINE, ...referred, ...namesFor(child).flatMap((name) => [name, `${name}_FILE`])]
  const own: Record<string, string> = {}
  for (const name of names) {
    // Proxy settings are used in both cases; lower case is the older convention.
    for (const spelled of name.endsWith('_PROXY') ? [name, name.toLowerCase()] : [name]) {
      const value = environment[spelled]
      if (value !== undefined && value !== '') own[spelled] = value
    }
  }
  return { NODE_ENV: 'production', ...own }
}
