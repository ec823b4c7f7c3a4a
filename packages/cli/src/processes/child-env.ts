import type { Environment } from '@sandlot/shared/config'

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

/** Settings that service and ai-agent both read. They share the login of `DATABASE_URL`. */
const BOTH = [
  'LOG_LEVEL',
  'SANDLOT_DATA',
  'SANDLOT_KEYS_DIR',
  // Sources of values, for administrators; set by the launcher.
  'SANDLOT_ENV_FILE_NAMES',
  'SANDLOT_DEFAULT_MODE',
  'DATABASE_URL',
  // To the model and MCP servers; to providers of sign-in and push services.
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'NODE_USE_ENV_PROXY',
]

/** The way to a cluster, and the sandboxes on it. */
const KUBERNETES = [
  // Set by the cluster in every Pod.
  'KUBERNETES_SERVICE_HOST',
  'KUBERNETES_SERVICE_PORT',
  'KUBECONFIG',
  'SANDLOT_KUBERNETES_NAMESPACE',
  'SANDLOT_KUBERNETES_KUBECONFIG',
  'SANDLOT_KUBERNETES_STORAGE_CLASS',
  'SANDLOT_KUBERNETES_MEMORY_REQUEST',
  'SANDLOT_KUBERNETES_PULL_SECRET',
  'SANDLOT_KUBERNETES_USER_NAMESPACES',
  'SANDLOT_KUBERNETES_NETWORK_DOWN',
  'SANDLOT_KUBERNETES_STREAM_MB',
] as const

/**
 * Allow list of each process's own settings. Only ai-agent has the model's key, only engine-gate
 * the engine; only the service faces the network.
 */
