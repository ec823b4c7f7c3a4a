/**
 * Words of texts and of queries: searchable parts of events, comparison of words, and snippets of
 * matches. Independent of the index's database.
 */
import { stripVTControlCharacters } from 'node:util'
import type { SearchKind, SnippetPart } from '@sandlot/shared/search/search'
import { type SessionEvent, isOutcome, metaOf, sandlotEventOf, textOf } from '@sandlot/shared/chat/events'
import { WITHOUT_WORDS } from '@sandlot/shared/chat/images'

/** Characters of one text; bytes of one output. */
export const MAX_SEARCHED = 64 * 1024
/** A longer run of letters is data, and found by its beginning. */
const MAX_WORD = 64
/** Per query; the rest is ignored. */
const MAX_TERMS = 24

/** Letters, digits and the marks on them, in runs. */
const RUNS = /[\p{L}\p{N}\p{Co}][\p{L}\p{N}\p{M}\p{Co}]*/gu
/** Scripts without spaces between words: each character is a word. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]\p{M}*/gu
const ASCII = /^[\0-\u007f]*$/

/** A searchable part of an event. */
export interface Searchable {
  kind: SearchKind
  /** Id of the message, comment or call. */
  ref: string
  /** The author; null: the agent. Undefined: the chat's owner. */
  author: string | null | undefined
  /** For an output: the model's text, which the stored output replaces. */
  text: string
}

/** The searchable part of a settled event; undefined: none. */
export function searchableOf(event: SessionEvent): Searchable | undefined {
  const author = metaOf(event).author?.id
  switch (event.sessionUpdate) {
    case 'user_message_chunk':
      return said('message', event.messageId, author, textOf(event))
    case 'agent_message_chunk':
      return said('answer', event.messageId, null, textOf(event))
    case 'tool_call':
      return said('command', event.toolCallId, null, [event.title, ...stringsOf(event.rawInput)].join('\n'))
    case 'tool_call_update': {
      if (!isOutcome(event)) return undefined
      return said('output', event.toolCallId, null, event.rawOutput?.forModel ?? '')
    }
    case 'session_info_update': {
      if (typeof event.title === 'string') return said('title', '', author, event.title)
      const happened = sandlotEventOf(event)
      if (happened?.type !== 'comment') return undefined
      return said('comment', happened.commentId, author, happened.text)
    }
    default:
      return undefined
  }
}

function said(
  kind: SearchKind,
  ref: string,
  author: string | null | undefined,
  text: string,
): Searchable | undefined {
  if (text === '' || text === WITHOUT_WORDS) return undefined
  return { kind, ref, author, text: text.slice(0, MAX_SEARCHED) }
}

function stringsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'number') return [String(value)]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(stringsOf)
}

/** The first bytes of an output as text; empty for binary data. */
export function outputText(bytes: Uint8Array): string {
  if (bytes.includes(0)) return ''
  return stripVTControlCharacters(new TextDecoder().decode(bytes))
}

// ── Words
// ───────────────────────────────────────────────────────────────────────────────────────────────

/** Ignores case, width and accents of Latin, Greek and Cyrillic letters. */
function fold(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase()
  // Through capitals, so that ß becomes ss, and a final sigma equals others.
  return text
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKD')
    .replaceAll(/[\u0300-\u036f]/g, '')
    .replaceAll('ς', 'σ')
}

/** The indexed form of a text: its words, each followed by a space. */
export function indexedText(text: string): string {
  let words = ''
  for (const { word } of wordsOf(text)) words += `${word} `
  return words
}

interface Word {
  /** Folded. */
  word: string
  /** Its offset in the text. */
  start: number
  end: number
}

function* wordsOf(text: string): Generator<Word> {
  for (const { 0: run, index } of text.matchAll(RUNS)) {
    if (ASCII.test(run)) {
      yield { word: run.slice(0, MAX_WORD).toLowerCase(), start: index, end: index + run.length }
      continue
    }
    let from = 0
    for (const { 0: one, index: at } of run.matchAll(UNSPACED)) {
      if (at > from) yield* foldedWords(run.slice(from, at), index + from)
      yield* foldedWords(one, index + at)
      from = at + one.length
    }
    if (from < run.length) yield* foldedWords(run.slice(from), index + from)
  }
}

