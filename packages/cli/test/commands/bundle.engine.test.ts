/** Small images of a real engine in a bundle, and what a node and an operator find in it. */
import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { nodeEnvironment } from '../../../../test/config.ts'
import { writeBundle } from '../../src/bundle/write-bundle.ts'
import { parseCliConfig } from '../../src/config.ts'
import { createSteps } from '../../src/steps.ts'

interface Index {
  manifests: { digest: string; size: number; annotations: Record<string, string> }[]
}
interface Manifest {
  config: { digest: string }
  layers: { digest: string; mediaType: string }[]
}

const prefix = `sandlot/test-${randomBytes(4).toString('hex')}`
const [below, above] = [`${prefix}-below:latest`, `${prefix}-above:1.0`]
const context = {
  config: parseCliConfig(nodeEnvironment()),
  steps: createSteps({ write: () => undefined, live: false }),
}
let folder: string
let file: string

const docker = (...args: string[]): string => execFileSync('docker', args, { encoding: 'utf8' })
const tar = (...args: string[]): string => execFileSync('tar', args, { encoding: 'utf8' })
const inBundle = (name: string): string => tar('-xOf', file, name)

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-bundle-'))
  file = join(folder, 'out', 'bundle.tar')
  writeFileSync(join(folder, 'one'), 'one')
  tar('-cf', join(folder, 'image.tar'), '-C', folder, 'one')
  docker('import', join(folder, 'image.tar'), below)
  mkdirSync(join(folder, 'context'))
  writeFileSync(join(folder, 'context', 'two'), 'two')
  writeFileSync(join(folder, 'context', 'Dockerfile'), `FROM ${below}\nCOPY two /two\nUSER 10001\n`)
  docker('build', '--quiet', '--network', 'none', '-t', above, join(folder, 'context'))
})
afterAll(() => {
  docker('rmi', '--force', above, below)
  rmSync(folder, { recursive: true })
})

test('a node finds each image by its tag and its digest, and every byte is what its name says', async () => {
  const references = await writeBundle(file, [below, above, below], context)
  expect(readdirSync(join(folder, 'out'))).toEqual(['bundle.tar'])
  expect(references).toEqual([
    expect.stringMatching(`^${prefix}-below@sha256:[0-9a-f]{64}$`),
    expect.stringMatching(`^${prefix}-above@sha256:[0-9a-f]{64}$`),
    references[0],
  ])

  const names = tar('-tf', file).trim().split('\n')
  expect(names.slice(0, 5)).toEqual([
    'README.md',
    'images.yaml',
    'sandlot-chart.tgz',
    'oci-layout',
    'index.json',
  ])
  const blobs = names.filter((name) => /^blobs\/sha256\/./.test(name))
  for (const blob of blobs) {
    const bytes = execFileSync('tar', ['-xOf', file, blob])
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(blob.split('/').at(-1))
  }
  // Two manifests, two configurations, and two layers although one of them is in both images.
  expect(blobs).toHaveLength(6)

  const { manifests } = JSON.parse(inBundle('index.json')) as Index
  const named = manifests.map(({ digest, annotations }) => [annotations['io.containerd.image.name'], digest])
  expect(new Map(named as [string, string][])).toEqual(
    new Map(
      [below, above].flatMap((tag, n): [string, string][] => {
        const digest = references[n]?.split('@')[1] ?? ''
        return [
          [`docker.io/${tag}`, digest],
          [`docker.io/${references[n]}`, digest],
        ]
      }),
    ),
  )
  const [one, two] = [below, above].map((_, n) => {
    const digest = references[n]?.split('@')[1] ?? ''
    return JSON.parse(inBundle(`blobs/${digest.replace(':', '/')}`)) as Manifest
  })
  expect(two?.layers[0]).toEqual(one?.layers[0])
  expect(two?.layers).toHaveLength(2)
  const config = two?.config.digest.replace(':', '/') ?? ''
  expect(JSON.parse(inBundle(`blobs/${config}`))).toMatchObject({ config: { User: '10001' } })
})

test('an operator finds the chart, its values with these images, and how to install them', () => {
  const values = JSON.parse(inBundle('images.yaml')) as {
    images: object
    sandboxes: { images: string[] }
  }
  const readme = inBundle('README.md')
  for (const reference of [...Object.values(values.images), ...values.sandboxes.images])
    expect(readme).toContain(reference)
  writeFileSync(join(folder, 'chart.tgz'), execFileSync('tar', ['-xOf', file, 'sandlot-chart.tgz']))
  const chart = tar('-xOzf', join(folder, 'chart.tgz'), 'sandlot/Chart.yaml')
  expect(chart).toBe(readFileSync('deploy/helm/sandlot/Chart.yaml', 'utf8'))
})

test('a missing image, or one that has no tag, is named, and nothing is written', async () => {
  const other = join(folder, 'other', 'bundle.tar')
  await expect(writeBundle(other, [`${prefix}-none:latest`], context)).rejects.toThrow(
    `The engine has no image ${prefix}-none:latest.`,
  )
  const id = docker('image', 'inspect', '--format', '{{.Id}}', below).trim()
  await expect(writeBundle(other, [id], context)).rejects.toThrow(`${id} is no tag`)
  expect(readdirSync(join(folder, 'other'))).toEqual([])
})
