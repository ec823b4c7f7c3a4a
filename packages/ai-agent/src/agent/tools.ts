/**
 * `./sandlot tools` as a process beside the agent: prints one line of JSON. A running agent is
 * asked, because it alone knows its MCP servers; without one the built-in tools are listed as this
 * configuration offers them.
 */
import { request } from 'node:http'
import { messageOf } from '@sandlot/shared/base/errors'
import { type AgentConfig, readAgentConfig } from '../config/config.ts'
import { socketOfRunning } from '../replicas/open-replica.ts'
import { builtinTools } from '../tools/builtin/index.ts'
import { type ToolListing, listedTools, unavailableServers, unknownServers } from '../config/tool-listing.ts'
import { offeredTools } from '../config/tool-offer.ts'

/** Milliseconds for the agent to answer; its MCP servers may be slow. */
const PATIENCE_MS = 20_000

async function main(): Promise<ToolListing> {
  const config = readAgentConfig(builtinTools().map((tool) => tool.name))
  const replica = await socketOfRunning(config.database)
  return (await askAgent(replica ?? config.socket)) ?? ofConfiguration(config)
}

/** Undefined when no agent runs. */
function askAgent(socketPath: string): Promise<ToolListing | undefined> {
  return new Promise((resolve, reject) => {
    const asking = request({ socketPath, path: '/tools', timeout: PATIENCE_MS }, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('error', reject)
      response.on('end', () => {
        const body = Buffer.concat(parts).toString('utf8')
        if (response.statusCode === 200) resolve(JSON.parse(body) as ToolListing)
        else reject(new Error(`The running agent could not list its tools: ${body.slice(0, 500)}`))
      })
    })
    asking.on('timeout', () => asking.destroy(new Error('The running agent does not answer.')))
    asking.on('error', (error: NodeJS.ErrnoException) => {
      // Nothing listens: no agent runs, or one died and left its socket.
      if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') resolve(undefined)
      else reject(error)
    })
    asking.end()
  })
}

function ofConfiguration(config: AgentConfig): ToolListing {
  const all = builtinTools()
  const offered = offeredTools('', all, {
    toolsEnabled: config.toolsEnabled,
    tools: config.file.tools,
  })
  return {
    running: false,
    tools: listedTools(all, offered),
    servers: [...unknownServers(config, 'known when Sandlot runs'), ...unavailableServers(config)],
  }
}

if (import.meta.main) {
  try {
    process.stdout.write(`${JSON.stringify(await main())}\n`)
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n`)
    process.exitCode = 1
  }
}
