/**
 * A person's workspace: `GET /api/files` lists a directory, `GET` and `PUT /api/files/content` read
 * and write a file; `GET /api/files/preview` is a page of it for a frame.
 */
import { z } from 'zod'
import { agentUser } from '../acp-meta.ts'

/** Of a file that is put there: it travels as one message. Reading has no such limit. */
export const MAX_UPLOAD_BYTES = 16 * 1024 * 1024
/** Entries of a directory that are listed, the first by name. */
export const MAX_LISTED = 1000

/** Of a page (HTML) that is shown in a frame: it is read whole. */
export const MAX_SHOWN_PAGE_BYTES = 8 * 1024 * 1024

/** Relative to the workspace. Empty: the workspace itself. */
const path = z.string().max(4096)

const workspaceEntry = z.object({
  name: z.string(),
  kind: z.enum(['file', 'directory', 'symlink', 'other']),
  /** Bytes. */
  size: z.number(),
  /** Epoch milliseconds. */
  modifiedAt: z.number(),
})
export type WorkspaceEntry = z.infer<typeof workspaceEntry>

/** `left`: how many more there are. */
export const directoryList = z.object({ entries: z.array(workspaceEntry), left: z.number() })
export type DirectoryList = z.infer<typeof directoryList>

/** Some bytes of a file from an offset on, as base64, and what the file was when they were read. */
export const filePiece = z.object({ size: z.number(), modifiedAt: z.number(), data: z.base64() })
export type FilePiece = z.infer<typeof filePiece>

/** `_sandlot/files`: answered with a `DirectoryList`, a `FilePiece`, `{}`. */
export const filesParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    z.object({ do: z.literal('list'), path }),
    /** `length`: at most so many bytes. */
    z.object({
      do: z.literal('read'),
      path,
      offset: z.number().int().nonnegative(),
      length: z.number().int().positive().optional(),
    }),
    /** Without `replace`, `conflict` where something is. */
    z.object({ do: z.literal('write'), path, data: z.base64(), replace: z.boolean() }),
  ]),
})
export type FilesAsk = z.infer<typeof filesParams>['ask']
