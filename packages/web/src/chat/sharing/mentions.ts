/** @mentions of people in a comment: as text, with the names as they are written. All pure. */
import type { Author } from '@sandlot/shared/chat/shares'

interface Part {
  text: string
  /** Its start. */
  at: number
  person?: Author
}

/** The text in pieces; those that mention one of these people say whom. */
export function partsOf(text: string, people: readonly Author[]): Part[] {
  // The longer of two names with the same beginning is meant.
  const byLength = people.filter(({ name }) => name !== '').toSorted((a, b) => b.name.length - a.name.length)
  const parts: Part[] = []
  let from = 0
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) {
    if (at < from) continue
    const person = byLength.find(({ name }) => text.startsWith(name, at + 1))
    if (person === undefined) continue
    if (at > from) parts.push({ text: text.slice(from, at), at: from })
    from = at + 1 + person.name.length
    parts.push({ text: text.slice(at, from), at, person })
  }
  if (from < text.length) parts.push({ text: text.slice(from), at: from })
  return parts
}

/** Ids of those whom the text mentions. */
export function mentionsIn(text: string, people: readonly Author[]): string[] {
  return [
    ...new Set(partsOf(text, people).flatMap(({ person }) => (person === undefined ? [] : [person.id]))),
  ]
}

/** The unfinished mention at the end of `before`, the text up to the caret. */
export function begunMention(before: string): string | undefined {
  return /(?:^|\s)@([^\n@]{0,40})$/.exec(before)?.[1]
}

/** Those who may be meant by what was begun; none once a name is whole. */
export function candidates(begun: string, people: readonly Author[]): Author[] {
  const wanted = begun.toLowerCase()
  return people
    .filter(({ name }) =>
      name
        .toLowerCase()
        .split(/\s+/)
        .some((_, at, words) => words.slice(at).join(' ').startsWith(wanted)),
    )
    .filter(({ name }) => name !== begun)
    .slice(0, 6)
}
