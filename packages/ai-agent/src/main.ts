/**
 * The agent as a process. Without arguments it listens on `$SANDLOT_DATA/run/agent.sock`. With `--stdio` (for `sandlot acp`)
 * it also serves one client on stdin and stdout, and ends with it; beside a running agent it only relays to that one.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { ndJsonStream } from '@agentclientprotocol/sdk'
import { ConfigError } from '@sandlot/shared/config'
import { messageOf } from '@sandlot/shared/errors'
import { type FileLock, lockFile } from '@sandlot/storage/lock'
import { relay } from './acp/relay.ts'
import { listenOnSocket } from './acp/socket-server.ts'
import { type Agent, openAgent } from './agent.ts'
import { type AgentConfig, readAgentConfig } from './config.ts'
import { type Logger, makeLog } from './log.ts'
import { builtinTools } from './tools/builtin/index.ts'

type Stop = 'SIGINT' | 'SIGTERM'

/** Runs until it is stopped. Returns the exit code. */
async function main(args: readonly string[]): Promise<number> {
  const stdio = args.includes('--stdio')
  const config = readAgentConfig(builtinTools().map((tool) => tool.name))
  const log = makeLog(config.logLevel, config.secrets)
  mkdirSync(join(config.dataFolder, 'run'), { recursive: true, mode: 0o770 })

  const lock = lockFile(join(config.dataFolder, 'run', 'agent.lock'))
  if (lock !== undefined) return run(config, log, lock, stdio)
  if (!stdio)
    throw new Error(
      `Another agent is running with ${config.dataFolder}. Stop it, or set SANDLOT_DATA to another folder.`,
    )
  log.info('an agent is running; relaying to it')
  const end = await relay(config.socket, { input: process.stdin, output: process.stdout })
  if (end === 'agent_left') log.warn('the running agent went away')
  return end === 'agent_left' ? 1 : 0
}

async function run(config: AgentConfig, log: Logger, lock: FileLock, stdio: boolean): Promise<number> {
  const stopped = listenForStop()
  const agent = await openAgent(config, log)
  const resumed = await agent.resume()
  const { serve, status } = agent
  const socket = await listenOnSocket({ path: config.socket, serve, status, log })
  log.info(
    { socket: config.socket, model: agent.model.name, demo: agent.model.demo, resumed },
    'the agent is ready',
  )

  const stop = await (stdio ? Promise.race([stopped, stdioEnded(agent)]) : stopped)
  log.info(
    { stop },
    stop === 'SIGTERM' ? 'leaving; prompts go on at the next start' : 'ending prompts and sandboxes',
  )
  if (stop === 'SIGTERM') await agent.leave()
  else await agent.interrupt()
  await socket.close()
  lock.release()
  return 0
}

/** Serve stdin and stdout. Its end is the end of everything, like Ctrl-C. */
async function stdioEnded(agent: Agent): Promise<Stop> {
  const output = Writable.toWeb(process.stdout) as WritableStream<Uint8Array>
  const input = Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>
  await agent.serve(ndJsonStream(output, input)).closed
  return 'SIGINT'
}

/** The first of the two signals. A second one ends the process at once. */
function listenForStop(): Promise<Stop> {
  const { promise, resolve } = Promise.withResolvers<Stop>()
  let asked = false
  const on = (signal: Stop): void => {
    if (asked) process.exit(130)
    asked = true
    resolve(signal)
  }
  process.on('SIGINT', () => on('SIGINT'))
  process.on('SIGTERM', () => on('SIGTERM'))
  return promise
}

if (import.meta.main) {
  try {
    process.exit(await main(process.argv.slice(2)))
  } catch (error) {
    const text =
      error instanceof ConfigError ? error.message : `Sandlot’s agent cannot start: ${messageOf(error)}`
    process.stderr.write(`${text}\n`)
    process.exit(1)
  }
}
