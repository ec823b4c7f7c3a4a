/** Servers as the agent has them, for tests: the real parts, a folder of their own, and everything ended at the end. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SandboxError } from '@sandlot/sandbox/errors'
import { type Mcp, openMcp } from '../../src/mcp/open-mcp.ts'
import { mcpServersSection } from '../../src/mcp/config.ts'
import type { SecretStore } from '../../src/mcp/oauth/records.ts'
import { readServerSpecs } from '../../src/mcp/server-spec.ts'
import type { ToolRegistry } from '../../src/tools/registry.ts'
import { type Tool, idOf } from '../../src/tools/tool.ts'
import { TestBatch, type TestBatchOptions } from '../calls/test-batch.ts'

type OpenMcpOptions = Parameters<typeof openMcp>[0]

export const SCRIPT = fileURLToPath(new URL('script-server.mjs', import.meta.url))
export const USER = 'u_test'

/** The configuration of a script server with a habit. */
export function scripted(habit = '', more: object = {}): object {
  return { command: 'node', args: [SCRIPT, ...(habit === '' ? [] : ['--as', habit])], ...more }
}

export interface McpBench extends AsyncDisposable {
  mcp: Mcp
  folder: string
  secrets: Map<string, string>
  logged: { level: 'info' | 'warn'; fields: Record<string, unknown>; message: string }[]
  tools(userId?: string): Promise<ToolRegistry>
  /** The tool of the first server by the server's name for it. */
  tool(name: string, userId?: string): Promise<Tool>
  close(): Promise<void>
}

export function openMcpBench(
  servers: Record<string, object>,
  change: Partial<OpenMcpOptions> & { env?: Record<string, string> } = {},
): McpBench {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-mcp-'))
  const problems: string[] = []
  const specs = readServerSpecs(
    mcpServersSection.parse(servers),
    { env: change.env ?? {}, readFile: () => '' },
    problems,
    [],
  )
  if (problems.length > 0) throw new Error(problems.join('\n'))
  const secrets = new Map<string, string>()
  const store: SecretStore = {
    get: async (userId, name) => secrets.get(`${userId} ${name}`),
    set: async (userId, name, value) => {
      if (value === undefined) secrets.delete(`${userId} ${name}`)
      else secrets.set(`${userId} ${name}`, value)
    },
  }
  const logged: McpBench['logged'] = []
  const mcp = openMcp({
    specs,
    builtin: [],
    folder,
    secrets: store,
    redirectUrl: 'http://localhost:8002/oauth/mcp',
    sandbox: () => Promise.reject(new SandboxError('engine_unavailable', 'There is no sandbox here.')),
    log: {
      info: (fields, message) => void logged.push({ level: 'info', fields, message }),
      warn: (fields, message) => void logged.push({ level: 'warn', fields, message }),
    },
    ...change,
  })
  const tools = (userId = USER): Promise<ToolRegistry> =>
    mcp.servers.toolsOf(userId, new AbortController().signal)
  const close = async (): Promise<void> => {
    await mcp.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return {
    mcp,
    folder,
    secrets,
    logged,
    tools,
    close,
    async tool(name, userId) {
      const registry = await tools(userId)
      const id = `${Object.keys(servers)[0] ?? ''}::${name}`
      const found = registry.getTool(id)
      if (found === undefined)
        throw new Error(
          `no ${id} among ${registry.listTools().map(idOf).join(', ')}; ${JSON.stringify(logged.slice(-3))}`,
        )
      return found
    },
    [Symbol.asyncDispose]: close,
  }
}

/** Calls of these tools through the scheduler and every policy, as a prompt would make them. */
export function batchOf(registry: ToolRegistry, options: TestBatchOptions = {}): TestBatch {
  return new TestBatch({ tools: registry.listTools(), ...options })
}

/** True while the process exists. A zombie has ended. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** Resolves when it is true; the test's own limit ends the waiting. */
export async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await what())) await new Promise((resolve) => void setTimeout(resolve, 10))
}
