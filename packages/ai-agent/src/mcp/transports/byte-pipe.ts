/** A server that talks on its stdin and stdout, wherever it runs. */
export interface BytePipe {
  /** What it prints; iterated once. Reading slowly makes it wait. Ends when it ends; may reject when it is lost. */
  readonly stdout: AsyncIterable<Uint8Array>
  /** Resolves when it is on its way. Rejects when the server has ended, or reads nothing while too much waits for it. */
  write(bytes: Uint8Array): Promise<void>
  /** End it, with everything that it started. Resolves when nothing of it runs any more. Never rejects; may be called again. */
  close(): Promise<void>
  /** After `stdout` has ended: how, in words for a person: `it ended with code 1`. Never rejects. */
  ending(): Promise<string>
}

/** Bytes that may wait for a server that does not read its stdin. */
export const MAX_UNREAD = 8 * 1024 * 1024

export class DoesNotRead extends Error {
  override readonly name = 'DoesNotRead'
  constructor() {
    super('it does not read what is sent to it')
  }
}
