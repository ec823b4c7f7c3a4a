import type { FileStat, SandboxFiles } from '@sandlot/sandbox/files'
import { type DecodedText, encodeText } from '@sandlot/shared/workspace/text-encoding'
import { z } from 'zod'
import { FILE_ALIASES, withAliases } from '../argument-aliases.ts'
import { ToolError } from '../tool-error.ts'
import { defineTool, type CallContext, type ToolOutcome } from '../tool.ts'
import { diffContent } from '../file-diff.ts'
import { contentHash, contentHashSchema, knownHash } from '../known-files.ts'
import { type TextEdit, applyEdits, placesOf } from '../text-edit.ts'
import { grouped } from '../output/truncate-output.ts'
import { pathArg, saidPath } from '../quoted-path.ts'
import { WORKSPACE, openWorkspace, pathLocations, shownPath } from '../workspace-path.ts'
import { binaryFailure, binaryKind, decodeExactly, statFile } from '../workspace-files.ts'

const edit = {
  old_text: z
    .string()
    .min(1)
    .describe('The text to replace, exactly as in the file, with its white space, without line numbers.'),
  new_text: z.string().describe('What to put in its place.'),
  replace_all: z
    .boolean()
    .default(false)
    .describe('Replace every place; otherwise old_text must be there exactly once.'),
}
/** Claude Code and Gemini CLI; opencode; pi; Anthropic's text editor. */
const EDIT_ALIASES = {
  old_string: 'old_text',
  new_string: 'new_text',
  oldString: 'old_text',
  newString: 'new_text',
  oldText: 'old_text',
  newText: 'new_text',
  old_str: 'old_text',
  new_str: 'new_text',
  replaceAll: 'replace_all',
} as const
const input = z.strictObject({
  path: z
    .string()
    .min(1)
    .describe(`The file, relative to the folder of this chat or absolute below ${WORKSPACE}.`),
  old_text: edit.old_text.optional(),
  new_text: edit.new_text.optional(),
  replace_all: edit.replace_all,
  edits: z
    .array(withAliases(z.strictObject(edit), EDIT_ALIASES))
    .min(1)
    .max(100)
    .optional()
    .describe(
      'Several changes of this file in one call, in place of old_text and new_text. They are made in order, all of them or none.',
    ),
})

const MAX_BYTES = 16 * 1024 * 1024

export const editFile = defineTool({
  name: 'edit_file',
  description:
    'Replaces a piece of text in a file of the workspace. old_text must match exactly and be unique: give some lines round the change. Read the file first. ' +
    'A file that was changed since you read it is not edited.',
  kind: 'edit',
  input: withAliases(input, { ...FILE_ALIASES, ...EDIT_ALIASES }),
  output: z.strictObject({ path: z.string(), replaced: z.int(), hash: contentHashSchema }),
  readOnly: false,
  runs: { repeatable: true, timeoutMs: 5000 },
  title: (args) => ({ title: `Edit ${pathArg(args) ?? 'a file'}`, locations: pathLocations(args['path']) }),
  pathArgs: { path: undefined },
  requests: ({ path }) => [{ kind: 'file', access: 'write', path }],
  async *execute(args, ctx) {
    const edits = editsOf(args)
    const { sandbox, files, path } = yield* openWorkspace(args.path, ctx)
    refuseRepeat(ctx)
    const where = saidPath(path)
    const shown = shownPath(path)
    const before = await statFile(files, path)
    const { text: content, encoding, doubt, hash } = await readContent(files, path, before)
    const seen = knownHash(ctx.events(), shown)
    if (seen !== undefined && seen !== hash) return conflict(path, hash, placesOf(content, edits))
    const { text, replaced } = applyEdits(content, edits, where)
    const isUnsure = doubt === 'guessed' && edits.some(addsOtherThanAscii)
    const bytes = isUnsure ? undefined : encodeText(text, encoding)
    if (bytes === undefined)
      throw new ToolError(
        'tool_error',
        `${where} is not UTF-8 and ${encoding} is a guess, so characters beyond ASCII that old_text does not have could become wrong bytes. Convert the file to UTF-8 first, for example with iconv.`,
      )

    yield { type: 'started', attempt: { n: 1, boot: sandbox.bootId } }
    ctx.signal.throwIfAborted()
    await refuseIfChanged(files, path, before)
    await files.write(path, bytes)
    const places = replaced === 1 ? '1 place' : `${replaced} places`
    return {
      status: 'completed',
      forModel: `Changed ${places} in ${where}`,
      data: { path: shown, replaced, hash: contentHash(bytes) },
      content: diffContent(path, content, text),
    }
  },
})

function editsOf(args: z.infer<typeof input>): TextEdit[] {
  const single =
    args.old_text === undefined || args.new_text === undefined
      ? undefined
      : { old_text: args.old_text, new_text: args.new_text, replace_all: args.replace_all }
  const half = single === undefined && (args.old_text ?? args.new_text) !== undefined
  if (half || (single === undefined) === (args.edits === undefined)) {
    throw new ToolError(
      'invalid_arguments',
      'Give either old_text and new_text, or edits, a list of such pairs. Nothing was changed.',
    )
  }
  return (args.edits ?? [single]).flatMap((one) =>
    one === undefined
      ? []
      : [{ oldText: one.old_text, newText: one.new_text.toWellFormed(), replaceAll: one.replace_all }],
  )
}

/** True if `newText` has such a character that it does not take over from `oldText`. */
function addsOtherThanAscii({ oldText, newText }: TextEdit): boolean {
  return Array.from(newText).some((char) => char > '\x7F' && !oldText.includes(char))
}

/**
 * Nothing is edited by the memory of another file. What is there now is shown, so it counts as
 * read.
 */
function conflict(path: string, hash: string, places: string): ToolOutcome {
  return {
    status: 'failed',
    reason: 'tool_error',
    forModel: `${saidPath(path)} was changed since you read it, so it was not edited. ${places}\nIf the edit is still right, make it again; to see the whole file, read it.`,
    data: { path: shownPath(path), hash, conflict: true },
  }
}

/**
 * A second run of the same edit is not the same edit: what it replaces may be there again, or be
 * its own result.
 */
function refuseRepeat(ctx: CallContext): void {
  if (ctx.previous === undefined) return
  throw new ToolError(
    'unknown_effect',
    'A restart interrupted this edit. Read the file to see whether it was made.',
  )
}

async function readContent(
  files: SandboxFiles,
  path: string,
  { size }: FileStat,
): Promise<DecodedText & { hash: string }> {
  if (size > MAX_BYTES) {
    throw new ToolError(
      'tool_error',
      `${saidPath(path)} has ${grouped(size)} bytes, too many for edit_file. Use run_shell_command, for example sed -i.`,
    )
  }
  const bytes = await files.read(path)
  const read = decodeExactly(bytes)
  if (read === undefined) {
    const kind = binaryKind(bytes) ?? 'text in no encoding that is known here, or binary data,'
    throw binaryFailure(path, kind, size, 'Change it with run_shell_command.')
  }
  return { ...read, hash: contentHash(bytes) }
}

async function refuseIfChanged(files: SandboxFiles, path: string, before: FileStat): Promise<void> {
  const now = await statFile(files, path)
  if (now.size === before.size && now.modifiedAt === before.modifiedAt) return
  throw new ToolError(
    'tool_error',
    `${saidPath(path)} was changed by something else since this edit began. Read it again.`,
  )
}