/** Folding may split a character into several words, like ½ or ㎞. */
function* foldedWords(run: string, start: number): Generator<Word> {
  for (const [word] of fold(run).matchAll(RUNS))
    yield { word: word.slice(0, MAX_WORD), start, end: start + run.length }
}

/** Consecutive words; the last one is a prefix, unless it was quoted. */
export interface Term {
  words: readonly string[]
  open: boolean
}

/**
 * The terms of a query, all required. Words match prefixes; "quoted words" and words joined by
 * signs, like a path, match exactly.
 */
export function termsOf(search: string): Term[] {
  const terms: Term[] = []
  // An unclosed quote extends to the end.
  for (const [index, part] of search
    .replaceAll(/[“”„«»]/g, '"')
    .split('"')
    .entries()) {
    const quoted = index % 2 === 1
    for (const one of quoted ? [part] : part.split(/\s+/)) {
      const words = [...wordsOf(one)].map(({ word }) => word)
      if (words.length > 0) terms.push({ words: words.slice(0, MAX_TERMS), open: !quoted })
    }
  }
  return terms.slice(0, MAX_TERMS)
}

// ── Snippets
// ────────────────────────────────────────────────────────────────────────────────────────────

/** Approximate characters of a snippet. */
const SNIPPET = 180
/** Characters before the first match. */
const BEFORE = 50
/** Inspected matches: a long text repeats itself. */
const MOST_MATCHES = 500

interface Match {
  term: number
  start: number
  end: number
}

/** A piece of `text` with as many different terms as possible, and marked matches. */
export function snippetOf(text: string, terms: readonly Term[]): SnippetPart[] {
  const matches = matchesOf(text, terms)
  const from = startOf(text, bestStart(matches))
  const until = Math.min(text.length, from + SNIPPET)
  const parts: SnippetPart[] = []
  const add = (piece: string, match: boolean): void => {
    const shown = piece.replaceAll(/\s+/g, ' ')
    if (shown !== '') parts.push(match ? { text: shown, match } : { text: shown })
  }
  let at = from
  if (from > 0) add('… ', false)
  for (const { start, end } of matches) {
    if (start < at || end > until) continue
    add(text.slice(at, start), false)
    add(text.slice(start, end), true)
    at = end
  }
  add(
    text
      .slice(at, until)
      .toWellFormed()
      .replace(/\uFFFD$/, ''),
    false,
  )
  if (until < text.length) add(' …', false)
  return parts
}

function matchesOf(text: string, terms: readonly Term[]): Match[] {
  const matches: Match[] = []
  const words: Word[] = []
  const longest = Math.max(1, ...terms.map((term) => term.words.length))
  for (const word of wordsOf(text)) {
    words.push(word)
    if (words.length > longest) words.shift()
    for (const [index, { words: wanted, open }] of terms.entries()) {
      const last = words.slice(-wanted.length)
      const [first] = last
      if (first === undefined || last.length < wanted.length) continue
      const found = wanted.every((one, at) => {
        const here = last[at]?.word ?? ''
        return open && at === wanted.length - 1 ? here.startsWith(one) : here === one
      })
      if (found) matches.push({ term: index, start: first.start, end: word.end })
    }
    if (matches.length >= MOST_MATCHES) break
  }
  return matches.toSorted((a, b) => a.start - b.start || b.end - a.end)
}

/** The start of the window with the most different terms. */
function bestStart(matches: readonly Match[]): number {
  let best = { start: matches[0]?.start ?? 0, count: 0 }
  for (const [index, { start }] of matches.entries()) {
    const seen = new Set<number>()
    for (const match of matches.slice(index)) {
      if (match.end > start + SNIPPET - BEFORE) break
      seen.add(match.term)
    }
    if (seen.size > best.count) best = { start, count: seen.size }
    if (seen.size === new Set(matches.map(({ term }) => term)).size) break
  }
  return best.start
}

/** A little before it, after a space if there is one. */
function startOf(text: string, match: number): number {
  if (match <= BEFORE) return 0
  const from = match - BEFORE
  const space = text.slice(from, match).search(/\s/)
  if (space >= 0) return from + space + 1
  // Not between the halves of a character.
  return /[\uDC00-\uDFFF]/.test(text.charAt(from)) ? from - 1 : from
}
