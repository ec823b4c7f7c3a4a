/** One file with the images and the chart of Sandlot, for a cluster without a network. */
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Context } from '../context.ts'
import { run, succeeds } from '../programs/run.ts'
import { StepError } from '../steps.ts'
import { toOciLayout } from './oci-layout.ts'

/** The chart in a bundle. */
const CHART = 'sandlot-chart.tgz'

/**
 * Packs these images: of our processes, of backups, and of sandboxes. Returns them by digest.
 * @throws StepError if one is missing or there is no room. A failure leaves no file.
 */
export async function writeBundle(
  file: string,
  images: readonly string[],
  { config, steps }: Pick<Context, 'config' | 'steps'>,
): Promise<string[]> {
  const options = { cwd: config.root, environment: config.environment }
  for (const image of images)
    if (!(await succeeds('docker', ['image', 'inspect', image], config.environment)))
      throw new StepError(
        `The engine has no image ${image}.`,
        'Build all: docker compose -f docker/compose.yaml --profile backup build',
      )
  await mkdir(dirname(file), { recursive: true })
  const folder = await mkdtemp(`${file}-`)
  const [saved, packed] = [join(folder, 'saved'), join(folder, 'packed')]
  try {
    const fix = `Check that the disk of ${dirname(file)} has room for twice the images.`
    const references = await steps.run('Images', async () => {
      for (const made of [saved, packed]) await mkdir(made)
      const save = 'set -o pipefail; docker save "${@:2}" | tar -x -C "$1"'
      await run('bash', ['-c', save, 'bash', saved, ...images], { ...options, fix })
      return toOciLayout(saved, packed)
    })
    const byDigest = images.map((image) => {
      const reference = references.get(image.includes(':') ? image : `${image}:latest`)
      if (reference === undefined)
        throw new StepError(
          `${image} is no tag, by which a node could find the image.`,
          'Give it one with docker tag, and set SANDLOT_SANDBOX_IMAGE to that.',
        )
      return reference
    })
    await steps.run('Bundle', async () => {
      const chart = ['-C', join(config.root, 'deploy', 'helm'), 'sandlot']
      const owner = ['--owner=0', '--group=0', '--sort=name']
      await run('tar', [...owner, '-czf', join(packed, CHART), ...chart], { ...options, fix })
      await writeFile(join(packed, 'images.yaml'), valuesOf(byDigest))
      await writeFile(join(packed, 'README.md'), readme(basename(file), byDigest))
      // First what people read: tar need not search through the images for it.
      const names = ['README.md', 'images.yaml', CHART, 'oci-layout', 'index.json', 'blobs']
      const all = [...owner, '-cf', join(folder, 'bundle'), '-C', packed, ...names]
      await run('tar', all, { ...options, fix })
      await rename(join(folder, 'bundle'), file)
    })
    return byDigest
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Values of the chart: these images. */
function valuesOf([sandlot, backup, sandbox]: readonly string[]): string {
  return JSON.stringify({ images: { sandlot, backup }, sandboxes: { images: [sandbox] } }, undefined, 2)
}

function readme(file: string, images: readonly string[]): string {
  return `# Sandlot for a cluster without a network

Images of this file:

${images.map((image) => `- ${image}`).join('\n')}

On each node, as root (k3s: k3s ctr images import ${file}):

    ctr --namespace k8s.io images import ${file}

Where helm and kubectl are, after the Secrets of docs/kubernetes.md:

    tar -xf ${file} ${CHART} images.yaml
    helm install sandlot ${CHART} --namespace sandlot --values my-values.yaml --values images.yaml
`
}
