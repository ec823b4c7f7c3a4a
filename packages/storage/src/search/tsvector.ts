/**
 * The word index on PostgreSQL. Vectors are made here instead of by the database's parser, which
 * would split words differently from `text.ts`.
 */
import { randomInt } from 'node:crypto'
import { sql } from 'kysely'
import type { SearchIndex } from './table.ts'
import type { Term } from './text.ts'

/** Limits of a vector: positions of one word, and the highest position, which later words share. */
const MOST_POSITIONS = 255
const LAST_POSITION = 16_383

export const tsvector: SearchIndex = {
  idType: 'bigint',
  id: sql`search_words.id`,

  async create(db) {
    await sql`
      create table search_words (
        id bigint primary key references search_texts (id) on delete cascade, words tsvector not null
      )
    `.execute(db)
    await sql`create index search_words_words on search_words using gin (words)`.execute(db)
  },

  async add(trx, texts) {
    for (let left = texts; left.length > 0;) {
      const rows = left.map((text) => ({ ...text.row, id: text.first + nextNumber(text.end - text.first) }))
      const added = await trx
        .insertInto('search_texts')
        .values(rows)
        .onConflict((conflict) => conflict.column('id').doNothing())
        .returning('id')
        .execute()
      const ids = new Set(added.map(({ id }) => id))
      const values = left.flatMap(({ words, scope }, index) => {
        const { id = 0 } = rows[index] ?? {}
        return ids.has(id) ? [sql`(${id}::bigint, ${vectorOf(words, scope)}::tsvector)`] : []
      })
      if (values.length > 0)
        await sql`insert into search_words (id, words) values ${sql.join(values)}`.execute(trx)
      left = left.filter((_, index) => !ids.has(rows[index]?.id ?? 0))
    }
  },

  matches(terms, scopes) {
    const query = [
      ...terms.map(expressionOf),
      ...scopes.map((words) => `(${words.map((word) => quoted(scoped(word))).join(' | ')})`),
    ].join(' & ')
    return sql`search_words.words @@ ${query}::tsquery`
  },

  /** Its rows are removed with the texts. */
  forgetRemoved: () => Promise.resolve(),

  isOneOf: (column, values) => sql`${column} = any(${values}::text[])`,
}

/**
 * Numbers within a second do not start from its first, because writers would wait for each other's
 * commits: each process continues from a random one, and skips taken ones.
 */
let lastNumber = randomInt(2 ** 30)

function nextNumber(end: number): number {
  lastNumber += 1
  return lastNumber % end
}

function vectorOf(words: string, scope: readonly string[]): string {
  const positions = new Map<string, number[]>()
  for (const [index, word] of words.trimEnd().split(' ').entries()) {
    const of = positions.get(word)
    if (of === undefined) positions.set(word, [index + 1])
    else if (of.length < MOST_POSITIONS) of.push(index + 1)
  }
  return [
    ...scope.map((word) => quoted(scoped(word))),
    ...[...positions].map(
      ([word, of]) => `${quoted(word)}:${of.map((position) => Math.min(position, LAST_POSITION)).join(',')}`,
    ),
  ].join(' ')
}

function expressionOf({ words, open }: Term): string {
  const lexemes = words.map(quoted)
  return `(${lexemes.join(' <-> ')}${open ? ':*' : ''})`
}

/** A character that no word contains. */
function scoped(word: string): string {
  return `=${word}`
}

/** Words have letters and digits only, so there is nothing to escape. */
function quoted(word: string): string {
  return `'${word}'`
}
