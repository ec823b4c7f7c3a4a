/**
 * Runs a command beside a Kubernetes, in the network namespace of its control plane, and ends the cluster:
 *
 *   node --conditions=sandlot-source test/cluster/run.ts -- vitest run --project cluster
 *   node --conditions=sandlot-source test/cluster/run.ts --context NAME --image REFERENCE -- vitest run …
 *
 * The second uses a context of the kubeconfig of this person, and a sandbox image that its nodes can pull.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { runInteractive } from '../../packages/cli/src/programs/run-interactive.ts'
import { buildPeer } from '../peer-cache.ts'
import { netns } from './parts.ts'
import { startCluster } from './start.ts'
import { KUBERNETES } from './tool.ts'

const {
  values: { context, image },
  positionals: command,
} = parseArgs({
  options: { context: { type: 'string' }, image: { type: 'string' } },
  allowPositionals: true,
})

process.exitCode = context === undefined ? await runOnOwn() : await runOnGiven(context)

async function runOnOwn(): Promise<number> {
  await buildPeer(KUBERNETES)
  const started = performance.now()
  const { cluster, end } = await startCluster()
  const { id, folder } = cluster.facts
  console.log(`Kubernetes is ready after ${((performance.now() - started) / 1_000).toFixed(1)} s: ${folder}`)
  try {
    // Without the cluster the command has nothing to run on: it ends with this process.
    const wrapped = ['--pdeathsig', 'KILL', 'nsenter', `--net=/run/netns/${netns(id)}`, ...command]
    return await run('setpriv', wrapped, folder)
  } finally {
    await end()
  }
}

async function runOnGiven(name: string): Promise<number> {
  if (image === undefined)
    throw new Error('--context needs --image, a reference by digest that its nodes can pull')
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-given-cluster-'))
  try {
    const tool = await buildPeer(KUBERNETES)
    const kubectl = [join(tool, 'kube'), 'kubectl']
    const view = ['kubectl', 'config', 'view', '--raw', '--minify', '--flatten', '--context', name]
    const { stdout } = await promisify(execFile)(join(tool, 'kube'), view)
    const kubeconfig = join(folder, 'kubeconfig')
    writeFileSync(kubeconfig, stdout, { mode: 0o600 })
    const given = { kubeconfig, image, kubectl, helm: [join(tool, 'helm')] }
    writeFileSync(join(folder, 'given.json'), JSON.stringify(given))
    return await run(command[0] ?? '', command.slice(1), folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function run(program: string, args: string[], folder: string): Promise<number> {
  const environment = { ...process.env, SANDLOT_TEST_CLUSTER: folder }
  return runInteractive(program, args, { cwd: process.cwd(), environment })
}
