import { MAX_IMAGE_BYTES } from '@sandlot/shared/chat/images'
import type { SandboxFiles } from '@sandlot/sandbox/files'
import {
  encodingNote,
  encodingOf,
  type FoundEncoding,
  type TextEncoding,
} from '@sandlot/shared/workspace/text-encoding'
import { z } from 'zod'
import { FILE_ALIASES, withAliases } from '../argument-aliases.ts'
import { ToolError } from '../tool-error.ts'
import { defineTool, type ToolOutcome } from '../tool.ts'
import { beginsLikeImage, checkImage } from '../image-content.ts'
import { contentHash, contentHashSchema } from '../known-files.ts'
import { type CutLine, createLineCutter } from '../output/line-cutter.ts'
import { MAX_PAGE_LINES, type Page, pageRoom, readPage } from '../output/line-page.ts'
import { grouped } from '../output/truncate-output.ts'
import { pathArg, saidPath } from '../quoted-path.ts'
import { WORKSPACE, openWorkspace, pathLocations, shownPath } from '../workspace-path.ts'
import { binaryFailure, binaryKind, statFile } from '../workspace-files.ts'

const input = z.strictObject({
  path: z
    .string()
    .min(1)
    .describe(`The file, relative to the folder of this chat or absolute below ${WORKSPACE}.`),
  offset: z
    .int()
    .min(1)
    .default(1)
    .describe('Number of the first line to read; the first line of a file is 1.'),
  limit: z
    .int()
    .min(1)
    .max(MAX_PAGE_LINES)
    .default(MAX_PAGE_LINES)
    .describe('How many lines to read at most: a page has as many as fit.'),
})
/** The result: a page of text, or an image. */
const output = z.union([
  z.strictObject({
    path: z.string(),
    size: z.int(),
    from: z.int(),
    lines: z.int(),
    hash: contentHashSchema.optional(),
  }),
  z.strictObject({
    path: z.string(),
    size: z.int(),
    mimeType: z.string(),
    width: z.int(),
    height: z.int(),
  }),
])

const RANGE_BYTES = 256 * 1024
/** A file up to this size is read at once, and its content remembered by its hash. */
const WHOLE_BYTES = 2 * 1024 * 1024
/** Bytes of a file in which lines are counted. */
const MAX_SCAN_BYTES = 64 * 1024 * 1024

export const readFile = defineTool({
  name: 'read_file',
  description:
    'Reads a text file of the workspace. Each line begins with its number and a tab, which are not part of the file. A long ' +
    'file comes in pages: the notice at the end says with which offset to go on. PNG, JPEG, GIF and WebP files are shown as images.',
  kind: 'read',
  input: withAliases(input, FILE_ALIASES),
  output,
  readOnly: true,
  runs: { timeoutMs: 5000 },
  title: (args) => {
    const line = args['offset']
    const places = pathLocations(args['path'])
    const locations = typeof line === 'number' ? places.map((place) => ({ ...place, line })) : places
    return { title: `Read ${pathArg(args) ?? 'a file'}`, locations }
  },
  pathArgs: { path: undefined },
  requests: ({ path }) => [{ kind: 'file', access: 'read', path }],
  async *execute(args, ctx) {
    const { files, path } = yield* openWorkspace(args.path, ctx)
    const { size } = await statFile(files, path)
    const whole = size <= WHOLE_BYTES ? Buffer.from(await files.read(path)) : undefined
    const image = imageOutcome(path, whole ?? (await largeImage(files, path, size)))
    if (image !== undefined) return image
    const read = (offset: number): Promise<Uint8Array> =>
      whole === undefined
        ? files.read(path, { offset, length: RANGE_BYTES })
        : Promise.resolve(whole.subarray(offset, offset + RANGE_BYTES))
    const room = pageRoom(ctx.output.limits)
    const beginning = whole ?? (await read(0))
    const found = textEncoding(beginning, whole === undefined, path, size)
    const lines = linesFrom(read, path, whole?.length ?? size, found.encoding, room.lineChars, ctx.signal)
    const page = await readPage(lines, args.offset, args.limit, room)
    const isLossy = whole === undefined && page.lines.some((line) => line.includes('\uFFFD'))
    const note = encodingNote(isLossy ? { ...found, doubt: 'damaged' } : found)
    const text = pageText(page, args.offset, path, size, note)
    return {
      status: 'completed',
      forModel: text,
      data: {
        path: shownPath(path),
        size,
        from: args.offset,
        lines: page.lines.length,
        hash: whole === undefined ? undefined : contentHash(whole),
      },
    }
  },
})

