/**
 * The output of one command on its way: raw bytes to the store, pieces to its watchers, head and
 * tail to the model. Bytes are acknowledged to the sandbox once they are stored, so that neither
 * side's crash loses any.
 */
import type { OutputInfo } from '@sandlot/shared/chat/call'
import { createTerminalCleaner } from './ansi-text.ts'
import { newlinesInText } from './count-newlines.ts'
import type { LiveOutput } from './live-output.ts'
import { createOutputKeeper, grouped, outputUrl } from './truncate-output.ts'
import type { CallContext } from '../tool.ts'

/**
 * Bytes that may wait for the store before reading pauses. Below the sandbox's window, so that it
 * never stalls on us.
 */
const MAX_UNSTORED = 512 * 1024
const REPLAY_BYTES = 256 * 1024

export interface CommandOutput {
  /** The offset of the next byte. */
  position(): number
  /**
   * Takes the bytes at `offset`; resolves when more may come. `stored` is called with an offset up
   * to which all is kept.
   */
  add(offset: number, bytes: Uint8Array, stored: (upTo: number) => void): Promise<void>
  /** Reads back what an earlier process stored; the next byte is the first that is not stored. */
  replay(): Promise<void>
  /** Resolves when everything is stored. @throws what the store threw. */
  stored(): Promise<void>
  /**
   * `file`: where the ordinary tools find all of it. `headShare`: as in `truncateToolOutput`.
   * `bytes`: of all that was printed; what of it did not come is gone, and the text says so.
   */
  finish(options: { file?: string; headShare?: number; bytes?: number }): FinishedOutput
}

export interface FinishedOutput {
  /** Plain text for the model, cut. */
  text: string
  /** The same part of the output with its escape sequences, cut, for the screen. */
  screen: string
  /** Absent when there was no output. */
  info?: OutputInfo
}

export function createCommandOutput(ctx: CallContext, live: LiveOutput): CommandOutput {
  const decoder = new TextDecoder()
  const cleaner = createTerminalCleaner()
  const forModel = createOutputKeeper(ctx.output.limits.chars)
  const forScreen = createOutputKeeper(ctx.output.limits.chars)
  let position = 0
  let newlines = 0
  let lastByte = 10
  let unstored = 0
  let saving: Promise<void> = Promise.resolve()

  const keep = (text: string): void => {
    forModel.push(cleaner.push(text))
    forScreen.push(text)
  }
  /** Everything but storing. */
  const read = (offset: number, bytes: Uint8Array): void => {
    lastByte = bytes.at(-1) ?? lastByte
    position = offset + bytes.length
    const text = decoder.decode(bytes, { stream: true })
    newlines += newlinesInText(text)
    keep(text)
    live.push(offset, bytes)
  }

  return {
    position: () => position,
    async add(offset, bytes, stored) {
      // After a reconnect, bytes read before arrive again; bytes after the stored part may be
      // missing after a restart.
      const fresh = offset < position ? bytes.subarray(position - offset) : bytes
      if (fresh.length === 0) return
      const from = Math.max(offset, position)
      read(from, fresh)
      unstored += fresh.length
      saving = Promise.all([saving, ctx.output.save(from, fresh)]).then(() => {
        unstored -= fresh.length
        stored(from + fresh.length)
      })
      // A failure is thrown to the next caller; until then it must not count as unhandled.
      void Promise.allSettled([saving])
      if (unstored > MAX_UNSTORED) await saving
    },
    async replay() {
      for (;;) {
        const bytes = await ctx.output.read(position, position + REPLAY_BYTES)
        if (bytes.length === 0) return
        read(position, bytes)
      }
    },
    stored: () => saving,
    finish({ file, headShare, bytes = position }) {
      keep(decoder.decode())
      if (bytes > position) keep((lastByte === 10 ? '' : '\n') + goneNotice(position, bytes, file))
      forModel.push(cleaner.end())
      const lines = newlines + (lastByte === 10 ? 0 : 1)
      const options = {
        whole: { bytes: position, lines },
        maxLines: ctx.output.limits.lines,
        callId: ctx.ids.callId,
        file,
        headShare,
      }
      const { text, truncated: isCut } = forModel.finish(options)
      const truncated = isCut || bytes > position
      const screen = forScreen.finish(options).text
      if (position === 0) return { text, screen }
      const url = outputUrl(ctx.ids.sessionId, ctx.ids.callId)
      const info = { bytes: position, lines, truncated, file, url }
      return { text: withoutLastBreak(text), screen: withoutLastBreak(screen), info }
    },
  }
}

/** The output had been acknowledged to the sandbox, and the store lost it. */
function goneNotice(storedBytes: number, bytes: number, file: string | undefined): string {
  const what = storedBytes === 0 ? 'The output' : `The output from byte ${grouped(storedBytes)} on`
  const where =
    file === undefined
      ? ''
      : ` All of it (at most the first 16 MiB) is in ${file}: read parts with read_file.`
  return `[… ${what} is gone: the database lost it after the command had ended. The whole was ${grouped(bytes)} bytes. The command ran once, and was not run again.${where} …]`
}

function withoutLastBreak(text: string): string {
  return text.endsWith('\n') ? text.slice(0, -1) : text
}
