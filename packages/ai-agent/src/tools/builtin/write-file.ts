import type { SandboxFiles } from '@sandlot/sandbox/files'
import { type DecodedText, decodeText } from '@sandlot/shared/workspace/text-encoding'
import { z } from 'zod'
import { FILE_ALIASES, withAliases } from '../argument-aliases.ts'
import { ToolError } from '../tool-error.ts'
import { defineTool } from '../tool.ts'
import { diffContent } from '../file-diff.ts'
import { contentHash, contentHashSchema } from '../known-files.ts'
import { pathArg, saidPath } from '../quoted-path.ts'
import { WORKSPACE, openWorkspace, pathLocations, shownPath } from '../workspace-path.ts'
import { binaryKind, statIfExists } from '../workspace-files.ts'

const input = z.strictObject({
  path: z
    .string()
    .min(1)
    .describe(
      `The file, relative to the folder of this chat or absolute below ${WORKSPACE}. Missing directories are made.`,
    ),
  content: z.string().describe('The whole new content of the file.'),
})

/** Old contents up to this size are read for the diff. */
const MAX_OLD_BYTES = 512 * 1024

export const writeFile = defineTool({
  name: 'write_file',
  description:
    'Writes a file of the workspace, new or over an existing one, as UTF-8 text. The content is the whole file; to change a part of an existing file use edit_file.',
  kind: 'edit',
  input: withAliases(input, {
    ...FILE_ALIASES,
    file_content: 'content',
    file_text: 'content',
    contents: 'content',
  }),
  output: z.strictObject({ path: z.string(), bytes: z.int(), created: z.boolean(), hash: contentHashSchema }),
  readOnly: false,
  runs: { repeatable: true, timeoutMs: 5000 },
  title: (args) => ({ title: `Write ${pathArg(args) ?? 'a file'}`, locations: pathLocations(args['path']) }),
  pathArgs: { path: undefined },
  requests: ({ path }) => [{ kind: 'file', access: 'write', path }],
  async *execute(args, ctx) {
    const { files, path } = yield* openWorkspace(args.path, ctx)
    if (path === '') throw new ToolError('invalid_arguments', `${WORKSPACE} is a directory.`)
    const bytes = Buffer.from(args.content.toWellFormed())
    const old = await oldContent(files, path)
    if (old.decoded?.doubt === 'guessed')
      throw new ToolError(
        'tool_error',
        `${saidPath(path)} is not UTF-8 and its encoding is a guess, so text that was read from it may be wrong. Convert it to UTF-8 first, for example with iconv, or delete it.`,
      )
    if (old.existed && !old.readable && args.content.includes('\uFFFD'))
      throw new ToolError(
        'tool_error',
        `${saidPath(path)} has bytes that are no UTF-8, which reading shows as \uFFFD. Writing that would lose them: change the file with run_shell_command.`,
      )
    const before = old.decoded?.encoding ?? 'utf-8'
    const converted = before === 'utf-8' ? '' : `. It was ${before} before and is UTF-8 now.`
    // No `attempt`: a write that a restart interrupted is simply made again, with the same result.
    yield { type: 'started' }
    ctx.signal.throwIfAborted()
    await files.write(path, bytes)
    return {
      status: 'completed',
      forModel: `Wrote ${bytes.length} bytes to ${saidPath(path)}${converted}`,
      data: {
        path: shownPath(path),
        bytes: bytes.length,
        created: !old.existed,
        hash: contentHash(bytes),
      },
      ...(old.readable ? { content: diffContent(path, old.decoded?.text, args.content) } : {}),
    }
  },
})

interface OldContent {
  existed: boolean
  /** All of it can be shown as text. */
  readable: boolean
  /** Text of the first `MAX_OLD_BYTES`. */
  decoded?: DecodedText | undefined
}

async function oldContent(files: SandboxFiles, path: string): Promise<OldContent> {
  const stat = await statIfExists(files, path)
  if (stat === undefined) return { existed: false, readable: true }
  if (stat.kind !== 'file') {
    throw new ToolError(
      'tool_error',
      `${saidPath(path)} is ${stat.kind === 'directory' ? 'a directory' : 'not a regular file'}.`,
    )
  }
  const bytes = await files.read(path, { length: MAX_OLD_BYTES })
  const isCut = stat.size > MAX_OLD_BYTES
  const decoded = binaryKind(bytes) === undefined ? decodeText(bytes, isCut) : undefined
  const readable = decoded !== undefined && decoded.doubt !== 'damaged' && !isCut
  return { existed: true, readable, decoded }
}
