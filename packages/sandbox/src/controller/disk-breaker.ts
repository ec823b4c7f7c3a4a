import { SandboxError } from '../errors.ts'

/** What is left on the file system that holds the workspaces. */
export interface FreeDisk {
  bytes: number
  /** Infinity where inodes are made as needed. */
  files: number
}

export interface DiskFloor {
  /** Below this many free bytes nothing may grow. 0 = no floor. */
  bytes: number
  /** The same for free inodes. 0 = no floor. */
  files: number
}

interface DiskBreakerOptions {
  floor: DiskFloor
  /**
   * `undefined`: it cannot be seen just now, so nothing changes for a while. Rejecting is the same.
   */
  look: () => Promise<FreeDisk | undefined>
  /** Called when it opens and when it closes again. */
  onChange: (open: boolean) => void
  /** Milliseconds between two looks. Default 1,000. */
  everyMs?: number
  /** Milliseconds without a result of `look` after which an open one closes. Default 30,000. */
  blindMs?: number
}

export interface DiskBreakerState {
  /** True: the host is short of disk, and nothing may grow. */
  open: boolean
  /** What the last look saw. */
  free?: FreeDisk
  /** For people, while it is open. */
  message?: string
}

interface DiskBreaker {
  state(): DiskBreakerState
  /** Throws `host_disk_low` while it is open. */
  check(): void
  /** Look now; resolves when what was seen has been acted upon. */
  look(): Promise<void>
  /** Look again and again from now on. */
  begin(): void
  close(): void
}

/**
 * So much more than the floor must be free before anything may grow again, or it would open and
 * close all the time.
 */
const RECOVER = 1.25

/**
 * Keeps the host's disk from filling up: below the floor no sandbox is made and none may grow,
 * until there is clearly more than the floor. A floor of 0 and 0 never opens and looks at nothing.
 *
 * When the disk cannot be seen any more, it does not stay open for ever: only a new sandbox could
 * see it. The next sandbox that is made sees the disk, and its sbxd lets nothing grow below the
 * same floor.
 */
export function createDiskBreaker(options: DiskBreakerOptions): DiskBreaker {
  const { floor, onChange } = options
  let open = false
  let free: FreeDisk | undefined
  let timer: NodeJS.Timeout | undefined
  let looking: Promise<void> | undefined
  let seenAt = performance.now()
  const blindMs = options.blindMs ?? 30_000

  async function lookOnce(): Promise<void> {
    const seen = await options.look().catch(() => undefined)
    if (seen === undefined) {
      if (open && performance.now() - seenAt >= blindMs) {
        open = false
        onChange(open)
      }
      return
    }
    seenAt = performance.now()
    free = seen
    const factor = open ? RECOVER : 1
    const low = seen.bytes < floor.bytes * factor || seen.files < floor.files * factor
    if (low === open) return
    open = low
    onChange(open)
  }

  function look(): Promise<void> {
    looking ??= lookOnce().finally(() => {
      looking = undefined
    })
    return looking
  }

  function message(): string {
    const { bytes, files } = free ?? { bytes: 0, files: 0 }
    const left = `${Math.floor(bytes / 1024 / 1024)} MiB${Number.isFinite(files) ? ` and ${files} files` : ''}`
    return `The host is short of disk space (${left} left), so nothing may grow in any sandbox. Delete what is not needed; an operator can free space or lower SANDLOT_HOST_DISK_FREE_MB.`
  }

  return {
    state: () => ({ open, free, ...(open ? { message: message() } : {}) }),
    check() {
      if (open) throw new SandboxError('host_disk_low', message())
    },
    look,
    begin() {
      if (timer !== undefined || (floor.bytes === 0 && floor.files === 0)) return
      timer = setInterval(() => void look(), options.everyMs ?? 1_000).unref()
      void look()
    },
    close() {
      clearInterval(timer)
      timer = undefined
    },
  }
}
