/** Actions of a command line, part by part: the input of every judgement about the shell. */
import type { ArgWord } from './words.ts'

export type ShellPart =
  /** A program or builtin with its words, the name first. */
  | {
      type: 'run'
      text: string
      words: readonly ArgWord[]
      /**
       * `proven`: it only reads. `carries`: it does nothing but run the parts that follow it in the
       * list (`timeout`, `bash -c`). `acts`: it may do anything.
       */
      effect: 'proven' | 'carries' | 'acts'
    }
  /** A redirection that writes. `path` where it is known. `appends`: what is there stays. */
  | { type: 'write'; text: string; path: string | undefined; appends: boolean }
  /** A redirection that reads a file. */
  | { type: 'read'; text: string; path: string | undefined }
  /**
   * A part that cannot be known before it runs. Only a rule for the whole line, or for the tool,
   * can cover it.
   */
  | { type: 'unknown'; text: string; because: string }

/** Characters of a command line that is looked into. A longer one is unknown. */
export const MAX_COMMAND_CHARS = 20_000
/** Parts of one command line. */
export const MAX_PARTS = 500
/** Command lines within command lines: `bash -c "bash -c …"`. */
export const MAX_DEPTH = 8

// Commands and scripts that a program would run.

/** The shell that reads a text: `sh` is a smaller one than bash. */
export type ScriptReader = 'bash' | 'sh'

export interface Wrapped {
  /**
   * `carries`: does nothing of its own beside running what it carries. `proven`: and what it does
   * itself only reads.
   */
  effect: 'carries' | 'proven' | 'acts'
  /** Commands, as words. */
  commands: (readonly ArgWord[])[]
  /** Scripts for a shell. */
  scripts: string[]
  /** Which one; absent: the one that reads this. */
  readBy?: ScriptReader
  /** Variables that are set for it, with their values where they are known. */
  sets: (readonly [name: string, value: string | undefined])[]
  /** Ends of sentences about what cannot be known. */
  problems: string[]
}

/** A wrapper of which nothing more is known yet. */
export function nothing(effect: Wrapped['effect']): Wrapped {
  return { effect, commands: [], scripts: [], sets: [], problems: [] }
}
