import type { Environment } from '@sandlot/shared/config'

/** What any program needs to run on this machine, and nothing that is a secret. */
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

/**
 * Settings that service and ai-agent both read. `DATABASE_URL` is each one's own database login,
 * the same until they can be distinguished.
 */
const BOTH = [
  'LOG_LEVEL',
  'SANDLOT_DATA',
  'SANDLOT_KEYS_DIR',
  // Where values come from, for administrators; the launcher fills it in.
  'SANDLOT_ENV_FILE_NAMES',
  'SANDLOT_DEFAULT_MODE',
  'DATABASE_URL',
  // To the model and MCP servers; to providers of sign-in and push services.
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'NODE_USE_ENV_PROXY',
]

/**
 * What each process may know. An allow list: an unknown secret stays out. ai-agent alone has the
 * model's key, engine-gate alone the engine; the service alone faces the network.
 */
const OWN = {
  'ai-agent': [
    'OPENAI_API_KEY',
    'OPENAI_BASE_URL',
    'OPENAI_MODEL',
    // The gate's socket; the launcher fills it in, and the engine's own address goes to the gate
    // alone.
    'DOCKER_HOST',
    'SANDLOT_DEPLOYMENT',
    // For spans; the last two are read by the SDK itself, as the headers are.
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'OTEL_EXPORTER_OTLP_HEADERS',
    'OTEL_SERVICE_NAME',
    'OTEL_TRACES_SAMPLER',
    'OTEL_TRACES_SAMPLER_ARG',
    // Of our own MCP servers.
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
    // For the way back from where a user signs in to an MCP server.
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
  // With the engine itself: the gate has no way to read a volume.
  backup: [
    'DATABASE_URL',
    'SANDLOT_KEYS_DIR',
    'DOCKER_HOST',
    'DOCKER_CERT_PATH',
    'DOCKER_TLS_VERIFY',
    'SANDLOT_SANDBOX',
    'SANDLOT_SANDBOX_IMAGE',
    'SANDLOT_BACKUP_DIR',
    'SANDLOT_BACKUP_PASSPHRASE',
    'SANDLOT_BACKUP_EVERY_HOURS',
    'SANDLOT_BACKUP_KEEP',
  ],
  service: [
    // What the others have set, for administrators; the launcher fills it in.
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

/** The names of {@link OWN} and {@link BOTH}, for the test that no setting is forgotten. */
export function namesFor(child: ChildName): string[] {
  const alone = child === 'engine-gate' || child === 'backup'
  return alone ? ['SANDLOT_DATA', ...OWN[child]] : [...BOTH, ...OWN[child]]
}

/**
 * What the configuration file's MCP servers refer to by `${MCP_…}`: ai-agent puts it in, and each
 * server gets its own only.
 */
const FOR_MCP_SERVERS = /^MCP_[A-Z0-9_]+$/

/**
 * The environment of one child: the machine's, the shared settings, and its own, each also as
 * `NAME_FILE`.
 */
export function childEnvironment(child: ChildName, environment: Environment): Record<string, string> {
  const referred =
    child === 'ai-agent' ? Object.keys(environment).filter((name) => FOR_MCP_SERVERS.test(name)) : []
  const names = [...MACHINE, ...referred, ...namesFor(child).flatMap((name) => [name, `${name}_FILE`])]
  const own: Record<string, string> = {}
  for (const name of names) {
    // Proxy settings are written in both cases, and the lower one is the older custom.
    for (const spelled of name.endsWith('_PROXY') ? [name, name.toLowerCase()] : [name]) {
      const value = environment[spelled]
      if (value !== undefined && value !== '') own[spelled] = value
    }
  }
  return { NODE_ENV: 'production', ...own }
}
