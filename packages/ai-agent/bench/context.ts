/** Shared by all goals: the player, ourselves, and everybody in the order of the tables. */
import type { BenchArguments } from '../../../test/bench/run.ts'
import { bare } from './bare.ts'
import type { WireName } from '@sandlot/shared/account/models-api'
import type { Contender, Contenders } from './contender.ts'
import { type Ours, openOurs } from './ours.ts'
import { anthropicToolRunner, openPeers, openaiResponses } from './peers.ts'
import { type Player, startPlayer } from './player.ts'

export interface BenchContext extends BenchArguments {
  player: Player
  ours: Ours
  /** Peers are installed for the first goal that asks. */
  contenders: () => Promise<Contenders>
}

export async function openContext(args: BenchArguments, stack: AsyncDisposableStack): Promise<BenchContext> {
  const player = stack.use(await startPlayer())
  const ours = stack.use(await openOurs(player.baseUrl))
  const over = async (wire: WireName): Promise<Contender> => {
    const { runTree: _, ...contender } = stack.use(await openOurs(player.baseUrl, wire))
    return contender
  }
  const open = async (): Promise<Contenders> => [
    ours,
    ...(await openPeers(player.baseUrl)),
    await over('responses'),
    openaiResponses(player.baseUrl),
    await over('anthropic'),
    await anthropicToolRunner(player.baseUrl),
    bare(player.baseUrl),
  ]
  let opened: Promise<Contenders> | undefined
  return { ...args, player, ours, contenders: () => (opened ??= open()) }
}