/**
 * A file that is too large to be remembered, but may still be an image: all of it if it begins like
 * one.
 */
async function largeImage(files: SandboxFiles, path: string, size: number): Promise<Buffer | undefined> {
  if (size > MAX_IMAGE_BYTES) return undefined
  const beginning = await files.read(path, { offset: 0, length: 12 })
  return beginsLikeImage(beginning) ? Buffer.from(await files.read(path)) : undefined
}

/** The image itself for those who can see it, its type and size in words for those who cannot. */
function imageOutcome(path: string, bytes: Buffer | undefined): ToolOutcome | undefined {
  if (bytes === undefined) return undefined
  const checked = checkImage(bytes)
  if (!checked.fits) {
    // A whole image with sides that no provider takes; anything else is read as a file of another
    // kind.
    if (checked.problem !== 'too_wide') return undefined
    throw new ToolError(
      'tool_error',
      `${saidPath(path)} is an image (${checked.words}). Make a smaller one of it first.`,
    )
  }
  const { image, info, words } = checked
  return {
    status: 'completed',
    forModel: `${saidPath(path)} is an image (${words}).`,
    data: { path: shownPath(path), size: bytes.length, ...info },
    content: [{ type: 'content', content: { type: 'image', ...image } }],
  }
}

/** @throws ToolError when it is not text. */
function textEncoding(beginning: Uint8Array, cut: boolean, path: string, size: number): FoundEncoding {
  const kind = binaryKind(beginning)
  const found = kind === undefined ? encodingOf(beginning, cut) : undefined
  if (found !== undefined) return found
  const how = 'Look at it with run_shell_command, for example file or xxd.'
  throw binaryFailure(path, kind ?? 'binary data', size, how)
}

/** The lines of the file, read in ranges. A byte order mark is left out. */
async function* linesFrom(
  read: (offset: number) => Promise<Uint8Array>,
  path: string,
  size: number,
  encoding: TextEncoding,
  lineChars: number,
  signal: AbortSignal,
): AsyncGenerator<CutLine> {
  const decoder = new TextDecoder(encoding)
  const cutter = createLineCutter(lineChars)
  for (let offset = 0; offset < size;) {
    if (offset >= MAX_SCAN_BYTES) {
      const how = `Read it with run_shell_command, for example sed -n '1000000,1000100p' or tail.`
      throw new ToolError(
        'tool_error',
        `${saidPath(path)} has ${grouped(size)} bytes and these lines are too far into it. ${how}`,
      )
    }
    signal.throwIfAborted()
    const bytes = await read(offset)
    if (bytes.length === 0) break
    offset += bytes.length
    yield* cutter.push(decoder.decode(bytes, { stream: true }))
  }
  yield* cutter.push(decoder.decode())
  const rest = cutter.end()
  if (rest !== undefined) yield rest
}

function pageText(
  page: Page,
  from: number,
  path: string,
  size: number,
  encoding: string | undefined,
): string {
  const { lines, next, total } = page
  if (total === 0) return `${saidPath(path)} is empty.`
  if (lines.length === 0 && next === undefined) {
    throw new ToolError(
      'invalid_arguments',
      `${saidPath(path)} has ${total ?? 0} lines; there is no line ${from}.`,
    )
  }
  const notes = [
    ...(encoding === undefined ? [] : [encoding]),
    ...(page.crlf ? ['Its lines end with CR LF.'] : []),
    ...(next === undefined
      ? []
      : [
          `There is more: these are lines ${from}–${next - 1} of a file of ${grouped(size)} bytes. Go on with offset ${next}.`,
        ]),
  ]
  return [...lines, ...(notes.length === 0 ? [] : [`[${notes.join(' ')}]`])].join('\n')
}
