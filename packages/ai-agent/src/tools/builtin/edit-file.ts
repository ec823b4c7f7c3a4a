import type { FileStat, Sandbox } from '@sandlot/sandbox/sandbox'
import { z } from 'zod'
import { CallFailure } from '../call-failure.ts'
import { defineTool, textArg } from '../define-tool.ts'
import { diffContent } from '../file-diff.ts'
import { applyEdit } from '../text-edit.ts'
import type { CallContext } from '../tool.ts'
import { grouped } from '../truncate-output.ts'
import { WORKSPACE, openWorkspace, pathLocations, shownPath } from '../workspace-path.ts'
import { binaryFailure, binaryKind, decodeExactly, statFile } from '../workspace-files.ts'

const input = z.strictObject({
  path: z.string().min(1).describe(`The file, relative to ${WORKSPACE} or absolute below it.`),
  old_text: z
    .string()
    .min(1)
    .describe('The text to replace, exactly as in the file, with its white space, without line numbers.'),
  new_text: z.string().describe('What to put in its place.'),
  replace_all: z
    .boolean()
    .default(false)
    .describe('Replace every place; otherwise old_text must be there exactly once.'),
})

const MAX_BYTES = 16 * 1024 * 1024

export const editFile = defineTool({
  id: 'edit_file',
  name: 'edit_file',
  description:
    'Replaces a piece of text in a file of the workspace. old_text must match exactly and be unique: give some lines round the change. Read the file first.',
  kind: 'edit',
  input,
  readOnly: false,
  timeoutMs: 5000,
  title: (args) => `Edit ${textArg(args, 'path') ?? 'a file'}`,
  locations: (args) => pathLocations(args['path']),
  async *execute(args, ctx) {
    const { sandbox, path } = yield* openWorkspace(args.path, ctx)
    refuseRepeat(ctx)
    const before = await statFile(sandbox, path)
    const content = await readContent(sandbox, path, before)
    const edit = {
      oldText: args.old_text,
      newText: args.new_text.toWellFormed(),
      replaceAll: args.replace_all,
    }
    const { text, replaced } = applyEdit(content, edit, shownPath(path))

    yield { type: 'started', attempt: { n: 1, boot: sandbox.bootId } }
    ctx.signal.throwIfAborted()
    await refuseIfChanged(sandbox, path, before)
    await sandbox.files.write(path, Buffer.from(text))
    const places = replaced === 1 ? '1 place' : `${replaced} places`
    return {
      status: 'completed',
      forModel: `Changed ${places} in ${shownPath(path)}`,
      data: { path: shownPath(path), replaced },
      content: diffContent(path, content, text),
    }
  },
})

/** A second run of the same edit is not the same edit: what it replaces may be there again, or be its own result. */
function refuseRepeat(ctx: CallContext): void {
  if (ctx.resumed === undefined) return
  throw new CallFailure(
    'unknown_effect',
    'A restart interrupted this edit. Read the file to see whether it was made.',
  )
}

async function readContent(sandbox: Sandbox, path: string, { size }: FileStat): Promise<string> {
  if (size > MAX_BYTES) {
    throw new CallFailure(
      'tool_error',
      `${shownPath(path)} has ${grouped(size)} bytes, too many for edit_file. Use run_shell_command, for example sed -i.`,
    )
  }
  const bytes = await sandbox.files.read(path)
  const text = decodeExactly(bytes)
  const kind =
    binaryKind(bytes) ?? (text === undefined ? 'text in another encoding, or binary data,' : undefined)
  if (text === undefined || kind !== undefined) {
    throw binaryFailure(path, kind ?? 'binary data', size, 'Change it with run_shell_command.')
  }
  return text
}

async function refuseIfChanged(sandbox: Sandbox, path: string, before: FileStat): Promise<void> {
  const now = await statFile(sandbox, path)
  if (now.size === before.size && now.modifiedAt === before.modifiedAt) return
  throw new CallFailure(
    'tool_error',
    `${shownPath(path)} was changed by something else meanwhile. Read it again.`,
  )
}
