import { join } from 'node:path'
import { z } from 'zod'
import { childEnvironment } from '../processes/child-env.ts'
import type { Command } from '../context.ts'
import { programArguments } from '../programs/find-program.ts'
import { run } from '../programs/run.ts'

const listing = z.object({
  running: z.boolean(),
  tools: z.array(
    z.looseObject({
      id: z.string(),
      name: z.string(),
      source: z.string(),
      kind: z.string(),
      readOnly: z.boolean(),
      timeoutMs: z.number().optional(),
      available: z.boolean(),
    }),
  ),
  servers: z.array(z.object({ name: z.string(), state: z.string(), why: z.string().optional() })),
})
type Listing = z.infer<typeof listing>

/** Lists every tool and whether it is offered; `--json` adds the schemas of their arguments. */
export const tools: Command = async ({ config, args, print }) => {
  const unknown = args.find((arg) => arg !== '--json')
  if (unknown !== undefined) {
    print('Usage: ./sandlot tools [--json]')
    return 2
  }
  const program = programArguments(config, 'ai-agent', 'agent/tools')
  const printed = await run(process.execPath, program, {
    cwd: config.root,
    environment: childEnvironment('ai-agent', config.environment),
    log: join(config.data, 'log', 'tools.log'),
    fix: 'Its output is above; ./sandlot doctor checks the configuration.',
  })
  if (args.includes('--json')) {
    print(printed.trim())
    return 0
  }
  for (const line of toolTable(listing.parse(JSON.parse(printed)))) print(line)
  return 0
}

/** One line per tool and per MCP server, in columns. */
export function toolTable({ running, tools: listed, servers }: Listing): string[] {
  const rows = [
    ['TOOL', 'SOURCE', 'KIND', 'READS ONLY', 'TIME-OUT', 'OFFERED'],
    ...listed.map(({ id, name, source, kind, readOnly, timeoutMs, available }) => [
      id === name ? id : `${id} (${name})`,
      source,
      kind,
      readOnly ? 'yes' : 'no',
      timeoutMs === undefined ? 'default' : `${timeoutMs / 1000} s`,
      available ? 'yes' : 'no',
    ]),
  ]
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  const about = servers.map(
    ({ name, state, why }) => `MCP server ${name}: ${state}${why === undefined ? '' : ` (${why})`}`,
  )
  const note = running ? [] : ['Sandlot is not running; this list comes from its configuration.']
  return [...lines, ...about, ...note]
}
