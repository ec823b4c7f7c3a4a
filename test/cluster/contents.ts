/** Texts in everything that a cluster stores or logs. */
import { globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { OwnCluster } from './cluster.ts'

/** In its folder: its store with earlier states of objects, its logs and those of Pods, the records of its runtimes and kubelets. */
const FILES = [
  'etcd/**',
  'log/*',
  'audit.log',
  'node*/logs/**',
  'node*/kubelet/pods/*/{etc-hosts,containers/**,plugins/**}',
  'node*/root/io.containerd.metadata.v1.bolt/meta.db',
]

/** Files and objects of the cluster that contain a text, each with the texts. Homes are not among them. */
export async function contentsWith(cluster: OwnCluster, texts: readonly string[]): Promise<string[]> {
  const { folder } = cluster.facts
  const search = (where: string, content: Buffer | string): string[] =>
    texts.filter((text) => content.includes(text)).map((text) => `${where}: ${text}`)
  const kinds = (await cluster.kubectl('api-resources', '--verbs=list', '-o', 'name')).trim().split('\n')
  const objects = await cluster.kubectl('get', kinds.join(','), '-A', '-o', 'json', '--show-managed-fields')
  const files = globSync(FILES, { cwd: folder }).filter((path) => statSync(join(folder, path)).isFile())
  return [
    ...search('objects', objects),
    ...files.flatMap((path) => search(path, readFileSync(join(folder, path)))),
  ]
}
