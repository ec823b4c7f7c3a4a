/** Runs what is given to it; what has the same key one after another, in the order given. A failure keeps nobody waiting. */
export type InTurns = <T>(key: string, work: () => Promise<T>) => Promise<T>

/** Turns of their own; they hold nothing of a key once its last work is over. */
export function makeTurns(): InTurns {
  const last = new Map<string, Promise<void>>()
  return (key, work) => {
    const mine = (last.get(key) ?? Promise.resolve()).then(work)
    const forget = (): void => {
      if (last.get(key) === over) last.delete(key)
    }
    const over = mine.then(forget, forget)
    last.set(key, over)
    return mine
  }
}
