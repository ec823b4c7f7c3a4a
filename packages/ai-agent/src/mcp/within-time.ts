/** Work on what others wrote, ended when it takes too long: a pattern can keep a regular expression busy for years. */
import vm from 'node:vm'

/** It did not end in time and was ended. */
export class TookTooLong extends Error {
  override readonly name = 'TookTooLong'
}

const context = vm.createContext(
  { work: undefined },
  { name: 'bounded', codeGeneration: { strings: false, wasm: false } },
)
const script = new vm.Script('work()')

/**
 * What `work` returns or throws. It is not isolated, only ended: the engine looks at the clock, also inside a regular
 * expression. @throws TookTooLong
 */
export function withinTime<T>(ms: number, work: () => T): T {
  let result: { value: T } | undefined
  context['work'] = (): void => {
    result = { value: work() }
  }
  try {
    script.runInContext(context, { timeout: ms })
  } catch (error) {
    // Not `instanceof`: the error is of the context that was ended.
    const timedOut =
      typeof error === 'object' &&
      error !== null &&
      'code' in error &&
      error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
    if (timedOut) throw new TookTooLong(`it took more than ${ms} ms`)
    throw error
  } finally {
    context['work'] = undefined
  }
  if (result === undefined) throw new TookTooLong('it did not end')
  return result.value
}
