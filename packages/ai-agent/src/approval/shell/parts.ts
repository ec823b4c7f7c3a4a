/** What a command line does, part by part: the input of every judgement about the shell. */
import type { ArgWord } from './words.ts'

export type ShellPart =
  /** A program or builtin with its words, the name first. */
  | {
      type: 'run'
      text: string
      words: readonly ArgWord[]
      /**
       * `proven`: it only reads. `carries`: it does nothing but run the parts that follow it in the list (`timeout`,
       * `bash -c`). `acts`: it may do anything.
       */
      effect: 'proven' | 'carries' | 'acts'
    }
  /** A redirection that writes. `path` where it is known. */
  | { type: 'write'; text: string; path: string | undefined }
  /** A redirection that reads a file. */
  | { type: 'read'; text: string; path: string | undefined }
  /** What nobody can know before it runs. Only a rule for the whole line, or for the tool, can cover it. */
  | { type: 'unknown'; text: string; because: string }

/** Characters of a command line that is looked into. A longer one is unknown. */
export const MAX_COMMAND_CHARS = 20_000
/** Parts of one command line. */
export const MAX_PARTS = 500
/** Command lines within command lines: `bash -c "bash -c …"`. */
export const MAX_DEPTH = 8
