/**
 * Every `SANDLOT_*` name that any package reads. An unknown name is refused at start with a
 * suggestion, because a silently ignored misspelling is worse than a failed start.
 */
export const CONFIG_NAMES: Record<string, string> = {
  SANDLOT_DATA: 'data folder; ./.sandlot for up, /data in compose',
  SANDLOT_KEYS_DIR:
    'folder with the keys, the same on every host (default: $SANDLOT_DATA/keys; docs/postgresql.md)',
  SANDLOT_CONFIG:
    'JSON file with structured settings, or a folder with sandlot.json and agent.env (default $SANDLOT_DATA/sandlot.json, which may be absent)',
  SANDLOT_DEFAULT_MODE: 'manual | auto-edit | auto | yolo; mode of a new chat (default auto-edit)',
  SANDLOT_TOOLS_ENABLED: 'true | false; false: the model gets no tools',
  SANDLOT_BUILTIN_TOOLS: 'comma-separated built-in tools to offer (default: all)',
  SANDLOT_TOOL_TIMEOUT_MS: '1000–300000; for tools that declare none (default 10000)',
  SANDLOT_MAX_CONCURRENT_TOOLS: '1–10; reads that run together (default 10)',
  SANDLOT_MAX_TURNS: '1–1000; model answers per prompt (default 100)',
  SANDLOT_MAX_CALLS: 'calls per prompt (default 0)',
  SANDLOT_MAX_TOKENS: 'tokens per prompt, in and out (default 0)',
  SANDLOT_MAX_COST: 'US dollars per prompt, where the model’s price is known (default 0)',
  SANDLOT_MAX_PROMPT_SECONDS: 'time per prompt, waiting included (default 0)',
  SANDLOT_MAX_TURNS_PER_DAY: 'model answers per user and day (default 0)',
  SANDLOT_MAX_CALLS_PER_DAY: 'calls per user and day (default 0)',
  SANDLOT_MAX_TOKENS_PER_DAY: 'tokens per user and day (default 0)',
  SANDLOT_MAX_COST_PER_DAY: 'US dollars per user and day (default 0)',
  SANDLOT_MAX_SECONDS_PER_DAY: 'running time of a user’s prompts per day (default 0)',
  SANDLOT_MAX_TURNS_PER_MONTH: 'model answers per user and month (default 0)',
  SANDLOT_MAX_CALLS_PER_MONTH: 'calls per user and month (default 0)',
  SANDLOT_MAX_TOKENS_PER_MONTH: 'tokens per user and month (default 0)',
  SANDLOT_MAX_COST_PER_MONTH: 'US dollars per user and month (default 0)',
  SANDLOT_MAX_SECONDS_PER_MONTH: 'running time of a user’s prompts per month (default 0)',
  SANDLOT_TOTAL_TURNS_PER_DAY: 'model answers of all users per day (default 0)',
  SANDLOT_TOTAL_CALLS_PER_DAY: 'calls of all users per day (default 0)',
  SANDLOT_TOTAL_TOKENS_PER_DAY: 'tokens of all users per day (default 0)',
  SANDLOT_TOTAL_COST_PER_DAY: 'US dollars of all users per day (default 0)',
  SANDLOT_TOTAL_SECONDS_PER_DAY: 'running time of all users’ prompts per day (default 0)',
  SANDLOT_TOTAL_TURNS_PER_MONTH: 'model answers of all users per month (default 0)',
  SANDLOT_TOTAL_CALLS_PER_MONTH: 'calls of all users per month (default 0)',
  SANDLOT_TOTAL_TOKENS_PER_MONTH: 'tokens of all users per month (default 0)',
  SANDLOT_TOTAL_COST_PER_MONTH: 'US dollars of all users per month (default 0)',
  SANDLOT_TOTAL_SECONDS_PER_MONTH: 'running time of all users’ prompts per month (default 0)',
  SANDLOT_BUDGET_WARNING:
    '0–100; percent of a daily or monthly limit at which people are warned; 0 = never (default 80)',
  SANDLOT_MODEL_IDLE_SECONDS:
    '1–3600; a model request that receives nothing for that long is retried (default 60)',
  SANDLOT_MODEL_PROGRESS_SECONDS: '1–3600; the same if only keep-alives arrive (default 120)',
  SANDLOT_RESULT_CHARS: '1000–200000; characters of one result that the model reads (default 10000)',
  SANDLOT_RESULT_LINES: '10–20000; lines of one result that the model reads (default 1000)',
  SANDLOT_OUTPUT_LIMIT: 'stored bytes of one call’s output (default 268435456)',
  SANDLOT_STORE_MB: 'what one person’s chats may store: messages, outputs, images (default 4096)',
  SANDLOT_APPROVAL_TTL: 'seconds after which an unanswered approval is denied (default 86400)',
  SANDLOT_SANDBOX: 'docker | kubernetes; backend of the sandboxes (default docker)',
  SANDLOT_SANDBOX_IMAGE:
    'your own image for sandboxes (default: sandlot/sandbox-full; until it is built, sandlot/sandbox); on Kubernetes a must, by digest',
  SANDLOT_SANDBOX_MEMORY_MB: 'memory of one sandbox (default 2048)',
  SANDLOT_SANDBOX_CPUS: 'CPUs of one sandbox (default 2)',
  SANDLOT_SANDBOX_PIDS: 'processes of one sandbox (default 512)',
  SANDLOT_SANDBOX_TMP_MB: 'size of /tmp, part of the memory (default 256, less in a small sandbox)',
  SANDLOT_SANDBOX_DISK_MB: 'disk budget of one workspace, and largest file (default 4096)',
  SANDLOT_SANDBOX_DISK_ENTRIES: 'files and directories in one workspace (default 500000)',
  SANDLOT_SANDBOX_OPEN_FILES: 'open files of one process in a sandbox (default 4096)',
  SANDLOT_HOST_PROMPTS: 'prompts that run at once; others are queued (default 0)',
  SANDLOT_HOST_SANDBOXES: 'sandboxes that may run at once (default 0)',
  SANDLOT_HOST_MEMORY_MB: 'memory of all running sandboxes together (default 0)',
  SANDLOT_HOST_DISK_FREE_MB:
    'no sandbox may write below this free space of the host; 0 = never (default 2048)',
  SANDLOT_HOST_FILES_FREE: 'the same for free inodes; 0 = never (default 10000)',
  SANDLOT_SANDBOX_RUNTIME:
    'OCI runtime, for example runsc, on Kubernetes a RuntimeClass (default: the engine’s)',
  SANDLOT_KUBERNETES_NAMESPACE: 'namespace of the sandboxes (default sandlot-sandboxes)',
  SANDLOT_KUBERNETES_KUBECONFIG:
    'file with the way to the cluster (default: the service account of the agent’s Pod, else KUBECONFIG)',
  SANDLOT_KUBERNETES_STORAGE_CLASS: 'StorageClass of workspaces (default: the cluster’s)',
  SANDLOT_KUBERNETES_MEMORY_REQUEST: 'share of its memory that each sandbox reserves (default 0.25)',
  SANDLOT_KUBERNETES_PULL_SECRET: 'Secret for the registry of the image, in that namespace (default: none)',
  SANDLOT_KUBERNETES_USER_NAMESPACES: 'true | false; sandboxes have user namespaces (default false)',
  SANDLOT_KUBERNETES_NETWORK_DOWN:
    'true | false; an init container takes the network interfaces down (default true)',
  SANDLOT_KUBERNETES_STREAM_MB:
    'megabytes per second between one sandbox and the API server; an agent has four times that (default 8)',
  SANDLOT_SANDBOX_PROFILE: 'default | debug; debug: strace and gdb work in every sandbox (default default)',
  SANDLOT_SANDBOX_DEBUG_USERS:
    'comma-separated ids or e-mail addresses of users for whom strace and gdb work',
  SANDLOT_SANDBOX_POOL:
    'auto | 0–100; sandboxes kept ready for new users (default auto: 2 or more; 0 = none)',
  SANDLOT_SANDBOX_PAUSE_AFTER_MS: 'an idle sandbox is paused after this time; 0 = never (default 60000)',
  SANDLOT_SANDBOX_STOP_AFTER_MS: 'an idle sandbox is stopped after this time; 0 = never (default 1800000)',
  SANDLOT_SANDBOX_NETWORK: 'none | egress; what commands may reach (default none)',
  SANDLOT_EGRESS_ALLOW:
    'comma-separated hosts for egress: example.org, *.example.org, example.org:8080, package-registries, git-hosts',
  SANDLOT_EGRESS_CREDENTIALS:
    'JSON, host → {value, header}: header added to plain HTTP requests, outside the sandbox',
  SANDLOT_EGRESS_CONNECTIONS: '1–4096; connections of one user at once (default 256)',
  SANDLOT_EGRESS_MB_PER_HOUR: 'MiB of one user in both directions (default 20480)',
  SANDLOT_DEPLOYMENT: 'id in the labels of containers and volumes (default: generated once)',
  SANDLOT_ENGINE_MAX_CONTAINERS: 'containers that the engine gate permits at once (default 1000)',
  SANDLOT_ENGINE_MAX_VOLUMES: 'volumes that the engine gate permits at once (default 10000)',
  SANDLOT_AGENT_URL: 'where the service finds ai-agent (default: the Unix socket in $SANDLOT_DATA/run)',
  SANDLOT_AGENT_LISTEN:
    'host:port, like 0.0.0.0:7443, where ai-agent also listens with TLS for services on other hosts; needs DATABASE_URL (default: none)',
  SANDLOT_AGENT_ADVERTISE:
    'host:port under which services reach SANDLOT_AGENT_LISTEN (default: that, with this host’s name for 0.0.0.0)',
  SANDLOT_AGENT_TOKEN:
    'token that services show ai-agent there, the same for all; at least 16 characters (default: generated in the folder of keys)',
  SANDLOT_SESSIONS_DB:
    'where the service reads ai-agent’s sessions.db (default: in $SANDLOT_DATA; compose sets it)',
  SANDLOT_REPLICA:
    'name of this ai-agent among several on PostgreSQL: letters, digits, dashes (default: a new one at each start; up and compose set it)',
  SANDLOT_SESSIONS_DB_MODE:
    '0600 | 0640; mode of sessions.db; 0640 if the service is another user, in ai-agent’s group (default 0600; compose sets 0640)',
  SANDLOT_WEB_DIST: 'folder of the built web app',
  SANDLOT_PUBLIC_URL: 'public address, behind a reverse proxy',
  SANDLOT_PREVIEW_HOST:
    'host for previews of apps in sandboxes, like preview.chat.example.org (docs/previews.md)',
  SANDLOT_ALLOWED_ORIGINS: 'comma-separated further origins that may open a WebSocket',
  SANDLOT_TRUSTED_PROXIES:
    'comma-separated addresses and networks (CIDR) of proxies whose X-Forwarded-For is trusted; own-networks: with SANDLOT_PUBLIC_URL, the networks of this machine or container (default: with SANDLOT_PUBLIC_URL 127.0.0.0/8 and ::1; compose sets own-networks)',
  SANDLOT_OIDC: 'JSON: identity providers, [{name, issuer, clientId, clientSecret, …}] (docs/sign-in.md)',
  SANDLOT_LOCAL_SIGN_IN: 'all | admins; admins: only administrators sign in with a password (default all)',
  SANDLOT_METRICS_TOKEN: 'bearer token for /metrics from other machines',
  SANDLOT_BACKUP_PASSPHRASE:
    'seals keys and settings in a backup; at least 8 characters, best from a file (SANDLOT_BACKUP_PASSPHRASE_FILE)',
  SANDLOT_BACKUP_DIR: 'folder for backups (default $SANDLOT_DATA/backups); best on another disk',
  SANDLOT_BACKUP_EVERY_HOURS: '1–8760; interval of scheduled backups; 0 = never (default 0)',
  SANDLOT_BACKUP_KEEP: 'scheduled backups to keep (default 7)',
  SANDLOT_SMTP_URL:
    'server for e-mail: smtp://user:password@mail.example.org:587 (STARTTLS, which a password needs) or smtps://… (default: no e-mail)',
  SANDLOT_MAIL_FROM: 'sender of e-mail, like Sandlot <sandlot@example.org>',
  SANDLOT_ALERT_EMAIL: 'comma-separated addresses to notify of failures and recoveries (docs/watching.md)',
  SANDLOT_ALERT_WEBHOOK: 'URL for the same notifications, signed',
  SANDLOT_ENV_FILE_NAMES: 'names that .env has set, comma-separated; ./sandlot fills it in',
  SANDLOT_OTHER_SETTINGS:
    'settings of the gate, of backups and of the launcher, as JSON; ./sandlot fills it in',
  SANDLOT_APT_MIRROR: 'Debian mirror for the base image, if no image registry answers',
  SANDLOT_BUILD_NETWORK: 'network of the containers that build images (default: the engine’s)',
  SANDLOT_API_KEY: 'key of ./sandlot exec',
  SANDLOT_TEST_SEED: 'seed of sampled test campaigns',
  SANDLOT_TEST_FULL: 'true | false; draw many more samples in tests',
  SANDLOT_TEST_LOCAL_PROCESS: 'true | false; lets SANDLOT_SANDBOX=local-process start',
}

