/** The request for a summary, and what stands in for one that cannot be had. Pure. */
import type { SessionEvent } from '@sandlot/shared/chat/events'
import { readItems } from '../history/model-messages.ts'
import { atMostTokens, messageTokens, messagesTokens } from '../model/tokens.ts'
import type { ModelMessage } from '../model/model.ts'
import { changedFiles } from '../history/compaction.ts'

/** Sent after the conversation as it is, so that the provider's cache of it serves again. */
const SUMMARY_REQUEST = `The conversation is about to outgrow your context window. Do not call tools and do not go on with the work now. Write a summary from which you can go on later without the messages above:

1. What the user wants, in their words where these matter, with every wish and limit that still holds.
2. What was done and found out: facts, decisions and their reasons, paths, names, commands that work, errors and what they meant.
3. Where it stands: what is finished, what is half done, what is next.

Only what is in the conversation. No greeting and no comment, at most 800 words.`

const FOCUS = 'The user asks you not to lose this: '

/**
 * The messages of the request for a summary. Where they would not fit into `most` tokens, the
 * oldest turns are left out. `focus`: what it must not lose.
 */
export function summaryMessages(
  messages: readonly ModelMessage[],
  most: number,
  focus?: string,
): ModelMessage[] {
  const [system, ...whole] = messages
  const rest = messagesTokens(whole) <= most ? whole : whole.map((message) => shortened(message, most / 4))
  const retained = endWithin(rest, most)
  // Begins with the user, as every provider wants it.
  const opening: ModelMessage[] =
    retained[0]?.role === 'user' ? [] : [{ role: 'user', content: '(The beginning is left out.)' }]
  return [
    ...(system === undefined ? [] : [system]),
    ...opening,
    ...retained,
    {
      role: 'user',
      content: focus === undefined ? SUMMARY_REQUEST : `${SUMMARY_REQUEST}\n\n${FOCUS}${focus}`,
    },
  ]
}

/** With at most so many tokens of text: better the beginning of a long message than none. */
function shortened(message: ModelMessage, most: number): ModelMessage {
  const content = atMostTokens(
    message.content,
    most,
    (long, chars) => `${long.slice(0, chars).toWellFormed()}…`,
  )
  return { ...message, content }
}

/**
 * The longest end of the messages that fits and does not begin with a result; the shortest such end
 * when none fits.
 */
function endWithin(messages: readonly ModelMessage[], most: number): ModelMessage[] {
  let tokens = messagesTokens(messages)
  let from = 0
  for (const [place, message] of messages.entries()) {
    if (place === 0 || message.role !== 'tool') {
      from = place
      if (tokens <= most) break
    }
    tokens -= messageTokens(message)
  }
  return messages.slice(from)
}

/**
 * The summary as it is stored: words, and the list of changed files, which must not be forgotten.
 * Each of the two takes at most half of `most` tokens; of a longer list the files that were changed
 * last are in it.
 */
export function summaryText(words: string, log: readonly SessionEvent[], upTo: number, most: number): string {
  const said = words.trim().toWellFormed()
  const short = atMostTokens(said, most / 2, (long, chars) => `${long.slice(0, chars).toWellFormed()}…`)
  const files = changedFiles(upToSeq(log, upTo))
  if (files.length === 0) return short
  const list = atMostTokens(
    files.map((file) => `- ${file}`).join('\n'),
    most / 2,
    (long, chars) => `- …\n${afterLine(long.slice(-chars))}`,
  )
  return `${short}\n\nFiles changed so far:\n${list}`
}

/** Without the line in which it begins. */
function afterLine(text: string): string {
  return text.slice(text.indexOf('\n') + 1)
}

/**
 * Without a model's summary: what was asked and answered, shortened, and nothing of what the calls
 * gave.
 */
export function mechanicalSummary(log: readonly SessionEvent[], upTo: number, most: number): string {
  const lines = readItems(upToSeq(log, upTo)).flatMap((item) => {
    if (item.type === 'user') return [`The user: ${short(item.text, 600)}`]
    if (item.type === 'end') return item.text === undefined ? [] : [`(${short(item.text, 200)})`]
    const { text, calls } = item.turn
    const titles = calls.map(({ call }) => call.title).join('; ')
    return [
      ...(text.trim() === '' ? [] : [`You: ${short(text, 400)}`]),
      ...(titles === '' ? [] : [`Calls: ${short(titles, 300)}`]),
    ]
  })
  const words = `(No summary could be written; this is the course of the conversation, shortened.)\n${lines.join('\n')}`
  // The end says more about where it stands than the beginning.
  return atMostTokens(words, most, (long, chars) => `…${long.slice(-chars)}`).toWellFormed()
}

function upToSeq(log: readonly SessionEvent[], upTo: number): SessionEvent[] {
  return log.filter((event, index) => (event._meta.sandlot.seq ?? index + 1) <= upTo)
}

function short(text: string, chars: number): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length <= chars ? line : `${line.slice(0, chars)}…`
}
