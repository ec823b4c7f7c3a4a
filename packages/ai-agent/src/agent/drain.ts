/**
 * `drain.js <id…>`: asks these replicas to hand their people over, and waits until they have none.
 * For `./sandlot drain`, and in a container of compose. Prints who is left on stderr, and one line
 * of JSON; exits with 1 where people are left after the time, or a replica is not there.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { startProblem } from '@sandlot/storage/plain-words'
import { messageOf } from '@sandlot/shared/base/errors'
import { openSessionStore } from '@sandlot/storage/store/open'
import { readAgentConfig } from '../config/config.ts'
import { builtinTools } from '../tools/builtin/index.ts'

/** The longest time of a drain. */
const PATIENCE_MS = 30_000
const POLL_MS = 250

interface Drained {
  id: string
  /** A living replica of this id. */
  isThere: boolean
  /** People whom it still has, by their addresses where these are known. */
  left: string[]
}

const nameOf = (email: string | undefined, user: string): string =>
  email === undefined || email === '' ? user : email

async function drain(ids: readonly string[]): Promise<{ drained: Drained[]; others: number }> {
  const config = readAgentConfig(builtinTools().map((tool) => tool.name))
  const store = await openSessionStore(config.database, { mode: config.sessionsMode })
  try {
    const there = new Map<string, boolean>()
    for (const id of ids) there.set(id, await store.replicas.askToDrain(id))
    const check = async (): Promise<Drained[]> => {
      const people = await store.people.known.all()
      return Promise.all(
        ids.map(async (id) => {
          const left = (await store.replicas.peopleOf(id)).map((user) =>
            nameOf(people.get(user)?.email, user),
          )
          return { id, isThere: there.get(id) === true, left: there.get(id) === true ? left : [] }
        }),
      )
    }
    const until = performance.now() + PATIENCE_MS
    let said = ''
    for (;;) {
      const drained = await check()
      const left = drained.flatMap((one) => one.left)
      if (left.length === 0 || performance.now() > until) {
        const living = (await store.replicas.list()).filter((one) => one.living && !one.draining)
        return { drained, others: living.filter(({ id }) => !ids.includes(id)).length }
      }
      if (left.join(', ') !== said) process.stderr.write(`left: ${(said = left.join(', '))}\n`)
      await sleep(POLL_MS)
    }
  } finally {
    await store.close()
  }
}

try {
  const answer = await drain(process.argv.slice(2))
  process.stdout.write(`${JSON.stringify(answer)}\n`)
  if (answer.drained.some(({ isThere, left }) => !isThere || left.length > 0)) process.exitCode = 1
} catch (error) {
  process.stderr.write(`${startProblem(error) ?? messageOf(error)}\n`)
  process.exitCode = 2
}
