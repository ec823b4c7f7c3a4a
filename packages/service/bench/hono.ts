/** Hono with `streamText` of the package `ai`, as its documentation shows it: a text stream as the answer of a POST. */
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import { announce } from './program.ts'

/** Installed by `openPeers` of the agent's bench, with their lockfile. */
const PEERS = fileURLToPath(new URL('../../ai-agent/bench/peers/package.json', import.meta.url))

/** As much of them as is called here. */
interface AiModule {
  streamText: (options: object) => { toTextStreamResponse: () => Response }
}
interface CompatibleModule {
  createOpenAICompatible: (options: object) => (model: string) => unknown
}

async function load<T>(name: string): Promise<T> {
  return (await import(pathToFileURL(createRequire(PEERS).resolve(name)).href)) as T
}

const [baseURL = ''] = process.argv.slice(2)
const { streamText } = await load<AiModule>('ai')
const { createOpenAICompatible } = await load<CompatibleModule>('@ai-sdk/openai-compatible')
const provider = createOpenAICompatible({ name: 'bench', baseURL, apiKey: 'none' })

const app = new Hono().post('/chat', async (c) => {
  const prompt = await c.req.text()
  return streamText({ model: provider('bench'), prompt, maxRetries: 0 }).toTextStreamResponse()
})
const server = createAdaptorServer({ fetch: app.fetch })
if (!(server instanceof Server)) throw new Error('wanted a plain HTTP server')
await announce(server)
