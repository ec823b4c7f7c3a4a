/**
 * The agent as a process. Without arguments it listens on `$SANDLOT_DATA/run/agent.sock`. With
 * `--stdio` (for `sandlot acp`) it also serves one client on stdin and stdout, and ends with it;
 * beside a running agent it only relays to that one.
 */
import { Console } from 'node:console'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from '@sandlot/shared/config'
import { messageOf } from '@sandlot/shared/base/errors'
import { keepThreadLimits } from '@sandlot/shared/node/thread-limits'
import { startProblem } from '@sandlot/storage/plain-words'
import { type FileLock, lockFile } from '@sandlot/storage/database/lock'
import { relay } from './acp/relay.ts'
import { listenOnSocket } from './acp/socket.ts'
import { stdioStream } from './acp/stdio.ts'
import { openTransport } from './acp/tls.ts'
import { type Agent, openAgent } from './agent/agent.ts'
import { type AgentConfig, readAgentConfig } from './config/config.ts'
import { type Redactor, type Logger, makeRedactor, makeLog } from './log.ts'
import { socketOfRunning } from './replicas/open-replica.ts'
import { builtinTools } from './tools/builtin/index.ts'
import { startWatchdog } from './agent/watchdog.ts'

/** `client_left`: the one client on stdin and stdout. */
type Stop = 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'client_left'

/**
 * Exit codes of a process that an editor started: those of a shell for a process killed by the
 * signal.
 */
const EXIT_CODES: Record<Stop, number> = { client_left: 0, SIGHUP: 129, SIGINT: 130, SIGTERM: 143 }

/** Runs until it is stopped. Returns the exit code. */
async function main(args: readonly string[]): Promise<number> {
  keepThreadLimits()
  const stdio = args.includes('--stdio')
  // Nothing but the protocol may stand on stdout, also when a library has something to say.
  if (stdio) globalThis.console = new Console(process.stderr)
  const config = readAgentConfig(builtinTools().map((tool) => tool.name))
  const redactor = makeRedactor(config.secrets)
  const log = makeLog(config.logLevel, redactor)
  for (const folder of [config.dataFolder, config.ownFolder])
    mkdirSync(join(folder, 'run'), { recursive: true, mode: 0o750 })

  const replica = stdio ? await socketOfRunning(config.database) : undefined
  const lock = replica === undefined ? lockFile(join(config.ownFolder, 'run', 'agent.lock')) : undefined
  if (lock !== undefined && args.includes('--end')) return endUnfinished({ config, log, redactor, lock })
  if (lock !== undefined) return run({ config, log, redactor, lock, stdio })
  if (!stdio)
    throw new Error(
      `Another agent is running with ${config.dataFolder}. Stop it, or set SANDLOT_DATA to another folder.`,
    )
  log.info('an agent is running; relaying to it')
  const end = await relay(replica ?? config.socket, { input: process.stdin, output: process.stdout })
  if (end === 'agent_left') log.warn('the running agent disconnected')
  return end === 'agent_left' ? 1 : 0
}

interface Run {
  config: AgentConfig
  log: Logger
  redactor: Redactor
  lock: FileLock
  stdio: boolean
}

async function run({ config, log, redactor, lock, stdio }: Run): Promise<number> {
  const stopped = listenForStop()
  const { address, tls } = await openTransport(config)
  const agent = await openAgent(
    { ...config, address },
    log,
    [],
    (secret, owner) => redactor.redact(secret, owner),
    stdio ? config.ownEnvironment : undefined,
  )
  startWatchdog(config.ownFolder, log)
  const resumed = await agent.resume()
  process.on('SIGUSR2', () => void agent.drain())
  const { serve, streams, status, listTools } = agent
  const socket = await listenOnSocket({ path: config.socket, serve, streams, status, listTools, tls, log })
  log.info(
    {
      socket: config.socket,
      tls: tls && address.url,
      model: agent.model.name,
      demo: agent.model.demo,
      tools: agent.tools,
      resumed,
    },
    'the agent is ready',
  )

  const stop = await (stdio ? Promise.race([stopped, clientLeft(agent)]) : stopped)
  // Editors that were started later on the same data are relayed to this process. A second signal
  // ends it at once.
  if (stdio && stop !== 'SIGINT') {
    const interrupted = new AbortController()
    if (stop === 'client_left') void stopped.then(() => interrupted.abort())
    log.info({ stop }, 'serving the clients that were relayed here until they disconnect')
    await socket.idle(interrupted.signal)
  }
  // An editor that ends its agent means what is running, however it says so.
  const goesOn = !stdio && stop !== 'SIGINT'
  log.info(
    { stop },
    goesOn ? 'shutting down; prompts resume at the next start' : 'ending prompts and sandboxes',
  )
  if (goesOn) await agent.leave()
  else await agent.interrupt()
  await socket.close()
  lock.release()
  return stdio ? EXIT_CODES[stop] : 0
}

async function endUnfinished({ config, log, redactor, lock }: Omit<Run, 'stdio'>): Promise<number> {
  const agent = await openAgent(config, log, [], (secret, owner) => redactor.redact(secret, owner))
  const ended = await agent.endUnfinished()
  log.info({ ended }, 'prompts that waited for the next start were ended')
  lock.release()
  return 0
}

/** Serve stdin and stdout. Its end is the end of everything, like Ctrl-C. */
async function clientLeft(agent: Agent): Promise<Stop> {
  await agent.serve(stdioStream(process.stdin, process.stdout)).closed
  return 'client_left'
}

/** The first signal. A second one ends the process at once. */
function listenForStop(): Promise<Stop> {
  const { promise, resolve } = Promise.withResolvers<Stop>()
  let asked = false
  const on = (signal: Stop): void => {
    if (asked) process.exit(130)
    asked = true
    resolve(signal)
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => on(signal))
  return promise
}

// The reader of the log may be gone first (an editor that was killed): what is being ended must
// still end in order.
process.stderr.on('error', () => undefined)

if (import.meta.main) {
  try {
    process.exit(await main(process.argv.slice(2)))
  } catch (error) {
    const text =
      error instanceof ConfigError
        ? error.message
        : `Sandlot’s agent cannot start: ${startProblem(error) ?? messageOf(error)}`
    process.stderr.write(`${text}\n`)
    process.exit(1)
  }
}
