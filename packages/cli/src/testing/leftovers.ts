import { LABEL } from '@sandlot/sandbox/names'
import type { CliConfig } from '../config.ts'
import { run } from '../programs/run.ts'
import type { Step } from '../steps.ts'
import { join } from 'node:path'

/** Prefix of every deployment of a test; nothing else is removed here. */
const TEST_DEPLOYMENT = 'test-'

/** The ids in lines of `id deployment` that belong to tests. */
export function testOwned(listing: string): string[] {
  return listing
    .split('\n')
    .map((line) => line.trim().split(' '))
    .flatMap(([id, deployment]) =>
      id !== undefined && deployment?.startsWith(TEST_DEPLOYMENT) === true ? [id] : [],
    )
}

/** Removes containers, volumes and clusters of interrupted tests. */
export async function removeTestLeftovers(config: CliConfig, step: Step): Promise<void> {
  const docker = (args: string[]): Promise<string> =>
    run('docker', args, {
      cwd: config.root,
      environment: config.environment,
      log: join(config.data, 'log', 'setup.log'),
      fix: `Remove containers with a label ${LABEL.deployment} that begins with "${TEST_DEPLOYMENT}".`,
    })
  const ours = ['--filter', `label=${LABEL.deployment}`]
  const format = (id: string): string[] => ['--format', `{{${id}}} {{.Label "${LABEL.deployment}"}}`]
  const containers = testOwned(await docker(['ps', '--all', '--no-trunc', ...ours, ...format('.ID')]))
  if (containers.length > 0) await docker(['rm', '--force', ...containers])
  const volumes = testOwned(await docker(['volume', 'ls', ...ours, ...format('.Name')]))
  if (volumes.length > 0) await docker(['volume', 'rm', '--force', ...volumes])
  const clusters = await run(process.execPath, ['--conditions=sandlot-source', 'test/cluster/end.ts'], {
    cwd: config.root,
    environment: config.environment,
    fix: 'End the processes in its cgroup, whose name begins with sandlot-cluster-.',
  })
  step.result(`${containers.length} containers, ${volumes.length} volumes, ${clusters.trim()} clusters`)
}
