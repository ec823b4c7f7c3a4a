/**
 * A call as the model makes it: the scheduler, every policy, the built-in tool, SandboxedToolExecutor, the sandbox. Output
 * goes to a file instead of memory, so that what grows in this process is the product's.
 */
import { randomBytes } from 'node:crypto'
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { TestBatch } from '../../packages/ai-agent/test/calls/test-batch.ts'
import type { Mode } from '../../packages/shared/src/chat/mode.ts'
import type { Rule } from '../../packages/shared/src/chat/rules.ts'
import type { Sandboxes } from '../../packages/sandbox/src/controller/sandboxes.ts'

/** Result of a call for users and the model, and its stored bytes. */
export interface ToolResult {
  status: 'completed' | 'failed'
  reason?: string
  code?: number
  signal?: string
  /** Counted by the tool. */
  bytes: number
  /** The stored output, at most its first 4 MiB, as text with invalid bytes replaced. */
  output: string
  /** The same, raw. */
  raw: Buffer
  forModel: string
  /** Milliseconds, measured inside the sandbox; absent when the command did not run. */
  durationMs?: number
}

export interface CallOptions {
  /** Called once, with the first live output. */
  onOutput?: (cancel: () => void) => void
  /** Cut the model's own limit; default that of the tool. */
  timeoutMs?: number
  /** Default yolo: nobody is asked. What asks is denied. */
  mode?: Mode
  /** Rules of the user. Default none. */
  rules?: readonly Rule[]
}

const READ_BACK = 4 * 1024 * 1024

/** Calls of one user's tools over one controller. */
export class ToolCaller {
  readonly #sandboxes: Sandboxes
  readonly #user: string

  constructor(sandboxes: Sandboxes, user: string) {
    this.#sandboxes = sandboxes
    this.#user = user
  }

  /** `run_shell_command`. The counted bytes are checked against the stored ones. */
  shell(command: string, options: CallOptions = {}): Promise<ToolResult> {
    const timeout = options.timeoutMs === undefined ? {} : { timeout_ms: options.timeoutMs }
    return this.call('run_shell_command', { command, ...timeout }, options)
  }

  /** Any built-in tool. */
  async call(name: string, args: Record<string, unknown>, options: CallOptions = {}): Promise<ToolResult> {
    const folder = await mkdtemp(join(tmpdir(), 'sandlot-hostile-'))
    const file = await open(join(folder, 'output'), 'w+')
    try {
      const batch = new StoredBatch(this.#sandboxes, this.#user, file)
      batch.mode = options.mode ?? batch.mode
      batch.rules = options.rules ?? []
      let told = false
      const [outcome] = await batch.run([{ id: 'c1', name, args }], (event) => {
        // Nobody asks for them here, and they would be most of what this process holds.
        batch.events.length = 0
        const meta = '_meta' in event ? event._meta?.sandlot : undefined
        if (told || options.onOutput === undefined || meta?.output === undefined) return
        told = true
        options.onOutput(() => batch.cancelOf('c1').abort('cancelled'))
      })
      if (outcome === undefined) throw new Error('the call had no outcome')
      const raw = Buffer.alloc(Math.min(READ_BACK, batch.stored))
      await file.read(raw, 0, raw.length, 0)
      const bytes = outcome.outputInfo?.bytes ?? 0
      if (bytes !== batch.stored)
        throw new Error(`${bytes} bytes of output were counted and ${batch.stored} stored`)
      const usage = outcome.data as { durationMs?: number } | undefined
      return {
        status: outcome.status,
        ...(outcome.status === 'failed' ? { reason: outcome.reason } : {}),
        ...outcome.exit,
        bytes,
        raw,
        output: raw.toString(),
        forModel: outcome.forModel,
        durationMs: usage?.durationMs,
      }
    } finally {
      await file.close()
      await rm(folder, { recursive: true, force: true })
    }
  }
}

/** Stores output without holes in a file. Its own session, so that command ids never meet. */
class StoredBatch extends TestBatch {
  stored = 0
  readonly #sandboxes: Sandboxes
  readonly #user: string
  readonly #file: FileHandle
  readonly #session = `s_${randomBytes(8).toString('hex')}`

  constructor(sandboxes: Sandboxes, user: string, file: FileHandle) {
    super({ settings: { outputLimitBytes: 2 ** 40 } })
    this.#sandboxes = sandboxes
    this.#user = user
    this.#file = file
  }

  override context(): ReturnType<TestBatch['context']> {
    const context = super.context()
    return {
      ...context,
      ids: { ...context.ids, sessionId: this.#session, userId: this.#user },
      sandbox: (signal) => this.#sandboxes.acquire(this.#user, signal),
      outputs: {
        append: async (_callId, offset, bytes) => {
          if (offset > this.stored) throw new Error(`a hole in the output: ${this.stored} to ${offset}`)
          await this.#file.write(bytes, 0, bytes.length, offset)
          this.stored = Math.max(this.stored, offset + bytes.length)
        },
        read: async (_callId, from, to) => {
          const bytes = Buffer.alloc(Math.max(0, Math.min(to, this.stored) - from))
          await this.#file.read(bytes, 0, bytes.length, from)
          return bytes
        },
      },
    }
  }
}
