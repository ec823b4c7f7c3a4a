/** What every goal works with: the player, ourselves, and everybody in the order of the tables. */
import { bare } from './bare.ts'
import type { Contender } from './contender.ts'
import { type Ours, openOurs } from './ours.ts'
import { openPeers } from './peers.ts'
import { type Player, startPlayer } from './player.ts'

export interface BenchContext {
  samples: number
  /** How many prompts where a goal is about many of them. */
  many: number
  player: Player
  ours: Ours
  /** Ours first. What we are measured beside is installed for the first goal that asks. */
  contenders: () => Promise<readonly Contender[]>
}

export async function openContext(options: {
  samples: number
  many: number
  say: (text: string) => void
}): Promise<BenchContext & AsyncDisposable> {
  const { samples, many, say } = options
  const player = await startPlayer()
  const ours = await openOurs(player.baseUrl)
  const open = async (): Promise<Contender[]> => [
    ours,
    ...(await openPeers(player.baseUrl, say)),
    bare(player.baseUrl),
  ]
  let opened: Promise<Contender[]> | undefined
  return {
    samples,
    many,
    player,
    ours,
    contenders: () => (opened ??= open()),
    async [Symbol.asyncDispose]() {
      await ours[Symbol.asyncDispose]()
      player[Symbol.dispose]()
    },
  }
}
