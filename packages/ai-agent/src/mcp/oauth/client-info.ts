/** How we introduce ourselves to servers. */
export const CLIENT_INFO = { name: 'sandlot', version: '0.1.0' } as const
/** Bytes of one message of a server, on every way. A longer one ends the connection. */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024
/** The error code of an answer that we make ourselves, for a stream that ended without one. */
export const STREAM_ENDED = -32_099
