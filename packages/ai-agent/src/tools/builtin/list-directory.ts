import type { FileStat } from '@sandlot/sandbox/files'
import { z } from 'zod'
import { DIRECTORY_ALIASES, withAliases } from '../argument-aliases.ts'
import { ToolError } from '../tool-error.ts'
import { defineTool } from '../tool.ts'
import { grouped, truncateToolOutput } from '../output/truncate-output.ts'
import { pathArg, saidPath } from '../quoted-path.ts'
import { quotePath } from '@sandlot/shared/base/quoted-path'
import { WORKSPACE, openWorkspace, pathLocations } from '../workspace-path.ts'
import { statIfExists } from '../workspace-files.ts'

const input = z.strictObject({
  path: z
    .string()
    .default('.')
    .describe(
      `The directory, relative to the folder of this chat or absolute below ${WORKSPACE}. Default: the folder of this chat.`,
    ),
})

export const listDirectory = defineTool({
  name: 'list_directory',
  description:
    'Lists what is directly in a directory of the workspace: names in order, a slash after directories, sizes of files. ' +
    'For files further down use glob.',
  kind: 'read',
  input: withAliases(input, DIRECTORY_ALIASES),
  output: z.strictObject({ entries: z.int() }),
  readOnly: true,
  runs: { timeoutMs: 5000 },
  title: (args) => ({
    title: `List ${pathArg(args) ?? WORKSPACE}`,
    locations: pathLocations(args['path'] ?? WORKSPACE),
  }),
  pathArgs: { path: '.' },
  requests: ({ path }) => [{ kind: 'file', access: 'read', path }],
  async *execute(args, ctx) {
    const { files, path } = yield* openWorkspace(args.path, ctx)
    const stat = await statIfExists(files, path)
    if (stat === undefined) throw new ToolError('tool_error', `There is no directory ${saidPath(path)}.`)
    if (stat.kind !== 'directory') throw new ToolError('tool_error', `${saidPath(path)} is not a directory.`)

    const entries = (await files.list(path)).toSorted((a, b) => (a.path < b.path ? -1 : 1))
    if (entries.length === 0)
      return { status: 'completed', forModel: `${saidPath(path)} is empty.`, data: { entries: 0 } }
    const count = entries.length === 1 ? '1 entry' : `${grouped(entries.length)} entries`
    const text = [`${saidPath(path)} has ${count}:`, ...entries.map(entryLine)].join('\n')
    const cut = truncateToolOutput(text, {
      maxChars: ctx.output.limits.chars,
      maxLines: ctx.output.limits.lines,
      headShare: 1,
    })
    return { status: 'completed', forModel: cut.text, data: { entries: entries.length } }
  },
})

function entryLine(entry: FileStat): string {
  const name = quotePath(entry.path.split('/').at(-1) ?? entry.path)
  switch (entry.kind) {
    case 'directory':
      return `${name}/`
    case 'file':
      return `${name}  ${grouped(entry.size)} bytes`
    case 'symlink':
      return `${name}  (link)`
    case 'other':
      return `${name}  (not a regular file)`
  }
}
