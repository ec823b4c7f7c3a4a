/** What a program that runs others would run. */
import type { ArgWord } from './words.ts'

/** The shell that reads a text: `sh` is a smaller one than bash. */
export type ScriptReader = 'bash' | 'sh'

export interface Wrapped {
  /** `carries`: does nothing of its own beside running what it carries. `proven`: and what it does itself only reads. */
  effect: 'carries' | 'proven' | 'acts'
  /** What runs, as words. */
  commands: (readonly ArgWord[])[]
  /** What a shell reads. */
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
