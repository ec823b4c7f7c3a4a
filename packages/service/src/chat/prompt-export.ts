/**
 * The record of a prompt, as the agent sends it: in pieces, by a connection of its own, which ends
 * with it.
 */
import { EXT, exportPiece } from '@sandlot/shared/acp/meta'
import type { AgentUser } from '@sandlot/shared/account/agent-user'
import { Queue } from '@sandlot/shared/async/streams'
import type { Agents } from '../agent/agents.ts'

/**
 * Pieces of 64 KiB that wait for the download before the agent does; as many again may be on their
 * way to it. A download that takes fewer between two pings (30 s) is cut off, since the connection
 * is lost while it is paused.
 */
const MAX_WAITING_PIECES = 8

interface OpenExport {
  document: ReadableStream<Uint8Array>
  /** Resolves when the agent is done with it: all of it was sent, or it was cancelled or lost. */
  sent: Promise<void>
}

/**
 * Resolves when the first piece is there. Throws what the agent answers (`not_found`), and
 * `agent_unavailable`.
 */
export async function openExport(
  agent: Agents,
  params: { sessionId: string; promptId: string; user: AgentUser },
): Promise<OpenExport> {
  const pieces = new Queue<string>()
  const connection = await agent.openFor(EXT.exportPrompt, params, (method, piece) => {
    if (method !== EXT.exportPiece) return
    pieces.push(exportPiece.parse(piece).text)
    if (pieces.size >= MAX_WAITING_PIECES) connection.pause()
  })
  const close = (): void => connection.close()
  void connection
    .request(EXT.exportPrompt, params)
    .then(
      () => pieces.end(),
      (error: unknown) => pieces.fail(error),
    )
    .finally(close)
  const reader = read(pieces, () => connection.resume())
  const first = await reader.next()
  return { document: streamOf(first, reader, close), sent: connection.closed }
}

/** Yields queued pieces, then later ones. */
async function* read(pieces: Queue<string>, resume: () => void): AsyncGenerator<string, void> {
  for await (const piece of pieces) {
    if (pieces.size < MAX_WAITING_PIECES) resume()
    yield piece
  }
}

function streamOf(
  first: IteratorResult<string, void>,
  reader: AsyncGenerator<string, void>,
  cancel: () => void,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let next: IteratorResult<string, void> | undefined = first
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = next ?? (await reader.next())
      next = undefined
      if (done === true) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
    cancel,
  })
}
