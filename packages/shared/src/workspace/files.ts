/**
 * A user's workspace: `GET /api/files` lists a directory, `GET` and `PUT /api/files/content` read
 * and write a file; `GET /api/files/preview` is an HTML page for a frame; `/api/files/folder`,
 * `move`, `trash`, `search` and `zip` do what their names say.
 */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'
import { WITHOUT_NUL } from '../base/storable-text.ts'

/** Bytes in one message of an upload. The file's size is limited by the disk only. */
export const MAX_PIECE_BYTES = 4 * 1024 * 1024
/** Entries of a directory in one response, the first by name. */
export const MAX_LISTED = 1000
/** Files in a search result. */
export const MAX_FOUND = 200
/** Limits of the trash by age and number; the oldest is deleted first. */
export const TRASH_DAYS = 7
export const MAX_TRASHED = 100
/** The trash, below the workspace. */
export const TRASH = '.tool-outputs/.trash'

/** Bytes of an HTML page in a frame: it is read whole. */
export const MAX_SHOWN_PAGE_BYTES = 8 * 1024 * 1024

/** Headers of that page: it runs in an origin of its own, and its data cannot leave. */
export const PAGE_HEADERS = {
  'content-security-policy': [
    'sandbox allow-scripts',
    "default-src 'none'",
    "script-src 'unsafe-inline' 'unsafe-eval'",
    "style-src 'unsafe-inline'",
    'img-src data: blob:',
    'font-src data:',
    'media-src data: blob:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
  ].join('; '),
  // CSP does not cover WebRTC, which could send data to any address.
  'connection-allowlist': '()',
  'x-frame-options': 'SAMEORIGIN',
}

/** Relative to the workspace. Empty: the workspace itself. */
const path = z.string().max(4096).regex(WITHOUT_NUL, 'must not have a NUL character')

const workspaceEntry = z.object({
  name: z.string(),
  kind: z.enum(['file', 'directory', 'symlink', 'other']),
  /** Bytes. */
  size: z.number(),
  /** Epoch milliseconds. */
  modifiedAt: z.number(),
})
export type WorkspaceEntry = z.infer<typeof workspaceEntry>

/** `left`: the number of further entries. */
export const directoryList = z.object({ entries: z.array(workspaceEntry), left: z.number() })
export type DirectoryList = z.infer<typeof directoryList>

/** Bytes of a file from an offset on, as base64, and its version at that time. */
export const filePiece = z.object({ size: z.number(), modifiedAt: z.number(), data: z.base64() })
export type FilePiece = z.infer<typeof filePiece>

/** A file's version when it was read: a write requires that it is unchanged. */
const fileVersion = z.object({ size: z.number(), modifiedAt: z.number() })
export type FileVersion = z.infer<typeof fileVersion>

/** The HTTP header. */
export const etagOf = ({ size, modifiedAt }: FileVersion): string => `"${size}-${modifiedAt}"`

export function versionOf(etag: string): FileVersion | undefined {
  const [, size, modifiedAt] = /^"(\d{1,15})-(\d{1,16})"$/.exec(etag) ?? []
  return size === undefined ? undefined : { size: Number(size), modifiedAt: Number(modifiedAt) }
}

/**
 * For a piece: `written`, the bytes received so far. For the last: the file's version. `conflict`:
 * it differed from `version` (null: missing), and was not changed.
 */
export const fileWritten = z.union([
  z.object({ written: z.number() }),
  fileVersion,
  z.object({ conflict: fileVersion.nullable() }),
])
export type FileWritten = z.infer<typeof fileWritten>

const foundEntry = workspaceEntry.omit({ name: true }).extend({ path: z.string() })
/** Best first. `more`: there are further matches, or unread directories. */
export const filesFound = z.object({ entries: z.array(foundEntry), more: z.boolean() })
export type FilesFound = z.infer<typeof filesFound>

/** `id` for undo. Null: deleted permanently. */
export const fileRemoved = z.object({ id: z.string().nullable() })
export type FileRemoved = z.infer<typeof fileRemoved>
/** The restored path. */
export const fileRestored = z.object({ path: z.string() })
/** Last removed first. `path`: the original one. */
export const trashList = z.object({
  entries: z.array(z.object({ id: z.string(), path: z.string(), removedAt: z.number() })),
})
export type TrashList = z.infer<typeof trashList>

const uploadId = z.string().regex(/^[\w-]{1,64}$/)
/** An id in the trash: time of removal, depth, and a random number. */
const trashId = z.string().regex(/^\d{1,16}-\d{1,4}-[0-9a-f]{8}$/)

/** `_sandlot/files`: each ask has its answer above, or `{}`. */
export const filesParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    /** `after`: names after this one. */
    z.object({ do: z.literal('list'), path, after: z.string().max(255).optional() }),
    /** `length`: the maximum of bytes. */
    z.object({
      do: z.literal('read'),
      path,
      offset: z.number().int().nonnegative(),
      length: z.number().int().positive().optional(),
    }),
    /**
     * Without `replace`, `conflict` if the path exists. `more`: other pieces of the same `upload`
     * follow, in order; a repeated one is ignored. An upload without a piece for two minutes is
     * dropped.
     */
    z.object({
      do: z.literal('write'),
      path,
      data: z.base64(),
      replace: z.boolean(),
      version: fileVersion.optional(),
      upload: uploadId.optional(),
      offset: z.int().nonnegative().default(0),
      more: z.boolean().default(false),
    }),
    /** Drop an upload. Idempotent. */
    z.object({ do: z.literal('abort'), upload: uploadId }),
    z.object({ do: z.literal('mkdir'), path }),
    /** `conflict` if the target exists. Moves a symbolic link itself. */
    z.object({ do: z.literal('move'), path, to: path }),
    /** Into the trash, unless `forever`. Removes a symbolic link itself. */
    z.object({ do: z.literal('remove'), path, forever: z.boolean().default(false) }),
    /** To the original path, or another name if that exists. */
    z.object({ do: z.literal('restore'), id: trashId }),
    z.object({ do: z.literal('trash') }),
    z.object({ do: z.literal('empty_trash') }),
    z.object({ do: z.literal('search'), query: z.string().max(200), most: z.int().min(1).max(MAX_FOUND) }),
  ]),
})
/** The sent form, before defaults. */
export type FilesAsk = z.input<typeof filesParams>['ask']
export type ParsedFilesAsk = z.infer<typeof filesParams>['ask']

/** Body of `POST /api/files/move`. */
export const moveRequest = z.object({ path, to: path })
/** Body of `POST /api/files/folder`. */
export const folderRequest = z.object({ path })