const OWN = {
  'ai-agent': [
    'OPENAI_API_KEY',
    'OPENAI_BASE_URL',
    'OPENAI_MODEL',
    // The gate's socket, set by the launcher; only the gate has the engine's address.
    'DOCKER_HOST',
    'SANDLOT_DEPLOYMENT',
    // For spans; the SDK itself reads the last two and the headers.
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'OTEL_EXPORTER_OTLP_HEADERS',
    'OTEL_SERVICE_NAME',
    'OTEL_TRACES_SAMPLER',
    'OTEL_TRACES_SAMPLER_ARG',
    // For our own MCP servers.
    'DUFFEL_ACCESS_TOKEN',
    'GOOGLE_ACCESS_TOKEN',
    'GOOGLE_REFRESH_TOKEN',
    'GOOGLE_CLIENT_ID',
    'GOOGLE_CLIENT_SECRET',
    'SANDLOT_TOOLS_ENABLED',
    'SANDLOT_BUILTIN_TOOLS',
    'SANDLOT_TOOL_TIMEOUT_MS',
    'SANDLOT_MAX_CONCURRENT_TOOLS',
    'SANDLOT_RESULT_CHARS',
    'SANDLOT_RESULT_LINES',
    'SANDLOT_OUTPUT_LIMIT',
    'SANDLOT_MAX_TURNS',
    'SANDLOT_CONFIG',
    'SANDLOT_REPLICA',
    'SANDLOT_SESSIONS_DB_MODE',
    // For the redirect after a sign-in to an MCP server.
    'PORT',
    'SANDLOT_PUBLIC_URL',
    'SANDLOT_MAX_CALLS',
    'SANDLOT_MAX_TOKENS',
    'SANDLOT_MAX_COST',
    'SANDLOT_MAX_PROMPT_SECONDS',
    'SANDLOT_MAX_TURNS_PER_DAY',
    'SANDLOT_MAX_CALLS_PER_DAY',
    'SANDLOT_MAX_TOKENS_PER_DAY',
    'SANDLOT_MAX_COST_PER_DAY',
    'SANDLOT_MAX_SECONDS_PER_DAY',
    'SANDLOT_MAX_TURNS_PER_MONTH',
    'SANDLOT_MAX_CALLS_PER_MONTH',
    'SANDLOT_MAX_TOKENS_PER_MONTH',
    'SANDLOT_MAX_COST_PER_MONTH',
    'SANDLOT_MAX_SECONDS_PER_MONTH',
    'SANDLOT_TOTAL_TURNS_PER_DAY',
    'SANDLOT_TOTAL_CALLS_PER_DAY',
    'SANDLOT_TOTAL_TOKENS_PER_DAY',
    'SANDLOT_TOTAL_COST_PER_DAY',
    'SANDLOT_TOTAL_SECONDS_PER_DAY',
    'SANDLOT_TOTAL_TURNS_PER_MONTH',
    'SANDLOT_TOTAL_CALLS_PER_MONTH',
    'SANDLOT_TOTAL_TOKENS_PER_MONTH',
    'SANDLOT_TOTAL_COST_PER_MONTH',
    'SANDLOT_TOTAL_SECONDS_PER_MONTH',
    'SANDLOT_BUDGET_WARNING',
    'SANDLOT_MODEL_IDLE_SECONDS',
    'SANDLOT_MODEL_PROGRESS_SECONDS',
    'SANDLOT_STORE_MB',
    'SANDLOT_APPROVAL_TTL',
    'SANDLOT_SANDBOX',
    'SANDLOT_TEST_LOCAL_PROCESS',
    'SANDLOT_SANDBOX_IMAGE',
    'SANDLOT_SANDBOX_MEMORY_MB',
    'SANDLOT_SANDBOX_CPUS',
    'SANDLOT_SANDBOX_PIDS',
    'SANDLOT_SANDBOX_DISK_MB',
    'SANDLOT_SANDBOX_RUNTIME',
    'SANDLOT_SANDBOX_PROFILE',
    'SANDLOT_SANDBOX_DEBUG_USERS',
    'SANDLOT_SANDBOX_POOL',
    'SANDLOT_SANDBOX_PAUSE_AFTER_MS',
    'SANDLOT_SANDBOX_STOP_AFTER_MS',
    'SANDLOT_SANDBOX_DISK_ENTRIES',
    'SANDLOT_AGENT_LISTEN',
    'SANDLOT_AGENT_ADVERTISE',
    'SANDLOT_AGENT_TOKEN',
    'SANDLOT_HOST_PROMPTS',
    'SANDLOT_HOST_SANDBOXES',
    'SANDLOT_HOST_MEMORY_MB',
    'SANDLOT_HOST_DISK_FREE_MB',
    'SANDLOT_HOST_FILES_FREE',
    'SANDLOT_SANDBOX_NETWORK',
    'SANDLOT_EGRESS_ALLOW',
    'SANDLOT_EGRESS_CREDENTIALS',
    'SANDLOT_EGRESS_CONNECTIONS',
    'SANDLOT_EGRESS_MB_PER_HOUR',
    'SANDLOT_SANDBOX_TMP_MB',
    'SANDLOT_SANDBOX_OPEN_FILES',
    ...KUBERNETES,
  ],
  'engine-gate': [
    'DOCKER_HOST',
    'DOCKER_CERT_PATH',
    'DOCKER_TLS_VERIFY',
    'SANDLOT_DEPLOYMENT',
    'SANDLOT_ENGINE_MAX_CONTAINERS',
    'SANDLOT_ENGINE_MAX_VOLUMES',
    'SANDLOT_SANDBOX_IMAGE',
    'SANDLOT_SANDBOX_MEMORY_MB',
    'SANDLOT_SANDBOX_CPUS',
    'SANDLOT_SANDBOX_PIDS',
    'SANDLOT_SANDBOX_TMP_MB',
    'SANDLOT_SANDBOX_DISK_MB',
    'SANDLOT_SANDBOX_OPEN_FILES',
    'SANDLOT_SANDBOX_RUNTIME',
    'SANDLOT_SANDBOX_PROFILE',
    'SANDLOT_SANDBOX_DEBUG_USERS',
  ],
  // Has the engine itself: the gate cannot read volumes.
  backup: [
    'DATABASE_URL',
    'SANDLOT_KEYS_DIR',
    'DOCKER_HOST',
    'DOCKER_CERT_PATH',
    'DOCKER_TLS_VERIFY',
    'SANDLOT_SANDBOX',
    'SANDLOT_SANDBOX_IMAGE',
    // For the Pods that copy workspaces, and for the volumes that are restored.
    'SANDLOT_SANDBOX_MEMORY_MB',
    'SANDLOT_SANDBOX_CPUS',
    'SANDLOT_SANDBOX_TMP_MB',
    'SANDLOT_SANDBOX_DISK_MB',
    ...KUBERNETES,
    'SANDLOT_BACKUP_DIR',
    'SANDLOT_BACKUP_PASSPHRASE',
    'SANDLOT_BACKUP_EVERY_HOURS',
    'SANDLOT_BACKUP_KEEP',
  ],
  service: [
    // Settings of the other processes, for administrators; set by the launcher.
    'SANDLOT_OTHER_SETTINGS',
    'HOST',
    'PORT',
    'SANDLOT_AGENT_URL',
    'SANDLOT_AGENT_TOKEN',
    'SANDLOT_SESSIONS_DB',
    'SANDLOT_WEB_DIST',
    'SANDLOT_PUBLIC_URL',
    'SANDLOT_ALLOWED_ORIGINS',
    'SANDLOT_TRUSTED_PROXIES',
    'SANDLOT_PREVIEW_HOST',
    'SANDLOT_METRICS_TOKEN',
    'SANDLOT_OIDC',
    'SANDLOT_LOCAL_SIGN_IN',
    'SANDLOT_SMTP_URL',
    'SANDLOT_MAIL_FROM',
    'SANDLOT_ALERT_EMAIL',
    'SANDLOT_ALERT_WEBHOOK',
  ],
} as const satisfies Record<string, readonly string[]>

export type ChildName = keyof typeof OWN

/** Names of the settings of one process. */
export function namesFor(child: ChildName): string[] {
  const alone = child === 'engine-gate' || child === 'backup'
  return alone ? ['SANDLOT_DATA', ...OWN[child]] : [...BOTH, ...OWN[child]]
}

/** Variables that MCP servers of the configuration file refer to; each server gets only its own. */
const FOR_MCP_SERVERS = /^MCP_[A-Z0-9_]+$/

/** The environment of one child: machine, shared and own settings, each also as `NAME_FILE`. */
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
