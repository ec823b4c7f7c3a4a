/** The messages of one client, each in a turn of the event loop of its own. */
import { setImmediate as turn } from 'node:timers/promises'
import type { AnyMessage } from '@agentclientprotocol/sdk'

/**
 * The SDK does not begin a message's handler when it reads the message: it asks one registered handler after the other,
 * each a microtask later, and reads on meanwhile. So of two messages that are there at once the later one begins first when
 * its handler was registered earlier, and a request right behind `initialize` is refused. All of that is microtasks: when
 * the next message comes in another turn of the loop, the handler of this one has begun, up to its first wait.
 *
 * Not a `TransformStream`, which costs every connection a second queue and a pipe.
 */
export function oneATurn(messages: ReadableStream<AnyMessage>): ReadableStream<AnyMessage> {
  const reader = messages.getReader()
  return new ReadableStream<AnyMessage>(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        if (done) return controller.close()
        controller.enqueue(value)
        await turn()
      },
      cancel: (reason) => reader.cancel(reason),
    },
    // Nothing is taken out of `messages` before it is asked for, so back-pressure reaches the client.
    new CountQueuingStrategy({ highWaterMark: 0 }),
  )
}
