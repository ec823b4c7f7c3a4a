/** Hono with `streamText` of the package `ai`, as its documentation shows it: a text stream as the answer of a POST. */
import { Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import { loadPeer } from '../../../test/bench/peers.ts'
import { announce } from '../../../test/bench/program.ts'

const PEERS = new URL('../../ai-agent/bench/peers/', import.meta.url)

/** The part of the libraries that is called here. */
interface AiModule {
  streamText: (options: object) => { toTextStreamResponse: () => Response }
}
interface CompatibleModule {
  createOpenAICompatible: (options: object) => (model: string) => unknown
}

const [baseURL = ''] = process.argv.slice(2)
const { streamText } = await loadPeer<AiModule>(PEERS, 'ai')
const { createOpenAICompatible } = await loadPeer<CompatibleModule>(PEERS, '@ai-sdk/openai-compatible')
const provider = createOpenAICompatible({ name: 'bench', baseURL, apiKey: 'none' })

const app = new Hono().post('/chat', async (c) => {
  const prompt = await c.req.text()
  return streamText({ model: provider('bench'), prompt, maxRetries: 0 }).toTextStreamResponse()
})
const server = createAdaptorServer({ fetch: app.fetch })
if (!(server instanceof Server)) throw new Error('wanted a plain HTTP server')
await announce(server)
