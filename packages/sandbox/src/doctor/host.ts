/** Settings of the shared kernel, from /proc and /sys of this machine. */
import type { StatsFs } from 'node:fs'
import { readFile, statfs } from 'node:fs/promises'

import { check, type Finding, report, unknown } from '#shared/base/finding'
import { formatBytes } from '#shared/base/format-bytes'

interface Setting {
  id: string
  name: string
  path: string
  /** Accepts the setting's text. */
  holds: (text: string) => boolean
  ok: string
  bad: (text: string) => string
  fix: string
  /** For a kernel without this file, which has nothing to close. */
  absent?: string
}

const atLeast =
  (least: number) =>
  (text: string): boolean =>
    Number(text) >= least

/** Files of 64 sandboxes with the default limits. */
const MOST_FILES = 64 * 512 * 4_096

const SETTINGS: readonly Setting[] = [
  {
    id: 'core-pattern',
    name: 'Core dumps',
    path: '/proc/sys/kernel/core_pattern',
    holds: (text) => !/^[|@]/.test(text),
    ok: 'no program of the host is started by a crash',
    bad: (text) =>
      text.startsWith('@')
        ? `a crash is sent to a program of the host (${text.slice(0, 60)}), one in a sandbox too: no limit forbids that`
        : `a crash starts a program of the host as root (${text.slice(0, 60)}); those of sandboxes do not, by their limit`,
    fix: 'sysctl kernel.core_pattern=core',
  },
  {
    id: 'unprivileged-bpf',
    name: 'BPF',
    path: '/proc/sys/kernel/unprivileged_bpf_disabled',
    holds: (text) => text !== '0',
    ok: 'closed to ordinary users',
    bad: () => 'open to every user of this host; sandboxes have it closed by their filter',
    fix: 'sysctl kernel.unprivileged_bpf_disabled=1',
    absent: 'this kernel has none',
  },
  {
    id: 'userfaultfd',
    name: 'userfaultfd',
    path: '/proc/sys/vm/unprivileged_userfaultfd',
    holds: (text) => text === '0',
    ok: 'closed to ordinary users',
    bad: () => 'open to every user of this host; sandboxes have it closed by their filter',
    fix: 'sysctl vm.unprivileged_userfaultfd=0',
    absent: 'this kernel has none',
  },
  {
    id: 'io-uring',
    name: 'io_uring',
    path: '/proc/sys/kernel/io_uring_disabled',
    holds: (text) => text !== '0',
    ok: 'closed to ordinary users',
    bad: () => 'open to every user of this host; sandboxes have it closed by their filter',
    fix: 'sysctl kernel.io_uring_disabled=1',
    absent: 'this kernel cannot close it for the host; sandboxes have it closed by their filter',
  },
  {
    id: 'kptr',
    name: 'Kernel addresses',
    path: '/proc/sys/kernel/kptr_restrict',
    holds: (text) => text !== '0',
    ok: 'hidden',
    bad: () => 'shown to every user',
    fix: 'sysctl kernel.kptr_restrict=1',
  },
  {
    id: 'dmesg',
    name: 'Kernel log',
    path: '/proc/sys/kernel/dmesg_restrict',
    holds: (text) => text !== '0',
    ok: 'for root only',
    bad: () => 'readable by every user of this host; sandboxes have it closed by their filter',
    fix: 'sysctl kernel.dmesg_restrict=1',
  },
  {
    id: 'ksm',
    name: 'Merging of equal pages (KSM)',
    path: '/sys/kernel/mm/ksm/run',
    holds: (text) => text === '0',
    ok: 'off',
    bad: () => 'on: by timing one sandbox can learn what another has in memory',
    fix: 'echo 0 >/sys/kernel/mm/ksm/run',
    absent: 'this kernel has none',
  },
  {
    id: 'pid-max',
    name: 'Process numbers',
    path: '/proc/sys/kernel/pid_max',
    holds: atLeast(65_536),
    ok: 'enough for many sandboxes',
    bad: (text) => `only ${text}: 64 sandboxes with 512 processes each would use all of them`,
    fix: 'sysctl kernel.pid_max=4194304',
  },
  {
    id: 'file-max',
    name: 'Open files of the host',
    path: '/proc/sys/fs/file-max',
    holds: atLeast(MOST_FILES),
    ok: 'enough for many sandboxes',
    bad: (text) =>
      `only ${text} for all programs but root’s, and one sandbox may have ${512 * 4_096} (512 processes with 4,096 each)`,
    fix: `sysctl fs.file-max=${MOST_FILES}`,
  },
  {
    id: 'overcommit',
    name: 'Promised memory',
    path: '/proc/sys/vm/overcommit_memory',
    holds: (text) => text !== '2',
    ok: 'not one sum for the whole host',
    bad: () =>
      'one sum for the whole host (mode 2): what a command in a sandbox reserves and never uses is missing elsewhere, whatever its limit of memory',
    fix: 'sysctl vm.overcommit_memory=0',
  },
  {
    id: 'inotify-instances',
    name: 'inotify instances of one user',
    path: '/proc/sys/fs/inotify/max_user_instances',
    holds: atLeast(128),
    ok: 'enough for a development server',
    bad: (text) => `only ${text}`,
    fix: 'sysctl fs.inotify.max_user_instances=1024',
  },
  {
    id: 'inotify-watches',
    name: 'inotify watches of one user',
    path: '/proc/sys/fs/inotify/max_user_watches',
    holds: atLeast(65_536),
    ok: 'enough for a development server',
    bad: (text) => `only ${text}: file watchers of large projects fail`,
    fix: 'sysctl fs.inotify.max_user_watches=524288',
  },
  {
    id: 'pty-max',
    name: 'Terminals of the host',
    path: '/proc/sys/kernel/pty/max',
    holds: atLeast(4096),
    ok: 'enough for many sandboxes',
    bad: (text) => `only ${text} for all sandboxes together`,
    fix: 'sysctl kernel.pty.max=4096',
  },
]

