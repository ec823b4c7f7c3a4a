/** Settings that several processes read, and those of backups, the launcher and tests. */
import { type Setting, choice, FLAG, matching, PROCESSES, TEXT, url, whole } from './setting.ts'

export const DEPLOYMENT_SETTINGS = {
  HOST: {
    meaning: 'address to listen on',
    schema: TEXT,
    default: '127.0.0.1',
    processes: ['launcher', 'service'],
  },
  PORT: {
    meaning: 'port to listen on',
    schema: whole(0, 65_535),
    default: '8002',
    processes: ['launcher', 'ai-agent', 'service'],
  },
  LOG_LEVEL: {
    meaning: 'how much is logged',
    schema: choice('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    default: 'info',
    processes: ['ai-agent', 'service'],
  },
  DATABASE_URL: {
    meaning: 'PostgreSQL for chats and accounts, instead of files in SANDLOT_DATA (docs/postgresql.md)',
    schema: url(
      /^postgres(ql)?$/,
      'must be an address like postgres://sandlot:PASSWORD@db.example.org/sandlot; in the password / is written %2F, @ %40, # %23, ? %3F and % %25',
    ),
    processes: ['ai-agent', 'service', 'backup'],
    secret: true,
  },
  DOCKER_HOST: {
    meaning: 'the engine that runs the sandboxes (default: the local one, installed and started if missing)',
    schema: TEXT,
    processes: ['launcher', 'ai-agent', 'engine-gate', 'backup'],
  },
  SANDLOT_DATA: {
    meaning: 'data folder; /data in compose',
    schema: TEXT,
    default: './.sandlot',
    processes: PROCESSES,
  },
  SANDLOT_KEYS_DIR: {
    meaning: 'folder with the keys, the same on every host (default: $SANDLOT_DATA/keys; docs/postgresql.md)',
    schema: TEXT,
    processes: ['launcher', 'ai-agent', 'service', 'backup'],
  },
  SANDLOT_PUBLIC_URL: {
    meaning: 'public address, behind a reverse proxy',
    schema: url(/^https?$/, 'must be an address like https://chat.example.org'),
    processes: ['ai-agent', 'service'],
  },
  SANDLOT_BACKUP_PASSPHRASE: {
    meaning:
      'seals keys and settings in a backup; at least 8 characters, best from a file (SANDLOT_BACKUP_PASSPHRASE_FILE)',
    schema: matching(/^[^]{8,}$/, 'must have at least 8 characters'),
    processes: ['launcher', 'backup'],
    secret: true,
  },
  SANDLOT_BACKUP_DIR: {
    meaning: 'folder for backups (default $SANDLOT_DATA/backups); best on another disk',
    schema: TEXT,
    processes: ['backup'],
  },
  SANDLOT_BACKUP_EVERY_HOURS: {
    meaning: 'interval of scheduled backups; 0 = never',
    schema: whole(0, 8_760),
    default: '0',
    processes: ['launcher', 'backup'],
  },
  SANDLOT_BACKUP_KEEP: {
    meaning: 'scheduled backups to keep',
    schema: whole(1, 10_000),
    default: '7',
    processes: ['backup'],
  },
  SANDLOT_APT_MIRROR: {
    meaning: 'Debian mirror for the base image, if no image registry answers',
    schema: TEXT,
    processes: ['launcher'],
  },
  SANDLOT_BUILD_NETWORK: {
    meaning: 'network of the containers that build images (default: the engine’s)',
    schema: TEXT,
    processes: ['launcher'],
  },
  SANDLOT_API_KEY: {
    meaning: 'key of ./sandlot exec',
    schema: TEXT,
    processes: ['launcher'],
    secret: true,
  },
  SANDLOT_ENV_FILE_NAMES: {
    meaning: 'names that .env has set, comma-separated',
    schema: TEXT,
    processes: ['ai-agent', 'service'],
    internal: true,
  },
  SANDLOT_OTHER_SETTINGS: {
    meaning: 'settings of the gate, of backups and of the launcher, as JSON',
    schema: TEXT,
    processes: ['service'],
    internal: true,
  },
  SANDLOT_TEST_SEED: {
    meaning: 'seed of sampled test campaigns',
    schema: whole(0, 2 ** 31 - 1),
    processes: ['launcher'],
    internal: true,
  },
  SANDLOT_TEST_FULL: {
    meaning: 'draw many more samples in tests',
    schema: FLAG,
    default: 'false',
    processes: ['launcher'],
    internal: true,
  },
  SANDLOT_TEST_LOCAL_PROCESS: {
    meaning: 'lets SANDLOT_SANDBOX=local-process start',
    schema: FLAG,
    default: 'false',
    processes: ['launcher', 'ai-agent'],
    internal: true,
  },
} as const satisfies Record<string, Setting>
