/** A user of a server that wants people to sign in, for tests. */
import type { ToolOutcome } from '../../../src/tools/tool.ts'
import type { TestBatch } from '../../calls/test-batch.ts'
import { type McpBench, batchOf } from '../mcp-bench.ts'
import type { OAuthServer } from './server.ts'

export const ADA = 'u_ada'

/** The link that a call shows to its user; empty when there is none. */
export function linkOf(outcome: ToolOutcome): string {
  const [first] = (outcome.content ?? []) as { content?: { uri?: string } }[]
  return first?.content?.uri ?? ''
}

/** The parameters of a link. */
export function askedBy(link: string): string {
  return new URL(link).searchParams.get('scope') ?? ''
}

/** Sign in to the server `cal`; the user's tools after that. */
export async function connect(bench: McpBench, server: OAuthServer, user = ADA): Promise<TestBatch> {
  const outcome = await batchOf(await bench.tools(user)).call('connect_cal', {})
  const signedIn = await bench.mcp.finishSignIn(user, server.agree(linkOf(outcome)))
  if ('problem' in signedIn) throw new Error(signedIn.problem)
  return batchOf(await bench.tools(user))
}
