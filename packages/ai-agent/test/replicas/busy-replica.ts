/**
 * A process that owns one user, while its main thread is busy: in turns of the event loop that last seconds, then in one
 * without an end, until a file exists.
 */
import { existsSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { isNotOwner } from '@sandlot/storage/storage-error'
import { openSessionStore } from '@sandlot/storage/store/open'
import { deploymentKeys } from '@sandlot/shared/node/deployment-keys'
import { openReplica } from '../../src/replicas/open-replica.ts'

export interface BusyReplica {
  database: string
  userId: string
  keys: string
  /** Milliseconds, also of each turn. */
  busy: number
  turns: number[]
  stuck: number
  /** False: it blocks its thread without using a core. */
  burns: boolean
  /** Path of the file. */
  until: string
}

const { database, userId, keys, busy, turns, stuck, burns, until } = JSON.parse(
  process.argv[2] ?? '',
) as BusyReplica
const say = (words: string): void => void process.stdout.write(`${words}\n`)
const cell = new Int32Array(new SharedArrayBuffer(4))
const block = (while_: () => boolean): void => {
  while (while_()) if (!burns) Atomics.wait(cell, 0, 0, 20)
}

const deployment = deploymentKeys(keys)
const store = await openSessionStore(database)
const replica = await openReplica({
  database,
  id: `of-${userId}`,
  address: { url: 'ws://busy' },
  version: '1',
  engine: () => Promise.resolve(undefined),
  keys: { ...deployment, sealing: [deployment.key], folder: keys },
  rows: store.replicas,
  log: { info: () => undefined, warn: () => undefined },
  times: { stuck },
})
await replica?.begin({ resume: () => Promise.resolve(0), release: () => Promise.resolve() })
await replica?.claim(userId)
await store.sessions.create({ id: userId, userId, cwd: '/workspace', mode: 'manual', at: 1 })
const { epoch } = await store.log.takeOver(userId)
say('owns')

const end = performance.now() + busy
let wasOwner = true
for (let n = 0; performance.now() < end; n++) {
  const next = performance.now() + (turns[n % turns.length] ?? 0)
  block(() => performance.now() < next)
  wasOwner &&= replica?.has(userId) === true
  await turn()
}
say(wasOwner ? 'stayed the owner' : 'was not the owner')

block(() => !existsSync(until))
say(replica?.has(userId) === true ? 'acts as the owner' : 'acts no more')
const refused = await store.log.append(userId, [], {}, epoch).catch((error: unknown) => isNotOwner(error))
say(refused === true ? 'refused' : 'stored')
process.exit()
