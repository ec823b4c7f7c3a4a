/** Settings that several processes read, and those of the service, backups, launcher and tests. */
import {
  type Setting,
  choice,
  FLAG,
  internal,
  launcher,
  matching,
  ORIGIN,
  PROCESSES,
  readBy,
  secret,
  service,
  TEXT,
  url,
  whole,
} from './setting.ts'

const servers = readBy('ai-agent', 'service')
const backup = readBy('backup')
const scheduler = readBy('launcher', 'backup')

export const DEPLOYMENT_SETTINGS = {
  HOST: readBy('launcher', 'service')('address to listen on', TEXT, '127.0.0.1'),
  PORT: readBy('launcher', 'ai-agent', 'service')('port to listen on', whole(0, 65_535), '8002'),
  LOG_LEVEL: servers(
    'how much is logged',
    choice('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    'info',
  ),
  DATABASE_URL: secret(
    readBy(
      'ai-agent',
      'service',
      'backup',
    )(
      'PostgreSQL for chats and accounts, instead of files in SANDLOT_DATA (docs/postgresql.md)',
      url(
        /^postgres(ql)?$/,
        'must be an address like postgres://sandlot:PASSWORD@db.example.org/sandlot; in the password / is written %2F, @ %40, # %23, ? %3F and % %25',
      ),
    ),
  ),
  DOCKER_HOST: readBy(
    'launcher',
    'ai-agent',
    'engine-gate',
    'backup',
  )('the engine that runs the sandboxes (default: the local one, installed and started if missing)', TEXT),
  SANDLOT_DATA: readBy(...PROCESSES)('data folder; /data in compose', TEXT, './.sandlot'),
  SANDLOT_KEYS_DIR: readBy(
    'launcher',
    'ai-agent',
    'service',
    'backup',
  )('folder with the keys, the same on every host (default: $SANDLOT_DATA/keys; docs/postgresql.md)', TEXT),
  SANDLOT_PUBLIC_URL: servers('public address, behind a reverse proxy', ORIGIN),
  SANDLOT_BACKUP_PASSPHRASE: secret(
    scheduler(
      'seals keys and settings in a backup; at least 8 characters, best from a file (SANDLOT_BACKUP_PASSPHRASE_FILE)',
      matching(/^[^]{8,}$/, 'must have at least 8 characters'),
    ),
  ),
  SANDLOT_BACKUP_DIR: backup(
    'folder for backups (default $SANDLOT_DATA/backups); best on another disk',
    TEXT,
  ),
  SANDLOT_BACKUP_EVERY_HOURS: scheduler('interval of scheduled backups; 0 = never', whole(0, 8_760), '0'),
  SANDLOT_BACKUP_KEEP: backup('scheduled backups to keep', whole(1, 10_000), '7'),
  SANDLOT_APT_MIRROR: launcher('Debian mirror for the base image, if no image registry answers', TEXT),
  SANDLOT_BUILD_NETWORK: launcher(
    'network of the containers that build images (default: the engine’s)',
    TEXT,
  ),
  SANDLOT_API_KEY: secret(launcher('key of ./sandlot exec', TEXT)),
  SANDLOT_ENV_FILE_NAMES: internal(servers('names that .env has set, comma-separated', TEXT)),
  SANDLOT_OTHER_SETTINGS: internal(
    service('settings of the gate, of backups and of the launcher, as JSON', TEXT),
  ),
  SANDLOT_TEST_SEED: internal(launcher('seed of sampled test campaigns', whole(0, 2 ** 31 - 1))),
  SANDLOT_TEST_FULL: internal(launcher('draw many more samples in tests', FLAG, 'false')),
  SANDLOT_TEST_LOCAL_PROCESS: internal(
    readBy('launcher', 'ai-agent')('lets SANDLOT_SANDBOX=local-process start', FLAG, 'false'),
  ),
} as const satisfies Record<string, Setting>

export const SERVICE_SETTINGS = {
  SANDLOT_AGENT_URL: service(
    'where the service finds ai-agent (default: the Unix socket in $SANDLOT_DATA/run)',
    matching(/^(ws|wss|ws\+unix):/, 'must be ws://…, wss://… or ws+unix:///path/agent.sock:/acp'),
  ),
  SANDLOT_SESSIONS_DB: internal(
    service(
      'where the service reads ai-agent’s sessions.db (default: in $SANDLOT_DATA; compose sets it)',
      TEXT,
    ),
  ),
  SANDLOT_WEB_DIST: internal(service('folder of the built web app', TEXT)),
  SANDLOT_PREVIEW_HOST: service(
    'host for previews of apps in sandboxes, like preview.chat.example.org (docs/previews.md)',
    matching(
      /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/,
      'must be a host name like preview.chat.example.org, below which each preview has a name of its own',
    ),
  ),
  SANDLOT_ALLOWED_ORIGINS: service('comma-separated further origins that may open a WebSocket', TEXT),
  SANDLOT_TRUSTED_PROXIES: service(
    'comma-separated addresses and networks (CIDR) of proxies whose X-Forwarded-For is trusted; own-networks: with SANDLOT_PUBLIC_URL, the networks of this machine or container (default: with SANDLOT_PUBLIC_URL 127.0.0.0/8 and ::1; compose sets own-networks)',
    TEXT,
  ),
  SANDLOT_OIDC: secret(
    service('JSON: identity providers, [{name, issuer, clientId, clientSecret, …}] (docs/sign-in.md)', TEXT),
  ),
  SANDLOT_LOCAL_SIGN_IN: service(
    'admins: only administrators sign in with a password',
    choice('all', 'admins'),
    'all',
  ),
  SANDLOT_METRICS_TOKEN: secret(
    service(
      'bearer token for /metrics from other machines',
      matching(/^[^]{16,}$/, 'must have at least 16 characters'),
    ),
  ),
  SANDLOT_SMTP_URL: secret(
    service(
      'server for e-mail: smtp://user:password@mail.example.org:587 (STARTTLS, which a password needs) or smtps://… (default: no e-mail)',
      url(/^smtps?$/, 'must be smtp://user:password@mail.example.org:587 or smtps://…'),
    ),
  ),
  SANDLOT_MAIL_FROM: service('sender of e-mail, like Sandlot <sandlot@example.org>', TEXT),
  SANDLOT_ALERT_EMAIL: service(
    'comma-separated addresses to notify of failures and recoveries (docs/watching.md)',
    TEXT,
  ),
  SANDLOT_ALERT_WEBHOOK: service(
    'URL for the same notifications, signed',
    url(/^https?$/, 'must be an http(s) address like https://hooks.example.org/sandlot'),
  ),
} as const satisfies Record<string, Setting>
