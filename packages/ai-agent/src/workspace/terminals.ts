/**
 * People's terminals: shells in their sandboxes, each under the id of its command there. The
 * sandbox keeps what a terminal has shown last until it is acknowledged, so another agent on the
 * same data finds its screen too. What is typed and shown is neither judged, logged nor stored.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CommandExit, CommandId, RunningCommand, Sandbox } from '@sandlot/sandbox/sandbox'
import {
  MAX_TERMINALS,
  TERMINAL_TAKEN,
  type Terminal as TerminalView,
  type TerminalNotice,
} from '@sandlot/shared/workspace/terminals'
import type { SandboxState } from '@sandlot/sandbox/backend'
import { SandlotError, messageOf } from '@sandlot/shared/base/errors'
import type { NewAudit } from '@sandlot/shared/admin/audit'
import type { Log } from '../log.ts'
import { Scrollback } from './scrollback.ts'
import { Viewer, type ViewerSocket } from './viewer.ts'

/** Bytes for a page that reconnects. */
const SCROLLBACK_BYTES = 256 * 1024
/** A terminal that no page has shown for so long is ended, so that its sandbox may rest. */
const UNWATCHED_MS = 12 * 60 * 60 * 1000
const GRACE_MS = 1_000
/** Time to wait for a lost stream to a sandbox, in milliseconds. */
const LOST_MS = 30_000
const LOST_LOOK_MS = 500
const NORMAL = 1000
/** The page connects again. */
const AWAY = 1001

type Actor = Pick<NewAudit, 'who' | 'from'>

interface TerminalsParts {
  /** The sandbox of this user, which is started for it. */
  acquire: (userId: string) => Promise<Sandbox>
  /** The same while there is a stream to it. */
  connected: (userId: string) => Promise<Sandbox | undefined>
  /** The engine's view. */
  status: (userId: string) => Promise<{ state: SandboxState }>
  /** Aborts when the agent goes and leaves what runs. */
  leaving: AbortSignal
  /** Writes a line of the audit log; must not throw. */
  audit: (line: NewAudit) => void
  log: Log
  /** Epoch milliseconds. */
  now: () => number
}

interface Size {
  columns: number
  rows: number
}

export class Terminals {
  readonly #parts: TerminalsParts
  readonly #users = new Map<string, UserTerminals>()

  constructor(parts: TerminalsParts) {
    this.#parts = parts
  }

  /** Throws `conflict` where there are too many, and what the sandbox throws. */
  async open(userId: string, size: Size, actor?: Actor): Promise<TerminalView> {
    const mine = this.#of(userId)
    if (mine.open.size + mine.opening >= MAX_TERMINALS)
      throw new SandlotError(
        'conflict',
        `You have ${MAX_TERMINALS} terminals open, which is the most there can be. Close one first.`,
      )
    mine.opening++
    try {
      const sandbox = await this.#parts.acquire(userId)
      await this.#adopt(userId, sandbox)
      const command = await sandbox.run({
        id: newTerminalId(this.#parts.now()),
        command: ['bash'],
        env: { TERM: 'xterm-256color', COLORTERM: 'truecolor' },
        terminal: size,
      })
      this.#parts.log.info({ userId, terminal: command.id }, 'a terminal was opened')
      if (actor !== undefined)
        this.#parts.audit({ ...actor, what: 'terminal_opened', whom: { id: command.id } })
      return this.#keep(userId, command, command.id, actor).view
    } finally {
      mine.opening--
    }
  }

  /** Nothing is started for the question. */
  async list(userId: string): Promise<TerminalView[]> {
    const sandbox = await this.#parts.connected(userId)
    if (sandbox !== undefined) await this.#adopt(userId, sandbox)
    return [...this.#of(userId).open.values()]
      .map(({ view }) => view)
      .toSorted((a, b) => a.startedAt - b.startedAt)
  }

  /** Throws `not_found`. */
  async find(userId: string, id: string): Promise<Terminal> {
    await this.list(userId)
    const found = this.#of(userId).open.get(id)
    if (found === undefined)
      throw new SandlotError('not_found', 'This terminal has ended, or there never was one of this id.')
    return found
  }

  /** Another agent has this user: their terminals run on, and their pages find them there. */
  forget(userId: string): void {
    this.#users.get(userId)?.gone.abort()
    this.#users.delete(userId)
  }

  #of(userId: string): UserTerminals {
    const known = this.#users.get(userId) ?? {
      open: new Map(),
      opening: 0,
      seenBoot: undefined,
      gone: new AbortController(),
    }
    this.#users.set(userId, known)
    return known
  }