/** True for settings that are a secret or contain one. */
export function isSecretName(name: string): boolean {
  return /(KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE|CREDENTIALS|OTLP_HEADERS|_OIDC|SMTP_URL|DATABASE_URL)$/.test(
    name,
  )
}

/** Edit distance; names are short. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** The known text nearest to `wrong`, if it is near enough to be a misspelling. */
export function nearest(wrong: string, known: Iterable<string>): string | undefined {
  let best: { name: string; far: number } | undefined
  for (const name of known) {
    const far = distance(wrong.toLowerCase(), name.toLowerCase())
    if (best === undefined || far < best.far) best = { name, far }
  }
  return best !== undefined && best.far <= Math.max(2, Math.floor(wrong.length / 4)) ? best.name : undefined
}

/**
 * One sentence for each unknown `SANDLOT_*` name in `env`. `NAME_FILE` counts as the name with its
 * value in a file.
 */
export function unknownConfigNames(env: Record<string, string | undefined>): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith('SANDLOT_'))
    .map((name) => ({ name, base: name in CONFIG_NAMES ? name : name.replace(/_FILE$/, '') }))
    .filter(({ base }) => !(base in CONFIG_NAMES))
    .map(({ name, base }) => {
      const meant = nearest(base, Object.keys(CONFIG_NAMES))
      return `${name} is not a setting of Sandlot${meant === undefined ? '' : `; did you mean ${meant}?`}`
    })
}
