/**
 * Which process listens on a Unix socket, so that the memory of the engine that is measured is read
 * and no other's.
 */
import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'

/** In /proc/net/unix, of a socket that listens. */
const ACCEPTS = '00010000'

/**
 * The only process called `name` that listens at `path`. Undefined where it is unknown: on another
 * machine, in another network namespace, another user's, or one of several.
 */
export function listenerAt(path: string, name: string): number | undefined {
  const sockets = new Set(
    readFileSync('/proc/net/unix', 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , flags, , , , bound]) => flags === ACCEPTS && bound && same(bound, path))
      .map((fields) => `socket:[${fields[6]}]`),
  )
  const found = readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => holds(pid, name, sockets))
  return found.length === 1 ? Number(found[0]) : undefined
}

/** A path is written as the process gave it, often through the link /var/run. */
function same(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other)
  } catch {
    return false // what it named is gone, or is the name of an abstract socket
  }
}

function holds(pid: string, name: string, sockets: ReadonlySet<string>): boolean {
  try {
    if (readFileSync(`/proc/${pid}/comm`, 'utf8').trim() !== name) return false
    const folder = `/proc/${pid}/fd`
    return readdirSync(folder).some((fd) => sockets.has(readlinkSync(join(folder, fd))))
  } catch {
    return false // it ended while we looked, or may not be looked at
  }
}