const FLOOR_BYTES = 2 * 1024 ** 3
const FLOOR_SHARE = 0.05

/** Judges the text of one setting, by its id. */
export function judgeSetting(id: string, text: string): Finding {
  const setting = SETTINGS.find((each) => each.id === id)
  if (setting === undefined) throw new TypeError(`There is no setting ${id}.`)
  const { name, ok, bad, fix, holds } = setting
  return check('warn', id, name, holds(text), { ok, bad: bad(text), fix })
}

/**
 * Judges the kernel's settings. `local`: the engine is on this machine; another one's kernel cannot
 * be read from here.
 */
export async function judgeHost(local: boolean): Promise<Finding[]> {
  return Promise.all(
    SETTINGS.map(async (setting): Promise<Finding> => {
      const { id, name, path, absent } = setting
      if (!local) return unknown('warn', id, name, 'the engine is on another machine')
      const text = await readFile(path, 'utf8').then(
        (all) => all.trim(),
        () => undefined,
      )
      if (text === undefined)
        return absent === undefined
          ? unknown('warn', id, name, `${path} cannot be read`)
          : { id, group: 'warn', name, message: absent, state: 'ok' }
      return judgeSetting(id, text)
    }),
  )
}

/** Free space for the engine's volumes. `folder`: its data root, if it is on this machine. */
export async function judgeDisk(folder: string | undefined): Promise<Finding[]> {
  const facts = folder === undefined ? undefined : await statfs(folder).catch(() => undefined)
  return facts
    ? judgeRoom(facts)
    : [unknown('warn', 'disk', 'The engine’s disk', 'it cannot be seen from here')]
}

/** Judges statfs(2) of a file system. `files` is 0 for one without a fixed number. */
export function judgeRoom(facts: Pick<StatsFs, 'bavail' | 'bsize' | 'files' | 'ffree' | 'type'>): Finding[] {
  const free = facts.bavail * facts.bsize
  const entries = facts.files === 0 ? 1 : facts.ffree / facts.files
  return [
    check('warn', 'disk', 'The engine’s disk', free >= FLOOR_BYTES, {
      ok: `${formatBytes(free)} free`,
      bad: `only ${formatBytes(free)} free`,
      fix: 'Make room: docker system df shows what the engine holds, ./sandlot sandbox list the owners of its volumes.',
    }),
    check('warn', 'inodes', 'Its file entries', entries >= FLOOR_SHARE, {
      ok: `${Math.round(entries * 100)} % free`,
      bad: `only ${Math.round(entries * 100)} % free`,
      fix: 'Remove what holds very many small files, or use a file system without a fixed number of entries (xfs).',
    }),
    report('disk-kind', 'Its file system', fileSystem(facts.type)),
  ]
}

/** Magic numbers of statfs(2). */
function fileSystem(type: number): string {
  const names: Record<number, string> = {
    0xef53: 'ext4',
    0x58465342: 'xfs',
    0x9123683e: 'btrfs',
    0x2fc12fc1: 'zfs',
    0x01021994: 'tmpfs',
    0x794c7630: 'overlay',
  }
  return names[type] ?? `type 0x${type.toString(16)}`
}
