/** Settings of sandboxes, the host that runs them, and their network. */
import { SANDBOX_BACKEND_NAMES } from './sandbox-backends.ts'
import { type Setting, choice, decimal, FLAG, matching, TEXT, whole } from './setting.ts'

/** The gate permits, and backups restore, what the agent requests. */
const EVERY_SANDBOX = ['ai-agent', 'engine-gate', 'backup'] as const
const CLUSTER = ['ai-agent', 'backup'] as const

/** Name of a Secret or a class. */
const CLUSTER_NAME = matching(
  /^(?=.{1,253}$)[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?$/,
  'must be a name of Kubernetes, of at most 253 characters',
)

export const SANDBOX_SETTINGS = {
  SANDLOT_SANDBOX: {
    meaning: 'backend of the sandboxes',
    schema: { ...choice(...SANDBOX_BACKEND_NAMES), undocumented: ['local-process'] },
    default: 'docker',
    processes: ['launcher', 'ai-agent', 'backup'],
  },
  SANDLOT_SANDBOX_IMAGE: {
    meaning:
      'your own image for sandboxes (default: sandlot/sandbox-full; until it is built, sandlot/sandbox); on Kubernetes a must, by digest',
    schema: matching(/^[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,255}$/, 'must be the name of an image'),
    processes: ['launcher', 'ai-agent', 'engine-gate', 'backup'],
  },
  SANDLOT_SANDBOX_MEMORY_MB: {
    meaning: 'memory of one sandbox',
    schema: whole(64, 1024 * 1024),
    default: '2048',
    processes: EVERY_SANDBOX,
  },
  SANDLOT_SANDBOX_CPUS: {
    meaning: 'CPUs of one sandbox',
    schema: decimal('2 or 0.5', 0.1, 1024),
    default: '2',
    processes: EVERY_SANDBOX,
  },
  SANDLOT_SANDBOX_PIDS: {
    meaning: 'processes of one sandbox',
    schema: whole(16, 1_000_000),
    default: '512',
    processes: EVERY_SANDBOX,
  },
  SANDLOT_SANDBOX_TMP_MB: {
    meaning: 'size of /tmp, part of the memory (default 256, less in a small sandbox)',
    schema: whole(1, 256 * 1024),
    processes: EVERY_SANDBOX,
  },
  SANDLOT_SANDBOX_DISK_MB: {
    meaning: 'disk budget of one workspace, and largest file',
    schema: whole(64, 16 * 1024 * 1024),
    default: '4096',
    processes: EVERY_SANDBOX,
  },
  SANDLOT_SANDBOX_DISK_ENTRIES: {
    meaning: 'files and directories in one workspace',
    schema: whole(1_000, 2 ** 31),
    default: '500000',
    processes: ['ai-agent'],
  },
  SANDLOT_HOST_PROMPTS: {
    meaning: 'prompts that run at once; others are queued',
    schema: whole(0, 100_000),
    default: '0',
    processes: ['ai-agent'],
  },
  SANDLOT_HOST_SANDBOXES: {
    meaning: 'sandboxes that may run at once',
    schema: whole(0, 100_000),
    default: '0',
    processes: ['ai-agent'],
  },
  SANDLOT_HOST_MEMORY_MB: {
    meaning: 'memory of all running sandboxes together',
    schema: whole(0, 1024 * 1024 * 1024),
    default: '0',
    processes: ['ai-agent'],
  },
  SANDLOT_HOST_DISK_FREE_MB: {
    meaning: 'no sandbox may write below this free space of the host; 0 = never',
    schema: whole(0, 1024 * 1024 * 1024),
    default: '2048',
    processes: ['ai-agent'],
  },
  SANDLOT_SANDBOX_RUNTIME: {
    meaning: 'OCI runtime, for example runsc, on Kubernetes a RuntimeClass (default: the engine’s)',
    schema: TEXT,
    processes: ['ai-agent', 'engine-gate'],
  },
  SANDLOT_KUBERNETES_NAMESPACE: {
    meaning: 'namespace of the sandboxes',
    schema: matching(
      /^(?=.{1,63}$)[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?$/,
      'must be a name of Kubernetes, of at most 63 characters',
    ),
    default: 'sandlot-sandboxes',
    processes: CLUSTER,
  },
  SANDLOT_KUBERNETES_KUBECONFIG: {
    meaning:
      'file with the way to the cluster (default: the service account of the agent’s Pod, else KUBECONFIG)',
    schema: TEXT,
    processes: CLUSTER,
  },
  SANDLOT_KUBERNETES_STORAGE_CLASS: {
    meaning: 'StorageClass of workspaces (default: the cluster’s)',
    schema: CLUSTER_NAME,
    processes: CLUSTER,
  },
  SANDLOT_KUBERNETES_MEMORY_REQUEST: {
    meaning: 'share of its memory that each sandbox reserves',
    schema: decimal('0.25', 0.01, 1),
    default: '0.25',
    processes: CLUSTER,
  },
  SANDLOT_KUBERNETES_PULL_SECRET: {
    meaning: 'Secret for the registry of the image, in that namespace (default: none)',
    schema: CLUSTER_NAME,
    processes: CLUSTER,
  },
  SANDLOT_KUBERNETES_USER_NAMESPACES: {
    meaning: 'sandboxes have user namespaces',
    schema: FLAG,
    default: 'false',
    processes: CLUSTER,
  },
  SANDLOT_KUBERNETES_NETWORK_DOWN: {
    meaning: 'an init container takes the network interfaces down',
    schema: FLAG,
    default: 'true',
    processes: CLUSTER,
  },
  SANDLOT_KUBERNETES_STREAM_MB: {
    meaning: 'megabytes per second between one sandbox and the API server; an agent has four times that',
    schema: whole(1, 1_000),
    default: '8',
    processes: CLUSTER,
  },
  SANDLOT_SANDBOX_DEBUG_USERS: {
    meaning: 'comma-separated ids or e-mail addresses of users for whom strace and gdb work; *: everybody',
    schema: TEXT,
    processes: ['ai-agent', 'engine-gate'],
  },
  SANDLOT_SANDBOX_POOL: {
    meaning: 'sandboxes kept ready for new users; auto: 2 or more, 0: none',
    schema: { ...whole(0, 100), or: 'auto' },
    default: 'auto',
    processes: ['ai-agent'],
  },
  SANDLOT_SANDBOX_PAUSE_AFTER_MS: {
    meaning: 'an idle sandbox is paused after this time; 0 = never',
    schema: whole(0, 86_400_000),
    default: '60000',
    processes: ['ai-agent'],
  },
  SANDLOT_SANDBOX_STOP_AFTER_MS: {
    meaning: 'an idle sandbox is stopped after this time; 0 = never',
    schema: whole(0, 7 * 86_400_000),
    default: '1800000',
    processes: ['ai-agent'],
  },
  SANDLOT_SANDBOX_NETWORK: {
    meaning: 'what commands may reach',
    schema: choice('none', 'egress'),
    default: 'none',
    processes: ['ai-agent'],
  },
  SANDLOT_EGRESS_ALLOW: {
    meaning:
      'comma-separated hosts for egress: example.org, *.example.org, example.org:8080, package-registries, git-hosts',
    schema: TEXT,
    processes: ['ai-agent'],
  },
  SANDLOT_EGRESS_CREDENTIALS: {
    meaning: 'JSON, host → {value, header}: header added to plain HTTP requests, outside the sandbox',
    schema: TEXT,
    processes: ['ai-agent'],
    secret: true,
  },
  SANDLOT_EGRESS_MB_PER_HOUR: {
    meaning: 'MiB of one user in both directions',
    schema: whole(1, 16 * 1024 * 1024),
    default: '20480',
    processes: ['ai-agent'],
  },
  SANDLOT_DEPLOYMENT: {
    meaning: 'id in the labels of containers and volumes (default: generated once)',
    schema: matching(
      /^[a-z0-9][a-z0-9-]{0,39}$/,
      'must be lower-case letters, digits and dashes, at most 40',
    ),
    processes: ['ai-agent', 'engine-gate'],
  },
  SANDLOT_ENGINE_MAX_CONTAINERS: {
    meaning: 'containers that the engine gate permits at once',
    schema: whole(1, 100_000),
    default: '1000',
    processes: ['engine-gate'],
  },
} as const satisfies Record<string, Setting>
