/** The Kubernetes that tests named `*.cluster.test.ts` run on: one that the test run started, or a given one. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { testConfig } from '../config.ts'
import { killCgroups } from './cgroups.ts'
import {
  type Facts,
  netns,
  type NodeNumber,
  NODES,
  type Part,
  partPid,
  SOCKET,
  signalPart,
  startNodeParts,
  startPart,
  waitUntil,
} from './parts.ts'

const run = promisify(execFile)

export interface Cluster {
  /** An administrator's; its current context is the cluster. */
  readonly kubeconfig: string
  /** The sandbox image by digest, as its nodes have it. */
  readonly image: string
  /** Runs kubectl. Resolves to its stdout; rejects with its stderr. */
  kubectl(...args: string[]): Promise<string>
  helm(...args: string[]): Promise<string>
  /** A token of a ServiceAccount, for `seconds`. */
  token(namespace: string, serviceAccount: string, seconds?: number): Promise<string>
}

/** One that this test run started: its parts can fail, and each is mended by the test that broke it. */
export interface OwnCluster extends Cluster {
  /** Its parts, whose logs are `log/<part>` in its folder. */
  readonly facts: Facts
  /** SIGKILL, or SIGSTOP and SIGCONT of what is to be silent. */
  signal(part: Part, signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): Promise<void>
  /** Starts a killed part; the API server and etcd are waited for. */
  start(part: Part): Promise<void>
  /** Takes the cable of a node away, or plugs it in. */
  cutNode(node: NodeNumber, cut: boolean): Promise<void>
  /** Ends every process of a node, Pods included. */
  killNode(node: NodeNumber): Promise<void>
  startNode(node: NodeNumber): Promise<void>
  /** Address of the API server for one of two agents outside, `https://…`. */
  agentServer(agent: 1 | 2): string
  /** Drops what an agent and the API server send each other, or lets it through. */
  cutAgent(agent: 1 | 2, cut: boolean): Promise<void>
  /** Takes the images of a file of `./sandlot bundle` into both nodes. */
  loadImages(archive: string): Promise<void>
  /** Gives the sandbox image a second name on both nodes, a reference by the same digest. */
  tagImage(reference: string): Promise<void>
}

/** The cluster in this folder, which {@link startCluster} started. */
export function openCluster(folder: string): OwnCluster {
  const facts = JSON.parse(readFileSync(join(folder, 'cluster.json'), 'utf8')) as Facts
  const { id, tool, image } = facts
  const inside = ['nsenter', `--net=/run/netns/${netns(id)}`]
  const control = (...command: string[]) => run('nsenter', [...inside.slice(1), ...command])
  const kubeconfig = join(tool, 'pki/admin.conf')
  const cluster = clusterOf(
    kubeconfig,
    image,
    [...inside, join(tool, 'kube'), 'kubectl'],
    [...inside, join(tool, 'helm')],
  )
  const ready = () =>
    waitUntil('the API server', () =>
      cluster.kubectl('get', '--raw', '/readyz').then(
        () => true,
        () => false,
      ),
    )
  const images = async (...args: string[]): Promise<void> => {
    const onNode = (node: NodeNumber) => {
      const socket = `/proc/${partPid(facts, `mounts${node}`)}/root${SOCKET}`
      return run('ctr', ['--address', socket, '--namespace', 'k8s.io', 'images', ...args])
    }
    await Promise.all(NODES.map(onNode))
  }
  const agentAddress = (agent: 1 | 2): string => `10.77.0.${1 + agent}`
  return {
    ...cluster,
    facts,
    signal: (part, signal) => signalPart(facts, part, signal),
    async start(part) {
      startPart(facts, part)
      if (part === 'apiserver' || part === 'etcd') await ready()
    },
    async cutNode(node, cut) {
      await control('ip', 'link', 'set', `v${node}`, cut ? 'down' : 'up')
    },
    killNode: (node) => killCgroups(id, [`node${node}`, `parts${node}`]),
    startNode: (node) => startNodeParts(facts, node),
    agentServer: (agent) => `https://${agentAddress(agent)}:6443`,
    async cutAgent(agent, cut) {
      const table = `agent${agent}`
      if (!cut) return void (await control('nft', 'delete', 'table', 'inet', table))
      const chain = `chain input { type filter hook input priority 0; ip daddr ${agentAddress(agent)} drop; ip saddr ${agentAddress(agent)} drop; }\n`
      await control('nft', `table inet ${table} { ${chain} }`)
    },
    loadImages: (archive) => images('import', archive),
    tagImage: (reference) => images('tag', '--force', image, reference),
  }
}

/** One that others keep, by a file that `run.ts` wrote. */
interface Given {
  kubeconfig: string
  image: string
  kubectl: string[]
  helm: string[]
}

function openGiven(folder: string): Cluster {
  const { kubeconfig, image, kubectl, helm } = JSON.parse(
    readFileSync(join(folder, 'given.json'), 'utf8'),
  ) as Given
  return clusterOf(kubeconfig, image, kubectl, helm)
}

function clusterOf(kubeconfig: string, image: string, kubectl: string[], helm: string[]): Cluster {
  const tool =
    ([program = '', ...before]: string[]) =>
    async (...args: string[]): Promise<string> => {
      const all = [...before, '--kubeconfig', kubeconfig, ...args]
      return (await run(program, all, { maxBuffer: 1e8 })).stdout
    }
  const asked = tool(kubectl)
  return {
    kubeconfig,
    image,
    kubectl: asked,
    helm: tool(helm),
    async token(namespace, serviceAccount, seconds = 3_600) {
      const args = ['create', 'token', serviceAccount, '-n', namespace, `--duration=${seconds}s`]
      return (await asked(...args)).trim()
    },
  }
}

const folder = testConfig().cluster

/** Why tests that need a cluster are skipped; undefined where there is one. */
export const noCluster = folder === undefined ? 'no cluster: ./sandlot test kubernetes' : undefined
/** Why tests that break parts of it are skipped. */
export const noOwnCluster =
  noCluster ??
  (existsSync(join(folder ?? '', 'given.json'))
    ? 'only on a cluster that the test run started itself'
    : undefined)

/** The cluster of this test run. Throws where there is none. */
export function testCluster(): Cluster {
  return noCluster === undefined && noOwnCluster !== undefined ? openGiven(folder ?? '') : ownCluster()
}

/** The same with what only one has that the test run started. */
export function ownCluster(): OwnCluster {
  if (noOwnCluster !== undefined || folder === undefined) throw new Error(noOwnCluster)
  return openCluster(folder)
}
