/** LiteLLM, a proxy by others that speaks Responses and Messages in front of any Chat Completions server. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { nodeEnvironment } from '../../../../test/config.ts'
import { type PeerProgram, installPython, peerFolder } from '../../../../test/peer-cache.ts'

const VERSION = '1.106.6'

export const LITELLM: PeerProgram = {
  name: 'litellm',
  version: VERSION,
  build: (folder) => installPython(folder, [`litellm[proxy]==${VERSION}`]),
}

export interface LiteLlm {
  /** Ends in `/v1`. */
  readonly baseUrl: string
  /** The only model. */
  readonly model: string
  readonly apiKey: string
  close(): Promise<void>
}

/** Its start takes some seconds; Python may be slower on a busy machine. */
const START_MS = 90_000

/**
 * Starts it on a free port of 127.0.0.1, in front of the Chat Completions server at `upstream`
 * (ends in `/v1`). Rejects with its output where it does not come up.
 */
export async function startLiteLlm(upstream: string): Promise<LiteLlm> {
  const installed = peerFolder(LITELLM)
  if (installed === undefined) throw new Error('LiteLLM is not in the cache.')
  const folder = await mkdtemp(join(tmpdir(), 'litellm-'))
  const [port, apiKey] = [await freePort(), 'sk-litellm']
  const bridged = { model: 'custom_openai/scripted', api_base: upstream, api_key: 'sk-upstream' }
  const config = {
    model_list: [{ model_name: 'scripted', litellm_params: bridged }],
    general_settings: { master_key: apiKey },
    litellm_settings: { num_retries: 0 },
  }
  // JSON is YAML.
  await writeFile(join(folder, 'config.yaml'), JSON.stringify(config))
  const script = 'from litellm import run_server; run_server()'
  const options = ['--config', join(folder, 'config.yaml'), '--host', '127.0.0.1', '--port', String(port)]
  const child = spawn(
    join(installed, 'bin/python'),
    ['-c', script, ...options, '--telemetry', 'False', '--num_workers', '1'],
    {
      cwd: folder,
      env: { ...nodeEnvironment(), HOME: folder, LITELLM_LOCAL_MODEL_COST_MAP: 'True', NO_PROXY: '*' },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (bytes: Buffer) => (output = `${output}${bytes.toString()}`.slice(-4_000)))
  const ended = once(child, 'exit')
  const close = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
    await rm(folder, { recursive: true, force: true })
  }
  const origin = `http://127.0.0.1:${port}`
  const until = performance.now() + START_MS
  while (!(await answers(`${origin}/health/liveliness`))) {
    if (child.exitCode === null && performance.now() < until) await sleep(100)
    else {
      await close()
      throw new Error(`LiteLLM did not start:\n${output}`)
    }
  }
  return { baseUrl: `${origin}/v1`, model: 'scripted', apiKey, close }
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok
  } catch {
    return false // nothing listens yet
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => void server.close(resolve))
  return port
}
