/**
 * A person's workspace: `GET /api/files` lists a directory, `GET` and `PUT /api/files/content` read
 * and write a file; `GET /api/files/preview` is a page of it for a frame; `/api/files/folder`,
 * `move`, `trash`, `search` and `zip` do what they say.
 */
import { z } from 'zod'
import { agentUser } from '../account/agent-user.ts'
import { WITHOUT_NUL } from '../base/storable-text.ts'

/** Of a file in one message of an upload. A file itself has no limit but the disk. */
export const MAX_PIECE_BYTES = 4 * 1024 * 1024
/** Entries of a directory in one answer, the first by name. */
export const MAX_LISTED = 1000
/** Files that a search tells of. */
export const MAX_FOUND = 200
/** What was removed stays for so long, and so many of it; the oldest goes first. */
export const TRASH_DAYS = 7
export const MAX_TRASHED = 100
/** Where it is, below the workspace. */
export const TRASH = '.tool-outputs/.trash'

/** Of a page (HTML) that is shown in a frame: it is read whole. */
export const MAX_SHOWN_PAGE_BYTES = 8 * 1024 * 1024

/** Of that page: it runs in an origin of its own, and nothing that it knows gets out. */
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
  // No policy of content covers WebRTC, which would carry anything to any address.
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

/** `left`: how many more there are. */
export const directoryList = z.object({ entries: z.array(workspaceEntry), left: z.number() })
export type DirectoryList = z.infer<typeof directoryList>

/** Some bytes of a file from an offset on, as base64, and what the file was when they were read. */
export const filePiece = z.object({ size: z.number(), modifiedAt: z.number(), data: z.base64() })
export type FilePiece = z.infer<typeof filePiece>

/** What a file was when it was read: it is written only where it is that still. */
const fileVersion = z.object({ size: z.number(), modifiedAt: z.number() })
export type FileVersion = z.infer<typeof fileVersion>

/** As a header of HTTP has it. */
export const etagOf = ({ size, modifiedAt }: FileVersion): string => `"${size}-${modifiedAt}"`

export function versionOf(etag: string): FileVersion | undefined {
  const [, size, modifiedAt] = /^"(\d{1,15})-(\d{1,16})"$/.exec(etag) ?? []
  return size === undefined ? undefined : { size: Number(size), modifiedAt: Number(modifiedAt) }
}

/**
 * Of a piece: `written`, what has arrived of the file. Of the last: its version. `conflict`: it
 * was not what `version` says (null: it is not there), and was left alone.
 */
export const fileWritten = z.union([
  z.object({ written: z.number() }),
  fileVersion,
  z.object({ conflict: fileVersion.nullable() }),
])
export type FileWritten = z.infer<typeof fileWritten>

const foundEntry = workspaceEntry.omit({ name: true }).extend({ path: z.string() })
/** The best first. `more`: others fit too, or not every directory was looked into. */
export const filesFound = z.object({ entries: z.array(foundEntry), more: z.boolean() })
export type FilesFound = z.infer<typeof filesFound>

/** `id` undoes it. Null: it is gone for good. */
export const fileRemoved = z.object({ id: z.string().nullable() })
export type FileRemoved = z.infer<typeof fileRemoved>
/** Where it is again. */
export const fileRestored = z.object({ path: z.string() })
/** The last removed first. `path`: where it was. */
export const trashList = z.object({
  entries: z.array(z.object({ id: z.string(), path: z.string(), removedAt: z.number() })),
})
export type TrashList = z.infer<typeof trashList>

const uploadId = z.string().regex(/^[\w-]{1,64}$/)
/** Of something in the trash: when it was removed, how deep it was, and a random number. */
const trashId = z.string().regex(/^\d{1,16}-\d{1,4}-[0-9a-f]{8}$/)

/** `_sandlot/files`: each ask has its answer above, or `{}`. */
export const filesParams = z.object({
  user: agentUser,
  ask: z.discriminatedUnion('do', [
    /** `after`: names behind this one. */
    z.object({ do: z.literal('list'), path, after: z.string().max(255).optional() }),
    /** `length`: at most so many bytes. */
    z.object({
      do: z.literal('read'),
      path,
      offset: z.number().int().nonnegative(),
      length: z.number().int().positive().optional(),
    }),
    /**
     * Without `replace`, `conflict` where something is. `more`: other pieces of the same `upload`
     * follow, in order; a repeated one is passed over. What no piece follows for two minutes is
     * given up.
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
    /** Give an upload up. Idempotent. */
    z.object({ do: z.literal('abort'), upload: uploadId }),
    z.object({ do: z.literal('mkdir'), path }),
    /** `conflict` where something is. A symbolic link is moved itself. */
    z.object({ do: z.literal('move'), path, to: path }),
    /** Into the trash, unless `forever`. Of a symbolic link the link. */
    z.object({ do: z.literal('remove'), path, forever: z.boolean().default(false) }),
    /** To where it was, under another name where something is. */
    z.object({ do: z.literal('restore'), id: trashId }),
    z.object({ do: z.literal('trash') }),
    z.object({ do: z.literal('empty_trash') }),
    z.object({ do: z.literal('search'), query: z.string().max(200), most: z.int().min(1).max(MAX_FOUND) }),
  ]),
})
/** As it is sent. */
export type FilesAsk = z.input<typeof filesParams>['ask']
export type ParsedFilesAsk = z.infer<typeof filesParams>['ask']

/** Body of `POST /api/files/move`. */
export const moveRequest = z.object({ path, to: path })
/** Body of `POST /api/files/folder`. */
export const folderRequest = z.object({ path })
