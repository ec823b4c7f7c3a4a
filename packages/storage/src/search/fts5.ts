/** The word index on SQLite. All SQL of FTS5 is in this file. */
import { pauseWhenDue } from '@sandlot/shared/node/time-slices'
import { type Kysely, type Transaction, sql } from 'kysely'
import type { SessionsSchema } from '../tables/sessions.ts'
import type { SearchIndex } from './table.ts'
import type { Term } from './text.ts'

/** Index pages per step of a merge. */
const MERGE_PAGES = 64

export const fts5: SearchIndex = {
  // The row's own number.
  idType: 'integer',
  id: sql`search_words.rowid`,

  /**
   * Marks are parts of words, so that scripts that write vowels as marks stay whole; accents of
   * Latin letters are folded before.
   */
  async create(db) {
    await sql`
      create virtual table search_words using fts5(
        text, scope, content='', contentless_delete=1, prefix='1 2 3',
        tokenize="unicode61 remove_diacritics 0 categories 'L* N* M* Co'"
      )
    `.execute(db)
    // Includes rows removed with their session.
    await sql`
      create trigger search_texts_removed after delete on search_texts begin
        delete from search_words where rowid = old.id;
      end
    `.execute(db)
  },

  async add(trx, texts) {
    const next = new Map<number, number>()
    const rows: SessionsSchema['search_texts'][] = []
    for (const { row, first, end } of texts) {
      const id = next.get(first) ?? (await nextId(trx, first, end))
      next.set(first, id + 1)
      rows.push({ ...row, id })
    }
    await trx.insertInto('search_texts').values(rows).execute()
    for (const [index, { words, scope }] of texts.entries())
      await sql`
        insert into search_words (rowid, text, scope) values (${rows[index]?.id}, ${words}, ${scope.join(' ')})
      `.execute(trx)
  },

  matches(terms, scopes) {
    const match = [
      `text : (${terms.map(expressionOf).join(' AND ')})`,
      ...scopes.map((words) => `scope : (${words.map((word) => `"${word}"`).join(' OR ')})`),
    ].join(' AND ')
    return sql`search_words match ${match}`
  },

  /** Removed words stay in the index until it is merged. */
  async forgetRemoved(commits) {
    const changes = async (from: Kysely<SessionsSchema>): Promise<number> =>
      (await sql<{ n: number }>`select total_changes() as n`.execute(from)).rows[0]?.n ?? 0
    for (let step = -MERGE_PAGES; ; step = MERGE_PAGES) {
      await pauseWhenDue()
      const done = await commits.run(async (trx) => {
        const before = await changes(trx)
        await sql`insert into search_words (search_words, rank) values ('merge', ${step})`.execute(trx)
        return (await changes(trx)) - before < 2
      })
      if (done && step > 0) return
    }
  },

  isOneOf: (column, values) => sql`${column} in (select value from json_each(${JSON.stringify(values)}))`,
}

/** There is one writer. */
async function nextId(trx: Transaction<SessionsSchema>, first: number, end: number): Promise<number> {
  const { rows } = await sql<{ id: number | null }>`
    select max(id) as id from search_texts where id >= ${first} and id < ${end}
  `.execute(trx)
  return (rows[0]?.id ?? first - 1) + 1
}

/** Words have letters and digits only, so none is syntax of FTS5. */
function expressionOf({ words, open }: Term): string {
  return `"${words.join(' ')}"${open ? ' *' : ''}`
}
