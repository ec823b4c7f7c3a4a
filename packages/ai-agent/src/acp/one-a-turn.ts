/** The messages of one client, each in a turn of the event loop of its own. */
import { setImmediate as turn } from 'node:timers/promises'
import type { AnyMessage } from '@agentclientprotocol/sdk'

/**
 * The SDK does not begin a message's handler when it reads the message: it asks one registered handler after the other,
 * each a microtask later, and reads on meanwhile. So of two messages that are there at once the later one begins first when
 * its handler was registered earlier, and a request right behind `initialize` is refused. All of that is microtasks: when
 * the next message comes in another turn of the loop, the handler of this one has begun, up to its first wait.
 */
export function oneATurn(messages: ReadableStream<AnyMessage>): ReadableStream<AnyMessage> {
  // Nothing is taken out of `messages` before somebody reads, so the client feels how fast that is.
  return messages.pipeThrough(
    new TransformStream<AnyMessage, AnyMessage>({
      async transform(message, controller) {
        controller.enqueue(message)
        await turn()
      },
    }),
  )
}
