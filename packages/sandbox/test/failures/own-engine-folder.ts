/** Folders of the tests' own engines, and their cleanup, also after a crash. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { rm, rmdir } from 'node:fs/promises'
import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** `<tmp>/sandlot-engine-<pid of the test process>-<random>`; also the name of its cgroup. */
const PREFIX = 'sandlot-engine-'

/** A folder name that no other test process uses. */
export function engineFolder(random: string): string {
  return join(tmpdir(), `${PREFIX}${process.pid}-${random}`)
}

/**
 * End every process of the engine in `folder`, undo its mounts and cgroups, and remove it.
 * Idempotent.
 */
export async function clearEngine(folder: string): Promise<void> {
  await powerOff(folder)
  if (mountsUnder(folder).length > 0)
    throw new Error(`Something is still mounted below ${folder}; unmount it and remove the folder.`)
  await rm(folder, { recursive: true, force: true })
}

/**
 * End every process of the engine in `folder` and undo its cgroups and mounts, except the mount at
 * `keep`.
 */
export async function powerOff(folder: string, keep?: string): Promise<void> {
  const cgroups = cgroupsOf(basename(folder))
  for (let wait = 10; wait < 5_000; wait *= 2) {
    const pids = [...processesOf(folder), ...cgroups.flatMap(membersOf)]
    if (pids.length === 0) break
    for (const pid of pids) killQuietly(pid)
    await sleep(wait)
  }
  for (const mount of mountsUnder(folder)) if (mount !== keep) unmount(mount)
  for (const cgroup of cgroups) await removeCgroup(cgroup)
}

/** Leftovers of an earlier test process that was killed. */
export async function clearLeftEngines(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1]
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) await clearEngine(join(tmpdir(), name))
  }
}

/**
 * Processes that name the folder in their command line: the daemons, the shims and runtimes, nobody
 * else.
 */
function processesOf(folder: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => /^(dockerd|containerd|runsc|exe|crun|runc|podman|conmon)/.test(basename(programOf(pid))))
    .filter((pid) => readOr(`/proc/${pid}/cmdline`, '').includes(`${folder}/`))
    .map(Number)
}

function programOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/exe`)
  } catch {
    return '' // a kernel thread, or gone
  }
}

/** The directories of one cgroup: one in each hierarchy of v1, one in v2. Deepest first. */
function cgroupsOf(name: string): string[] {
  const root = '/sys/fs/cgroup'
  if (!existsSync(root)) return []
  const hierarchies = existsSync(`${root}/cgroup.procs`)
    ? [root]
    : readdirSync(root).map((each) => join(root, each))
  return hierarchies
    .map((each) => join(each, name))
    .filter((each) => existsSync(each))
    .flatMap(withChildren)
}

function withChildren(directory: string): string[] {
  const children = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return [...children.flatMap((child) => withChildren(join(directory, child.name))), directory]
}

function membersOf(cgroup: string): number[] {
  return readOr(join(cgroup, 'cgroup.procs'), '').split('\n').filter(Boolean).map(Number)
}

async function removeCgroup(cgroup: string): Promise<void> {
  for (let wait = 5; wait < 1_000; wait *= 2) {
    try {
      return await rmdir(cgroup)
    } catch (error) {
      // Busy until the kernel has put its last process away.
      if (!(error instanceof Error && 'code' in error && error.code === 'EBUSY')) return
      await sleep(wait)
    }
  }
}

/** Mount points in or below the folder, deepest first. */
function mountsUnder(folder: string): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((mount) => mount.startsWith(`${folder}/`))
    .toReversed()
}

function unmount(mount: string): void {
  try {
    execFileSync('umount', ['-l', mount], { stdio: 'ignore' })
  } catch {
    // Gone with the one above it; what is really left is looked for afterwards.
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

function readOr(file: string, otherwise: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return otherwise
  }
}
