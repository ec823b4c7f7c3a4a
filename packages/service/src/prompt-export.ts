/** The record of a prompt, as the agent sends it: in pieces, by a connection of its own, which ends with it. */
import { EXT, exportPiece } from '@sandlot/shared/acp-meta'
import type { AgentUser } from '@sandlot/shared/acp-meta'
import { Queue } from '@sandlot/shared/streams'
import type { AgentLink } from './agent/agent-link.ts'

/** Pieces of 64 KiB that may wait for the one who downloads it. */
const MAX_WAITING_PIECES = 4_096

/** Resolves when the first piece is there. Throws what the agent answers (`not_found`), and `agent_unavailable`. */
export async function openExport(
  agent: AgentLink,
  params: { sessionId: string; promptId: string; user: AgentUser },
): Promise<ReadableStream<Uint8Array>> {
  const pieces = new Queue<string>(MAX_WAITING_PIECES)
  const connection = await agent.open((method, piece) => {
    if (method !== EXT.exportPiece) return
    if (!pieces.push(exportPiece.parse(piece).text)) pieces.fail(new Error('the record is read too slowly'))
  })
  connection.request(EXT.exportPrompt, params).then(
    () => pieces.end(),
    (error: unknown) => pieces.fail(error),
  )
  const reader = pieces[Symbol.asyncIterator]()
  try {
    const first = await reader.next()
    return streamOf(first, reader, () => connection.close())
  } catch (error) {
    connection.close()
    throw error
  }
}

function streamOf(
  first: IteratorResult<string, void>,
  reader: AsyncGenerator<string, void>,
  close: () => void,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let next: IteratorResult<string, void> | undefined = first
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = next ?? (await reader.next())
        next = undefined
        if (done !== true) return controller.enqueue(encoder.encode(value))
        close()
        controller.close()
      } catch (error) {
        close()
        throw error
      }
    },
    cancel: close,
  })
}
