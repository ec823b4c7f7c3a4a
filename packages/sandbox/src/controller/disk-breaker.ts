import { SandboxError } from '../errors.ts'

/** Free space of the workspaces' file system. */
export interface FreeDisk {
  bytes: number
  /** Infinity where inodes are created as needed. */
  files: number
}

export interface DiskFloor {
  /** Below this many free bytes all growth is prevented. 0 = no floor. */
  bytes: number
  /** The same for free inodes. 0 = no floor. */
  files: number
}

interface DiskBreakerOptions {
  floor: DiskFloor
  /**
   * Measures the disk. `undefined`, or a rejection: unknown for now, so the state is kept for a
   * while.
   */
  measure: () => Promise<FreeDisk | undefined>
  /** Called when it opens and when it closes again. */
  onChange: (open: boolean) => void
  /** Milliseconds between two measurements. Default 1,000. */
  everyMs?: number
  /** Milliseconds without a measurement after which an open breaker closes. Default 30,000. */
  blindMs?: number
}

export interface DiskBreakerState {
  /** True: the host is short of disk, and all growth is prevented. */
  open: boolean
  /** Last measurement. */
  free?: FreeDisk
  /** For users, while it is open. */
  message?: string
}

interface DiskBreaker {
  state(): DiskBreakerState
  /** Throws `host_disk_low` while it is open. */
  check(): void
  /** Measures now; resolves when the result has taken effect. */
  measure(): Promise<void>
  /** Starts measuring at intervals. */
  begin(): void
  close(): void
}

/**
 * Factor above the floor at which growth is allowed again; without it the breaker would oscillate.
 */
const RECOVER = 1.25

/**
 * Keeps the host's disk from filling up: below the floor no sandbox is created and none may grow,
 * until there is clearly more free space than the floor. A floor of 0 and 0 never opens and
 * measures nothing.
 *
 * An open breaker closes when the disk becomes invisible: only a new sandbox could measure it, and
 * its sbxd prevents growth below the same floor.
 */
export function createDiskBreaker(options: DiskBreakerOptions): DiskBreaker {
  const { floor, onChange } = options
  let open = false
  let free: FreeDisk | undefined
  let timer: NodeJS.Timeout | undefined
  let measuring: Promise<void> | undefined
  let seenAt = performance.now()
  const blindMs = options.blindMs ?? 30_000

  async function measureOnce(): Promise<void> {
    const measured = await options.measure().catch(() => undefined)
    if (measured === undefined) {
      if (open && performance.now() - seenAt >= blindMs) {
        open = false
        onChange(open)
      }
      return
    }
    seenAt = performance.now()
    free = measured
    const factor = open ? RECOVER : 1
    const low = measured.bytes < floor.bytes * factor || measured.files < floor.files * factor
    if (low === open) return
    open = low
    onChange(open)
  }

  function measure(): Promise<void> {
    measuring ??= measureOnce().finally(() => {
      measuring = undefined
    })
    return measuring
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
    measure,
    begin() {
      if (timer !== undefined || (floor.bytes === 0 && floor.files === 0)) return
      timer = setInterval(() => void measure(), options.everyMs ?? 1_000).unref()
      void measure()
    },
    close() {
      clearInterval(timer)
      timer = undefined
    },
  }
}
