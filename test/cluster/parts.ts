/** Parts of a test cluster: one process each. Any process of the test run can kill one and start it again. */
import { spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { markOf } from '../../packages/cli/src/processes/process-mark.ts'
import { cgroupFile } from './cgroups.ts'

export const NODES = [1, 2] as const
export type NodeNumber = (typeof NODES)[number]
export const CONTROL_PARTS = ['etcd', 'apiserver', 'manager', 'scheduler', 'dns', 'volumes'] as const
export const NODE_PARTS = ['mounts', 'containerd', 'kubelet', 'proxy'] as const
export type Part = (typeof CONTROL_PARTS)[number] | `${(typeof NODE_PARTS)[number]}${NodeNumber}`

/** Facts of a running cluster, in `cluster.json` of its folder. */
export interface Facts {
  /** Prefix of its network namespaces and name of its cgroup. */
  id: string
  folder: string
  /** The folder of its programs. */
  tool: string
  /** The sandbox image by digest, which both nodes have. */
  image: string
}

/** Socket of a node's containerd, in the mount namespace of the node. */
export const SOCKET = '/run/containerd/containerd.sock'
/** Address of the control plane, in its namespace. */
export const CONTROL = '10.77.0.1'

/** Network namespace of the control plane, or of a node. */
export function netns(id: string, node?: NodeNumber): string {
  return node === undefined ? id : `${id}-${node}`
}

/** Starts a part in the background, with its output in `log/`. */
export function startPart(facts: Facts, part: Part): void {
  const { folder, id } = facts
  const node = nodeOf(part)
  const mounts = node !== undefined && (part.startsWith('containerd') || part.startsWith('kubelet'))
  const enter = [
    `--net=/run/netns/${netns(id, node)}`,
    ...(mounts ? [`--mount=/proc/${partPid(facts, `mounts${node}`)}/ns/mnt`] : []),
  ]
  const output = openSync(join(folder, 'log', part), 'a')
  const child = spawn(
    'bash',
    [
      '-c',
      'echo $$ >"$1" && shift && exec "$@"',
      'bash',
      cgroupFile(id, node === undefined ? 'control' : `parts${node}`),
      'nsenter',
      ...enter,
      ...command(facts, part),
    ],
    { detached: true, stdio: ['ignore', output, output], cwd: '/', env: { PATH: SYSTEM_PATH } },
  )
  child.unref()
  closeSync(output)
  writeFileSync(pidFile(folder, part), String(child.pid))
}

const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const pidFile = (folder: string, part: Part): string => join(folder, 'run', part)

/** Process id of a part that was started. */
export function partPid({ folder }: Facts, part: Part): number {
  return Number(readFileSync(pidFile(folder, part), 'utf8'))
}

/** Sends a signal to the part and its children in its process group; after SIGKILL waits until it is gone. */
export async function signalPart(facts: Facts, part: Part, signal: NodeJS.Signals): Promise<void> {
  const pid = partPid(facts, part)
  process.kill(-pid, signal)
  if (signal === 'SIGKILL') await waitUntil(`the end of ${part}`, () => markOf(pid) === undefined)
}

export function nodeOf(part: Part): NodeNumber | undefined {
  return NODES.find((node) => part.endsWith(String(node)))
}

/** Waits until `ready`, which is asked again after 100 ms. Rejects after `seconds`, saying what did not come. */
export async function waitUntil(
  what: string,
  ready: () => boolean | Promise<boolean>,
  seconds = 180,
): Promise<void> {
  const deadline = performance.now() + seconds * 1_000
  while (!(await ready())) {
    if (performance.now() > deadline) throw new Error(`${what} did not come within ${seconds} s`)
    await sleep(100)
  }
}

/** Starts the parts of a node in their order, as at power on. */
export async function startNodeParts(facts: Facts, node: NodeNumber): Promise<void> {
  const ready = join(facts.folder, `node${node}`, 'mounted')
  startPart(facts, `mounts${node}`)
  await waitUntil(`mounts of node ${node}`, () => existsSync(ready) && readFileSync(ready, 'utf8') === mark())
  startPart(facts, `containerd${node}`)
  startPart(facts, `kubelet${node}`)
  startPart(facts, `proxy${node}`)
  function mark(): string {
    return `${partPid(facts, `mounts${node}`)}\n`
  }
}

function command(facts: Facts, part: Part): string[] {
  const { folder, tool } = facts
  const node = nodeOf(part)
  const kube = join(tool, 'kube')
  const pki = (name: string): string => join(tool, 'pki', name)
  const controller = (name: string): string[] => [
    kube,
    name,
    `--kubeconfig=${pki(`${name}.conf`)}`,
    '--leader-elect=false',
  ]
  if (node !== undefined) return nodeCommand(facts, part, node)
  switch (part) {
    case 'etcd':
      return [
        'etcd',
        `--data-dir=${join(folder, 'etcd')}`,
        '--unsafe-no-fsync',
        `--listen-client-urls=${ETCD}`,
        `--advertise-client-urls=${ETCD}`,
        '--listen-peer-urls=http://127.0.0.1:2380',
      ]
    case 'apiserver':
      return [
        kube,
        'kube-apiserver',
        `--etcd-servers=${ETCD}`,
        '--secure-port=6443',
        '--bind-address=0.0.0.0',
        `--advertise-address=${CONTROL}`,
        `--client-ca-file=${pki('ca.crt')}`,
        `--tls-cert-file=${pki('apiserver.crt')}`,
        `--tls-private-key-file=${pki('apiserver.key')}`,
        `--kubelet-client-certificate=${pki('kubelet-client.crt')}`,
        `--kubelet-client-key=${pki('kubelet-client.key')}`,
        `--kubelet-certificate-authority=${pki('ca.crt')}`,
        // It dials a node by its name otherwise, which no DNS here knows.
        '--kubelet-preferred-address-types=InternalIP',
        '--service-account-issuer=https://kubernetes.default.svc',
        `--service-account-key-file=${pki('service-accounts.pub')}`,
        `--service-account-signing-key-file=${pki('service-accounts.key')}`,
        '--service-cluster-ip-range=10.96.0.0/16',
        '--authorization-mode=Node,RBAC',
        '--enable-admission-plugins=NodeRestriction',
        '--allow-privileged=true',
        `--audit-policy-file=${join(folder, 'audit.json')}`,
        `--audit-log-path=${join(folder, 'audit.log')}`,
      ]
    case 'manager':
      return [
        ...controller('kube-controller-manager'),
        `--service-account-private-key-file=${pki('service-accounts.key')}`,
        `--root-ca-file=${pki('ca.crt')}`,
        '--use-service-account-credentials',
        // A node is lost after 20 s instead of 50, so that a test need not wait longer.
        '--node-monitor-grace-period=20s',
      ]
    case 'scheduler':
      return controller('kube-scheduler')
    case 'dns':
      return [join(tool, 'dns'), '-conf', join(folder, 'Corefile')]
    default:
      return ['bash', join(import.meta.dirname, 'volumes.sh'), kube, pki('admin.conf'), folder]
  }
}

const ETCD = 'http://127.0.0.1:2379'

function nodeCommand({ folder, tool }: Facts, part: Part, node: NodeNumber): string[] {
  const home = join(folder, `node${node}`)
  const kube = join(tool, 'kube')
  if (part.startsWith('containerd')) return ['containerd', '-c', join(home, 'containerd.toml')]
  if (part.startsWith('kubelet'))
    return [
      // It ends where its runtime does not answer, and nothing here would start it again.
      'bash',
      '-c',
      `until [[ -S ${SOCKET} ]]; do sleep 0.05; done; exec "$@"`,
      'bash',
      kube,
      'kubelet',
      `--config=${join(home, 'kubelet.json')}`,
      `--kubeconfig=${join(tool, 'pki', `node${node}.conf`)}`,
      `--root-dir=${join(home, 'kubelet')}`,
      `--cert-dir=${join(home, 'certificates')}`,
      `--hostname-override=node${node}`,
      `--node-ip=10.77.0.1${node}`,
    ]
  if (part.startsWith('proxy'))
    return [kube, 'kube-proxy', `--config=${join(home, 'proxy.json')}`, `--hostname-override=node${node}`]
  // Folders that every node of the machine would write into are its own; what a Pod mounts is shared with kubelet and runtime.
  const script =
    'mount --make-rshared / && for f in /run /var/lib /var/log; do mount -t tmpfs none $f || exit; done; mkdir /run/netns; echo $$ >"$1"; exec sleep infinity'
  return ['unshare', '--mount', '--propagation=private', 'bash', '-c', script, 'bash', join(home, 'mounted')]
}
