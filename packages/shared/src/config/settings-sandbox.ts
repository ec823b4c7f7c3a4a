/** Settings of sandboxes, the host that runs them, and their network. */
import { SANDBOX_BACKEND_NAMES } from './sandbox-backends.ts'
import {
  type Setting,
  agent,
  choice,
  decimal,
  FLAG,
  matching,
  readBy,
  secret,
  TEXT,
  whole,
} from './setting.ts'

/** The gate permits, and backups restore, what the agent requests. */
const sandbox = readBy('ai-agent', 'engine-gate', 'backup')
const gate = readBy('ai-agent', 'engine-gate')
const cluster = readBy('ai-agent', 'backup')

/** Name of a Secret or a class. */
const CLUSTER_NAME = matching(
  /^(?=.{1,253}$)[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?$/,
  'must be a name of Kubernetes, of at most 253 characters',
)

export const SANDBOX_SETTINGS = {
  SANDLOT_SANDBOX: readBy('launcher', 'ai-agent', 'backup')(
    'backend of the sandboxes',
    { ...choice(...SANDBOX_BACKEND_NAMES), undocumented: ['local-process'] },
    'docker',
  ),
  SANDLOT_SANDBOX_IMAGE: readBy(
    'launcher',
    'ai-agent',
    'engine-gate',
    'backup',
  )(
    'your own image for sandboxes (default: sandlot/sandbox-full; until it is built, sandlot/sandbox); on Kubernetes a must, by digest',
    matching(/^[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,255}$/, 'must be the name of an image'),
  ),
  SANDLOT_SANDBOX_MEMORY_MB: sandbox('memory of one sandbox', whole(64, 2 ** 20), '2048'),
  SANDLOT_SANDBOX_CPUS: sandbox('CPUs of one sandbox', decimal('2 or 0.5', 0.1, 1024), '2'),
  SANDLOT_SANDBOX_PIDS: sandbox('processes of one sandbox', whole(16, 1_000_000), '512'),
  SANDLOT_SANDBOX_TMP_MB: sandbox(
    'size of /tmp, part of the memory (default 256, less in a small sandbox)',
    whole(1, 2 ** 18),
  ),
  SANDLOT_SANDBOX_DISK_MB: sandbox(
    'disk budget of one workspace, and largest file',
    whole(64, 2 ** 24),
    '4096',
  ),
  SANDLOT_SANDBOX_DISK_ENTRIES: agent(
    'files and directories in one workspace',
    whole(1_000, 2 ** 31),
    '500000',
  ),
  SANDLOT_HOST_PROMPTS: agent('prompts that run at once; others are queued', whole(0, 100_000), '0'),
  SANDLOT_HOST_SANDBOXES: agent('sandboxes that may run at once', whole(0, 100_000), '0'),
  SANDLOT_HOST_MEMORY_MB: agent('memory of all running sandboxes together', whole(0, 2 ** 30), '0'),
  SANDLOT_HOST_DISK_FREE_MB: agent(
    'no sandbox may write below this free space of the host; 0 = never',
    whole(0, 2 ** 30),
    '2048',
  ),
  SANDLOT_SANDBOX_RUNTIME: gate(
    'OCI runtime, for example runsc, on Kubernetes a RuntimeClass (default: the engine’s)',
    TEXT,
  ),
  SANDLOT_KUBERNETES_NAMESPACE: cluster(
    'namespace of the sandboxes',
    matching(
      /^(?=.{1,63}$)[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?$/,
      'must be a name of Kubernetes, of at most 63 characters',
    ),
    'sandlot-sandboxes',
  ),
  SANDLOT_KUBERNETES_KUBECONFIG: cluster(
    'file with the way to the cluster (default: the service account of the agent’s Pod, else KUBECONFIG)',
    TEXT,
  ),
  SANDLOT_KUBERNETES_STORAGE_CLASS: cluster(
    'StorageClass of workspaces (default: the cluster’s)',
    CLUSTER_NAME,
  ),
  SANDLOT_KUBERNETES_MEMORY_REQUEST: cluster(
    'share of its memory that each sandbox reserves',
    decimal('0.25', 0.01, 1),
    '0.25',
  ),
  SANDLOT_KUBERNETES_PULL_SECRET: cluster(
    'Secret for the registry of the image, in that namespace (default: none)',
    CLUSTER_NAME,
  ),
  SANDLOT_KUBERNETES_USER_NAMESPACES: cluster('sandboxes have user namespaces', FLAG, 'false'),
  SANDLOT_KUBERNETES_NETWORK_DOWN: cluster(
    'an init container takes the network interfaces down',
    FLAG,
    'true',
  ),
  SANDLOT_KUBERNETES_STREAM_MB: cluster(
    'megabytes per second between one sandbox and the API server; an agent has four times that',
    whole(1, 1_000),
    '8',
  ),
  SANDLOT_SANDBOX_DEBUG_USERS: gate(
    'comma-separated ids or e-mail addresses of users for whom strace and gdb work; *: everybody',
    TEXT,
  ),
  SANDLOT_SANDBOX_POOL: agent(
    'sandboxes kept ready for new users; auto: 2 or more, 0: none',
    { ...whole(0, 100), or: 'auto' },
    'auto',
  ),
  SANDLOT_SANDBOX_PAUSE_AFTER_MS: agent(
    'an idle sandbox is paused after this time; 0 = never',
    whole(0, 86_400_000),
    '60000',
  ),
  SANDLOT_SANDBOX_STOP_AFTER_MS: agent(
    'an idle sandbox is stopped after this time; 0 = never',
    whole(0, 7 * 86_400_000),
    '1800000',
  ),
  SANDLOT_SANDBOX_NETWORK: agent('what commands may reach', choice('none', 'egress'), 'none'),
  SANDLOT_EGRESS_ALLOW: agent(
    'comma-separated hosts for egress: example.org, *.example.org, example.org:8080, package-registries, git-hosts',
    TEXT,
  ),
  SANDLOT_EGRESS_CREDENTIALS: secret(
    agent('JSON, host → {value, header}: header added to plain HTTP requests, outside the sandbox', TEXT),
  ),
  SANDLOT_EGRESS_MB_PER_HOUR: agent('MiB of one user in both directions', whole(1, 2 ** 24), '20480'),
  SANDLOT_DEPLOYMENT: gate(
    'id in the labels of containers and volumes (default: generated once)',
    matching(/^[a-z0-9][a-z0-9-]{0,39}$/, 'must be lower-case letters, digits and dashes, at most 40'),
  ),
  SANDLOT_ENGINE_MAX_CONTAINERS: readBy('engine-gate')(
    'containers that the engine gate permits at once',
    whole(1, 100_000),
    '1000',
  ),
} as const satisfies Record<string, Setting>