  /** Resumes terminals that an earlier agent process opened. */
  async #adopt(userId: string, sandbox: Sandbox): Promise<void> {
    const mine = this.#of(userId)
    if (mine.seenBoot === sandbox.bootId) return
    mine.seenBoot = sandbox.bootId
    for (const { id, terminal, state } of await sandbox.commands()) {
      if (!terminal || state !== 'running' || mine.open.has(id)) continue
      const command = await sandbox.attach(id)
      if (command !== undefined) this.#keep(userId, command, id)
    }
  }

  #keep(userId: string, command: RunningCommand, id: CommandId, actor?: Actor): Terminal {
    const mine = this.#of(userId)
    const terminal = new Terminal(command, startOf(id, this.#parts.now()), {
      again: (bootId, offset) => this.#attachAgain(userId, bootId, id, offset),
      leaving: AbortSignal.any([this.#parts.leaving, mine.gone.signal]),
    })
    mine.open.set(id, terminal)
    void terminal.ended.then((end) => {
      mine.open.delete(id)
      if (end === undefined) return
      const seconds = Math.round((this.#parts.now() - terminal.view.startedAt) / 1000)
      this.#parts.log.info({ userId, terminal: id, seconds, ...end }, 'a terminal ended')
      // One that an earlier process opened is its person's all the same.
      const by = actor ?? { who: { id: userId, name: userId } }
      this.#parts.audit({ ...by, what: 'terminal_closed', whom: { id }, after: { seconds, ...end } })
    })
    return terminal
  }

  /** After its stream was lost; undefined: it is gone. */
  async #attachAgain(
    userId: string,
    bootId: string,
    id: CommandId,
    offset: number,
  ): Promise<RunningCommand | undefined> {
    const { connected, status, leaving, now, log } = this.#parts
    for (const until = now() + LOST_MS; now() < until && !leaving.aborted;) {
      try {
        const sandbox = await connected(userId)
        if (sandbox !== undefined)
          return sandbox.bootId === bootId ? await sandbox.attach(id, { stdout: offset }) : undefined
        const { state } = await status(userId)
        if (state !== 'running' && state !== 'paused') return undefined
      } catch (error) {
        log.warn(
          { userId, terminal: id, error: messageOf(error) },
          'a terminal could not be reattached; retrying',
        )
      }
      await sleep(LOST_LOOK_MS, undefined, { ref: false })
    }
    return undefined
  }
}

interface UserTerminals {
  open: Map<CommandId, Terminal>
  /** Those that are being opened. */
  opening: number
  /** The boot of the sandbox whose terminals are known. */
  seenBoot: string | undefined
  /** Aborts when another agent has them. */
  gone: AbortController
}

/** The end of a terminal; without either, its sandbox was removed. */
type TerminalEnd = Pick<CommandExit, 'code' | 'signal'>

interface TerminalContext {
  /** The same command by another stream, from this offset on. */
  again: (bootId: string, offset: number) => Promise<RunningCommand | undefined>
  leaving: AbortSignal
}

class Terminal {
  /** Resolves when it has ended; undefined: the agent goes, and it runs on. Never rejects. */
  readonly ended: Promise<TerminalEnd | undefined>
  readonly #startedAt: number
  readonly #context: TerminalContext
  readonly #scrollback = new Scrollback(SCROLLBACK_BYTES)
  #command: RunningCommand
  #viewer: Viewer | undefined
  #unwatched: NodeJS.Timeout | undefined

  constructor(command: RunningCommand, startedAt: number, context: TerminalContext) {
    this.#command = command
    this.#startedAt = startedAt
    this.#context = context
    this.#watchTime()
    this.ended = this.#follow()
  }

  get view(): TerminalView {
    return { id: this.#command.id, startedAt: this.#startedAt, watched: this.#viewer !== undefined }
  }

  /** `socket` shows it from now on; another that did until now is closed. */
  show(socket: ViewerSocket, from: number): void {
    this.#viewer?.close(TERMINAL_TAKEN, 'this terminal is shown elsewhere')
    const viewer: Viewer = new Viewer({
      socket,
      scrollback: this.#scrollback,
      from,
      type: (keys) => this.#command.writeStdin(keys),
      resize: (size) => void Promise.allSettled([this.#command.resize(size)]),
      left: () => {
        if (this.#viewer !== viewer) return
        this.#viewer = undefined
        this.#watchTime()
      },
    })
    this.#viewer = viewer
    clearTimeout(this.#unwatched)
  }

  async close(): Promise<void> {
    await this.#command.cancel(GRACE_MS)
    await this.ended
  }

  #watchTime(): void {
    clearTimeout(this.#unwatched)
    const end = (): void => void Promise.allSettled([this.#command.cancel(GRACE_MS)])
    this.#unwatched = setTimeout(end, UNWATCHED_MS).unref()
  }

  async #follow(): Promise<TerminalEnd | undefined> {
    const end = await this.#readToEnd()
    clearTimeout(this.#unwatched)
    const last = end && ({ type: 'ended', exitCode: end.code, signal: end.signal } satisfies TerminalNotice)
    if (last !== undefined) this.#viewer?.close(NORMAL, 'the terminal has ended', last)
    else this.#viewer?.close(AWAY, 'the agent goes')
    return end
  }

  async #readToEnd(): Promise<TerminalEnd | undefined> {
    for (;;) {
      const command = this.#command
      try {
        await this.#read(command)
        const { code, signal, bytes } = await command.exit
        command.acknowledge({ stdout: bytes.stdout })
        return { code, signal }
      } catch {
        // The stream to the sandbox was lost, or the sandbox is gone.
        if (this.#context.leaving.aborted) return undefined
        const again = await this.#context.again(command.bootId, this.#scrollback.end)
        if (this.#context.leaving.aborted) return undefined
        if (again === undefined) return {}
        this.#command = again
      }
    }
  }

  async #read(command: RunningCommand): Promise<void> {
    for await (const { offset, data } of command.output) {
      const { start } = this.#scrollback
      this.#scrollback.push(offset, data)
      // The scrollback also stays in the sandbox, for the next agent.
      if (this.#scrollback.start > start) command.acknowledge({ stdout: this.#scrollback.start })
      await this.#viewer?.caughtUp()
    }
  }
}

/** The time of its start is in it, for an agent that finds it. */
function newTerminalId(now: number): CommandId {
  return now.toString(16).padStart(12, '0') + randomBytes(10).toString('hex')
}

function startOf(id: CommandId, now: number): number {
  const startedAt = Number.parseInt(id.slice(0, 12), 16)
  return startedAt <= now ? startedAt : now
}
