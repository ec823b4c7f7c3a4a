/**
 * The floor: a WebSocket for each reader, and every piece of the provider's stream passed on as it
 * comes. Nothing is stored. A reader that sends `watch` gets every stream, not only that of its own
 * request.
 */
import { createServer } from 'node:http'
import { type WebSocket, WebSocketServer } from 'ws'
import { announce } from '../../../test/bench/program.ts'

const [baseUrl = ''] = process.argv.slice(2)
const watchers = new Set<WebSocket>()

async function relay(socket: WebSocket, content: string): Promise<void> {
  const answer = await fetch(`${baseUrl}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'bench', stream: true, messages: [{ role: 'user', content }] }),
  })
  if (answer.body === null) throw new Error('the provider sent nothing')
  let rest = ''
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + piece).split('\n\n')
    rest = events.pop() ?? ''
    for (const event of events) {
      const data = event.slice('data: '.length)
      if (data === '[DONE]') return socket.close()
      const { choices } = JSON.parse(data) as { choices: { delta: { content?: string } }[] }
      const text = choices[0]?.delta.content
      if (text !== undefined) for (const reader of [socket, ...watchers]) reader.send(text)
    }
  }
}

const server = createServer()
new WebSocketServer({ server, perMessageDeflate: false }).on('connection', (socket: WebSocket) => {
  socket.on('close', () => watchers.delete(socket))
  socket.on('message', (data: Buffer) => {
    if (data.toString() === 'watch') return void watchers.add(socket)
    relay(socket, data.toString()).catch(() => socket.terminate())
  })
})
await announce(server)
