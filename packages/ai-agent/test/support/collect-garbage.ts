/** Waits until garbage collection has taken a value; a test that nothing else holds it. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Never resolves while something refers to the value. */
export async function collected(value: WeakRef<object>): Promise<void> {
  while (value.deref() !== undefined) {
    await nextTurn()
    collectGarbage()
  }
}
