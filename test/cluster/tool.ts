/** Programs of a test cluster, built once a machine; without them, or as another user than root, there is none. */
import { execFile, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type PeerProgram, peerFolder } from '../peer-cache.ts'

const SOURCES = ['build.sh', '{kube,dns,helm}/go.mod', '{kube,dns}/main.go', 'pause.c']
/** `[program, Debian package]`; the bridge is one of the CNI plug-ins. */
const PROGRAMS = [
  ['etcd', 'etcd-server'],
  ['containerd', 'containerd'],
  ['runc', 'runc'],
  ['../lib/cni/bridge', 'containernetworking-plugins'],
  ['nft', 'nftables'],
  ['ip', 'iproute2'],
  ['openssl', 'openssl'],
  ['docker', 'docker.io'],
] as const

export const KUBERNETES: PeerProgram = {
  name: 'kubernetes',
  version: sourcesHash(),
  async build(folder) {
    const lacking = machineLacks() ?? (await compilersLacking())
    if (lacking !== undefined) throw new Error(lacking)
    const { HOME, PATH = '', GOPROXY, GOFLAGS, GOSUMDB } = process.env
    const env = { HOME, PATH: `${PATH}:/usr/local/go/bin`, GOPROXY, GOFLAGS, GOSUMDB }
    // The Go compiler writes megabytes about what it downloads.
    await promisify(execFile)(join(import.meta.dirname, 'build.sh'), [folder], { env, maxBuffer: 1e8 })
  },
}

/** The sentence that says why no cluster can be started here; undefined where one can. */
export function clusterMissing(): string | undefined {
  return (
    machineLacks() ??
    (peerFolder(KUBERNETES) === undefined
      ? 'Kubernetes is not in the cache: node --conditions=sandlot-source test/cluster/build.ts'
      : undefined)
  )
}

function machineLacks(): string | undefined {
  if (process.getuid?.() !== 0) return 'a test cluster needs root'
  const lacking = PROGRAMS.filter(([program]) =>
    ['/usr/bin', '/usr/sbin', '/usr/local/bin', '/usr/local/sbin', '/sbin', '/bin'].every(
      (folder) => !existsSync(join(folder, program)),
    ),
  ).map(([, debian]) => debian)
  if (lacking.length > 0) return `a test cluster needs ${lacking.join(', ')}`
  const { status } = spawnSync('unshare', ['--mount', '--net', 'test', '-w', '/sys/fs/cgroup'])
  return status === 0
    ? undefined
    : 'a test cluster needs to make cgroups, and namespaces of mounts and networks'
}

async function compilersLacking(): Promise<string | undefined> {
  const env = { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/local/go/bin` }
  const version = await promisify(execFile)('go', ['env', 'GOVERSION'], { env }).then(
    ({ stdout }) => /^go1\.(\d+)/.exec(stdout)?.[1],
    () => undefined,
  )
  return Number(version ?? 0) >= 26 ? undefined : 'building Kubernetes needs Go 1.26 or later'
}

function sourcesHash(): string {
  const hash = createHash('sha256')
  for (const name of globSync(SOURCES, { cwd: import.meta.dirname }).toSorted())
    hash.update(name).update(readFileSync(join(import.meta.dirname, name)))
  return hash.digest('hex').slice(0, 12)
}
