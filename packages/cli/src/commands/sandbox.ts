import { z } from 'zod'
import type { Command, Context } from '../context.ts'
import { requireDeployment } from '../deployment/deployment.ts'
import { confirmed, sandboxAdmin } from '../programs/sandbox-admin.ts'

const listed = z.array(
  z.object({
    volume: z.string(),
    slot: z.string(),
    owner: z.enum(['claimed', 'warm', 'nobody']),
    userId: z.string().optional(),
    container: z.object({ id: z.string(), name: z.string(), state: z.string() }).optional(),
  }),
)

/** `sandbox list` shows every workspace, `sandbox prune` removes those without an owner. */
export const sandbox: Command = async (context) => {
  const [act] = context.args
  if (act !== 'list' && act !== 'prune') {
    context.print('Usage: ./sandlot sandbox list [--json] | ./sandlot sandbox prune [--yes]')
    return 2
  }
  requireDeployment(context.config)
  return act === 'list' ? list(context) : prune(context)
}

async function list(context: Context): Promise<number> {
  const workspaces = listed.parse(await sandboxAdmin(['list'], context))
  if (context.args.includes('--json')) {
    context.print(JSON.stringify(workspaces))
    return 0
  }
  for (const line of table(workspaces)) context.print(line)
  return 0
}

/** One line per workspace, in columns. */
export function table(workspaces: z.infer<typeof listed>): string[] {
  if (workspaces.length === 0) return ['There are no sandboxes.']
  const rows = [
    ['SLOT', 'OWNER', 'STATE', 'CONTAINER', 'WORKSPACE'],
    ...workspaces.map(({ slot, owner, userId, container, volume }) => [
      slot,
      userId ?? (owner === 'claimed' ? '(known only to the engine)' : owner === 'warm' ? '(pool)' : '(none)'),
      container?.state ?? 'absent',
      container?.name ?? '-',
      volume,
    ]),
  ]
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

async function prune(context: Context): Promise<number> {
  const names = z.array(z.string()).parse(await sandboxAdmin(['ownerless'], context))
  if (names.length === 0) {
    context.print('Every workspace has an owner; there is nothing to remove.')
    return 0
  }
  for (const name of names) context.print(name)
  const question = `Delete these ${names.length} workspaces without an owner, with all files in them?`
  if (!(await confirmed(question, context.args))) {
    context.print('Nothing was removed.')
    return 1
  }
  const removed = z.array(z.string()).parse(await sandboxAdmin(['prune', ...names], context))
  context.print(`Removed ${removed.length} workspace${removed.length === 1 ? '' : 's'}.`)
  return 0
}
