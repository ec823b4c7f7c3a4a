/**
 * Where a call's raw output goes: the store, up to the limit; beyond it bytes are only counted and the command runs on.
 * One append is under way per call; what arrives meanwhile goes with the next one, so a fast command makes few, large ones.
 */
import { newlinesInBytes } from '../tools/count-newlines.ts'
import { outputUrl } from '../tools/output-url.ts'
import type { CallContext, Policy, ToolCall, ToolOutcome } from '../tools/tool.ts'
import { truncateToolOutput, withOwnWords } from '../tools/truncate-output.ts'

export function saveOutput(limitBytes: number): Policy {
  return (next) =>
    async function* saved(call, ctx) {
      const saver = createSaver(limitBytes, (offset, bytes) => ctx.saveOutput(offset, bytes))
      const outcome = yield* next(call, { ...ctx, saveOutput: saver.save })
      await saver.idle()
      if (outcome.outputInfo !== undefined) return outcome
      if (saver.total() === 0) return savedText(outcome, call, ctx, limitBytes)
      // The tool did not say what its output was, but the bytes are there to read.
      const url = outputUrl(ctx.sessionId, call.callId)
      return { ...outcome, outputInfo: { bytes: saver.total(), lines: saver.lines(), truncated: true, url } }
    }
}

/** A text that is longer than the model gets is stored like an output, so that the rest of it can be read. */
async function savedText(
  outcome: ToolOutcome,
  call: ToolCall,
  ctx: CallContext,
  limitBytes: number,
): Promise<ToolOutcome> {
  const { callId } = call
  const rest = ctx.outputsReadable ? { callId } : {}
  const { text, truncated } = truncateToolOutput(outcome.forModel, { ...withOwnWords(ctx.results), ...rest })
  if (!truncated) return outcome
  const bytes = Buffer.from(outcome.forModel.toWellFormed())
  await ctx.saveOutput(0, bytes.subarray(0, limitBytes))
  const lines = newlinesInBytes(bytes) + (bytes.at(-1) === 10 ? 0 : 1)
  const url = outputUrl(ctx.sessionId, callId)
  return { ...outcome, forModel: text, outputInfo: { bytes: bytes.length, lines, truncated, url } }
}

interface Saver {
  save: CallContext['saveOutput']
  idle(): Promise<void>
  /** Bytes produced, stored or not. */
  total(): number
  lines(): number
}

function createSaver(limitBytes: number, append: CallContext['saveOutput']): Saver {
  let total = 0
  let lines = 0
  let batch: { from: number; end: number; parts: Uint8Array[] } | undefined
  /** The append under way, and the one that takes what arrives meanwhile. */
  let current: Promise<void> = Promise.resolve()
  let following: Promise<void> | undefined

  const flush = (): Promise<void> => {
    current = following ?? current
    following = undefined
    const full = batch
    batch = undefined
    return full === undefined ? Promise.resolve() : append(full.from, Buffer.concat(full.parts))
  }

  return {
    save(offset, bytes) {
      lines += newlinesInBytes(bytes)
      total = Math.max(total, offset + bytes.length)
      const room = bytes.subarray(0, Math.max(0, limitBytes - offset))
      if (room.length === 0) return Promise.resolve()
      batch ??= { from: offset, end: offset, parts: [] }
      if (offset !== batch.end)
        return Promise.reject(new RangeError(`output goes from ${batch.end} to ${offset}`))
      batch.parts.push(room)
      batch.end += room.length
      following ??= current.then(flush)
      return following
    },
    idle: () => following ?? current,
    total: () => total,
    lines: () => lines,
  }
}
