import { z } from 'zod'
import { DIRECTORY_ALIASES, FILE_ALIASES, withAliases } from '../argument-aliases.ts'
import { defineTool, textArg } from '../tool.ts'
import { pageRoom } from '../output/line-page.ts'
import { spellingsOf } from '../name-forms.ts'
import { SEARCH_FLAGS, pagedSearch, searchOutcome } from '../ripgrep.ts'
import { saidPath } from '../quoted-path.ts'
import { SandboxedToolExecutor } from '../sandbox-command/sandboxed-tool-executor.ts'
import { WORKSPACE, openWorkspace, pathLocations } from '../workspace-path.ts'

const noBreaks = /^[^\0\n]*$/
const input = z.strictObject({
  pattern: z
    .string()
    .min(1)
    .max(2000)
    .regex(noBreaks, 'must not have a NUL character or a line break')
    .describe('A regular expression (Rust syntax), matched line by line; with literal the text itself.'),
  path: z
    .string()
    .default('.')
    .describe(
      `File or directory to search, relative to the folder of this chat or absolute below ${WORKSPACE}. Default: the folder of this chat.`,
    ),
  literal: z.boolean().default(false).describe('Find the pattern as it is: no character is special.'),
  glob: z
    .string()
    .min(1)
    .max(1000)
    .regex(noBreaks, 'must not have a NUL character or a line break')
    .optional()
    .describe('Only files whose path matches, for example *.ts or src/**/*.md; !*.test.ts leaves files out.'),
  ignore_case: z.boolean().default(false).describe('Upper and lower case are the same.'),
  context: z.int().min(0).max(20).default(0).describe('Lines to show before and after each match.'),
  include_ignored: z.boolean().default(false).describe('Search also what .gitignore leaves out.'),
  limit: z.int().min(1).max(1000).default(200).describe('How many lines of results to show at most.'),
  offset: z.int().min(0).default(0).describe('How many lines of results to leave out: to see more of them.'),
})

export const searchText = defineTool({
  name: 'search_text',
  description:
    'Finds lines in the text files of the workspace by a regular expression or a literal text. Each result is path:line number:line, ' +
    'with context path-line number-line. Ignored and binary files are left out.',
  kind: 'search',
  input: withAliases(input, {
    ...FILE_ALIASES,
    ...DIRECTORY_ALIASES,
    include: 'glob',
    include_pattern: 'glob',
    max_results: 'limit',
    '-i': 'ignore_case',
    '-C': 'context',
  }),
  readOnly: true,
  runs: { timeoutMs: 30_000 },
  title: (args) => ({
    title: `Search for ${textArg(args, 'pattern') ?? 'text'}`,
    locations: pathLocations(args['path']),
  }),
  pathArgs: { path: '.' },
  requests: ({ path }) => [{ kind: 'file', access: 'read', path, below: true }],
  async *execute(args, ctx) {
    const { path } = yield* openWorkspace(args.path, ctx)
    const flags = [
      '--line-number',
      '--with-filename',
      '--no-heading',
      '--max-columns=400',
      '--max-columns-preview',
      ...(args.literal ? ['--fixed-strings'] : []),
      ...(args.ignore_case ? ['--ignore-case'] : []),
      ...(args.context === 0 ? [] : [`--context=${args.context}`]),
      ...(args.include_ignored ? ['--no-ignore'] : []),
      ...(args.glob === undefined ? [] : spellingsOf(args.glob).map((glob) => `--glob=${glob}`)),
      ...SEARCH_FLAGS,
      `--regexp=${args.pattern}`,
    ]
    const result = yield* new SandboxedToolExecutor(ctx).run({
      readOnly: true,
      command: pagedSearch(path, flags, args, pageRoom(ctx.output.limits)),
      headShare: 1,
    })
    const among = args.glob === undefined ? '' : ` in files that match ${args.glob}`
    return searchOutcome(result, path, args, `Nothing in ${saidPath(path)} matches ${args.pattern}${among}.`)
  },
})
