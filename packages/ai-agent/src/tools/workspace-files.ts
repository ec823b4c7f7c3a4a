/** Regular text files of the workspace, for the tools that read and edit them. */
import { type DecodedText, decodeText, encodingOf } from '@sandlot/shared/workspace/text-encoding'
import { nearest } from '@sandlot/shared/config/names'
import { SandboxError } from '@sandlot/sandbox/errors'
import type { FileStat, SandboxFiles } from '@sandlot/sandbox/files'
import { ToolError } from './tool-error.ts'
import { grouped } from './output/truncate-output.ts'
import { saidPath } from './quoted-path.ts'

/** The entry at `path`, or undefined. */
export async function statIfExists(files: SandboxFiles, path: string): Promise<FileStat | undefined> {
  try {
    return await files.stat(path)
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'not_found') return undefined
    throw error
  }
}

/**
 * A regular file. @throws ToolError that says what is there instead, or which name was probably
 * meant.
 */
export async function statFile(files: SandboxFiles, path: string): Promise<FileStat> {
  const stat = await statIfExists(files, path)
  if (stat === undefined) throw new ToolError('tool_error', await missingText(files, path))
  if (stat.kind === 'file') return stat
  const what = stat.kind === 'directory' ? 'a directory; use list_directory' : 'not a regular file'
  throw new ToolError('tool_error', `${saidPath(path)} is ${what}.`)
}

async function missingText(files: SandboxFiles, path: string): Promise<string> {
  const missing = `There is no file ${saidPath(path)}.`
  const cut = path.lastIndexOf('/')
  const folder = cut < 0 ? '' : path.slice(0, cut)
  if ((await statIfExists(files, folder))?.kind !== 'directory')
    return `${missing} Its directory does not exist either.`
  const meant = nearest(path.slice(cut + 1), (await namesIn(files, folder)).slice(0, 2000))
  return meant === undefined
    ? missing
    : `${missing} Did you mean ${saidPath(folder === '' ? meant : `${folder}/${meant}`)}?`
}

/** None of a directory that is too large to be listed. */
async function namesIn(files: SandboxFiles, folder: string): Promise<string[]> {
  try {
    return (await files.list(folder)).map((entry) => entry.path.split('/').at(-1) ?? '')
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'too_large') return []
    throw error
  }
}

/** Undefined for text; else what the bytes are, for people. Judged by the beginning of the file. */
export function binaryKind(beginning: Uint8Array): string | undefined {
  const starts = (...bytes: number[]): boolean => bytes.every((byte, index) => beginning[index] === byte)
  for (const [kind, bytes] of SIGNATURES) if (starts(...bytes)) return kind
  return encodingOf(beginning.subarray(0, 8192), true) === undefined ? 'binary data' : undefined
}

const SIGNATURES: readonly (readonly [string, readonly number[]])[] = [
  ['a PNG image', [0x89, 0x50, 0x4e, 0x47]],
  ['a JPEG image', [0xff, 0xd8, 0xff]],
  ['a GIF image', [0x47, 0x49, 0x46, 0x38]],
  ['a PDF document', [0x25, 0x50, 0x44, 0x46, 0x2d]],
  ['a zip archive', [0x50, 0x4b, 0x03, 0x04]],
  ['a gzip archive', [0x1f, 0x8b, 0x08]],
  ['an xz archive', [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]],
  [
    'an SQLite database',
    [0x53, 0x51, 0x4c, 0x69, 0x74, 0x65, 0x20, 0x66, 0x6f, 0x72, 0x6d, 0x61, 0x74, 0x20, 0x33, 0x00],
  ],
  ['an ELF program', [0x7f, 0x45, 0x4c, 0x46]],
]

/** The refusal for a file that is not text. */
export function binaryFailure(path: string, kind: string, size: number, how: string): ToolError {
  return new ToolError(
    'tool_error',
    `${saidPath(path)} is ${kind} of ${grouped(size)} bytes, not text. ${how}`,
  )
}

/** The whole file as text, from which its bytes can be made again. Undefined: there is none. */
export function decodeExactly(bytes: Uint8Array): DecodedText | undefined {
  if (binaryKind(bytes) !== undefined) return undefined
  const read = decodeText(bytes)
  return read?.doubt === 'damaged' ? undefined : read
}
