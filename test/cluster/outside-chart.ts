/** The chart with only what sandboxes need, for agents that run outside of the cluster with a token. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { nodeEnvironment } from '../config.ts'
import type { RunningSandlot } from '../e2e/processes.ts'
import type { Cluster } from './cluster.ts'

const CHART = 'deploy/helm/sandlot'
const ADMIN = 'packages/ai-agent/src/agent/sandboxes.ts'

export interface OutsideChart {
  /** Namespace of the sandboxes. */
  namespace: string
  /** Path of the agents' kubeconfig. */
  kubeconfig: string
  /** Path of that of backups and restores. */
  backupKubeconfig: string
  /** Path of another one of the agents, whose API server is at this address. */
  kubeconfigFor(server: string): string
}

/** `images`: sandbox images that the policy allows. Everything that it makes ends with `stack`. */
export async function installOutside(
  cluster: Cluster,
  stack: AsyncDisposableStack,
  images = [cluster.image],
): Promise<OutsideChart> {
  const name = `outside-${randomBytes(3).toString('hex')}`
  const namespace = `${name}-sandboxes`
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-outside-'))
  stack.defer(() => rmSync(folder, { recursive: true }))
  const none = { enabled: false }
  const values = join(folder, 'values.json')
  writeFileSync(values, JSON.stringify({ sandboxes: { namespace, images }, service: none, agent: none }))
  await cluster.helm('install', name, CHART, '-n', name, '--create-namespace', '-f', values)
  stack.defer(async () => {
    await cluster.helm('uninstall', name, '-n', name)
    await cluster.kubectl('delete', 'namespace', name, namespace, '--wait=false', '--ignore-not-found')
  })
  const view = JSON.parse(await cluster.kubectl('config', 'view', '--raw', '--flatten', '-o', 'json')) as {
    users: { user: object }[]
    clusters: { cluster: { server: string } }[]
  }
  const write = (file: string): string => {
    writeFileSync(file, JSON.stringify(view), { mode: 0o600 })
    return file
  }
  const signIn = async (account: string): Promise<string> => {
    const token = await cluster.token(name, account)
    for (const one of view.users) one.user = { token }
    return write(join(folder, account))
  }
  const backupKubeconfig = await signIn('sandlot-backup')
  // The last: `kubeconfigFor` writes its view again.
  const kubeconfig = await signIn('sandlot-agent')
  return {
    namespace,
    kubeconfig,
    backupKubeconfig,
    kubeconfigFor(server) {
      for (const one of view.clusters) one.cluster.server = server
      return write(join(folder, `kubeconfig-${new URL(server).port}`))
    },
  }
}

/** Runs the agent’s program for operators, as the launcher does. */
export async function sandboxAdmin(
  { data }: Pick<RunningSandlot, 'data'>,
  environment: Record<string, string>,
  act: string,
): Promise<unknown> {
  const env = { ...nodeEnvironment(), ...environment, SANDLOT_DATA: data, PATH: process.env['PATH'] }
  const args = ['--conditions=sandlot-source', ADMIN, act]
  return JSON.parse((await promisify(execFile)(process.execPath, args, { env })).stdout)
}
