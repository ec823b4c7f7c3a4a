/**
 * What enters the log is safe for every model and every store: well-formed, no NUL, never empty,
 * never too long.
 */
import type { ToolCallContent } from '@sandlot/shared/call'
import { type ResultLimits, truncateToolOutput, withOwnWords } from '../tools/output/truncate-output.ts'
import type { ToolOutcome } from '../tools/tool.ts'

/** Cleans what the model and the screen get. Cuts `forModel` only if its tool did not. */
export function cleanOutcome(outcome: ToolOutcome, results: ResultLimits): ToolOutcome {
  const text = cleanText(outcome.forModel)
  const said = text.trim() === '' ? emptyText(outcome) : text
  return {
    ...outcome,
    forModel: truncateToolOutput(said, withOwnWords(results)).text,
    content: outcome.content?.map(cleanContent),
    data: outcome.data === undefined ? undefined : cleanData(outcome.data),
  }
}

/**
 * Cuts what the model gets to `limit` characters, because the calls of its turn have too much
 * together.
 */
export function shortenOutcome(outcome: ToolOutcome, limit: number): ToolOutcome {
  if (outcome.forModel.length <= limit) return outcome
  const { text } = truncateToolOutput(outcome.forModel, { maxChars: limit, ...keepsFile(outcome) })
  const info = outcome.outputInfo
  return {
    ...outcome,
    forModel: text,
    outputInfo: info === undefined ? undefined : { ...info, truncated: true },
  }
}

function keepsFile(outcome: ToolOutcome): { file?: string } {
  const file = outcome.outputInfo?.file
  return file === undefined ? {} : { file }
}

/** Well-formed UTF-16 without NUL: providers answer 400 to the one, databases refuse the other. */
export function cleanText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '')
}

function emptyText(outcome: ToolOutcome): string {
  return outcome.status === 'completed'
    ? 'The call succeeded and returned nothing.'
    : `The call failed (${outcome.reason}).`
}

function cleanContent(content: ToolCallContent): ToolCallContent {
  if (content.type === 'diff') {
    const { path, oldText, newText } = content
    return {
      type: 'diff',
      path,
      oldText: typeof oldText === 'string' ? cleanText(oldText) : oldText,
      newText: cleanText(newText),
    }
  }
  const block = content.content
  return block.type === 'text' ? { ...content, content: { ...block, text: cleanText(block.text) } } : content
}

/** `data` is whatever JSON the tool made; its texts are cleaned like the others. */
function cleanData(data: unknown): unknown {
  if (typeof data === 'string') return cleanText(data)
  if (Array.isArray(data)) return data.map(cleanData)
  if (typeof data !== 'object' || data === null) return data
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [cleanText(key), cleanData(value)]))
}
