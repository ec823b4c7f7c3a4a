import { z } from 'zod'
import { DIRECTORY_ALIASES, withAliases } from '../argument-aliases.ts'
import { ToolError } from '../tool-error.ts'
import { defineTool, textArg } from '../tool.ts'
import { pageRoom } from '../output/line-page.ts'
import { SEARCH_FLAGS, pagedFiles, searchOutcome } from '../ripgrep.ts'
import { saidPath } from '../quoted-path.ts'
import { SandboxedToolExecutor } from '../sandbox-command/sandboxed-tool-executor.ts'
import { WORKSPACE, openWorkspace, pathLocations } from '../workspace-path.ts'

const input = z.strictObject({
  pattern: z
    .string()
    .min(1)
    .max(1000)
    .regex(/^[^\0\n]*$/, 'must not have a NUL character or a line break')
    .describe('For example *.md (directly in the directory), **/*.ts (at any depth), src/**/{a,b}.json.'),
  path: z
    .string()
    .default('.')
    .describe(
      `The directory to begin in, relative to the folder of this chat or absolute below ${WORKSPACE}. Default: the folder of this chat.`,
    ),
  include_ignored: z.boolean().default(false).describe('Find also what .gitignore leaves out.'),
  limit: z.int().min(1).max(1000).default(500).describe('How many paths to show at most.'),
  offset: z.int().min(0).default(0).describe('How many paths to leave out: to see more of them.'),
})

export const glob = defineTool({
  name: 'glob',
  description:
    'Finds files of the workspace by a pattern of their path, sorted. What .gitignore leaves out, .git and .tool-outputs are left out.',
  kind: 'search',
  input: withAliases(input, DIRECTORY_ALIASES),
  readOnly: true,
  runs: { timeoutMs: 30_000 },
  title: (args) => ({
    title: `Find files ${textArg(args, 'pattern') ?? ''}`.trim(),
    locations: pathLocations(args['path']),
  }),
  pathArgs: { path: '.' },
  requests: ({ path }) => [{ kind: 'file', access: 'read', path, below: true }],
  async *execute(args, ctx) {
    const { sandbox, path } = yield* openWorkspace(args.path, ctx)
    const pattern = withinWorkspace(args.pattern, [WORKSPACE, sandbox.workspace])
    // Patterns count from the working directory, so the directory is a part of the pattern, taken
    // literally.
    const anchored = `/${path === '' ? '' : `${literal(path)}/`}${pattern}`
    const flags = [...(args.include_ignored ? ['--no-ignore'] : []), ...SEARCH_FLAGS]
    const result = yield* new SandboxedToolExecutor(ctx).run({
      readOnly: true,
      command: pagedFiles(path, anchored, flags, args, pageRoom(ctx.output.limits)),
      headShare: 1,
    })
    const hint = pattern.includes('**') ? '' : ` **/${pattern} looks at every depth.`
    return searchOutcome(result, path, args, `No file in ${saidPath(path)} matches ${args.pattern}.${hint}`)
  },
})

/** A pattern counts from `path`; one that names the workspace itself is taken as meant. */
function withinWorkspace(pattern: string, roots: readonly string[]): string {
  const root = roots.find((root) => pattern.startsWith(`${root}/`))
  const relative = root === undefined ? pattern : pattern.slice(root.length + 1)
  if (relative.startsWith('/') || relative.split('/').includes('..')) {
    throw new ToolError(
      'path_outside',
      `The pattern ${pattern} leads out of the workspace; patterns are relative to path.`,
    )
  }
  return relative.replace(/^(\.\/)+/, '')
}

function literal(path: string): string {
  return path.replaceAll(/[\\*?[\]{}!]/g, '\\$&')
}
