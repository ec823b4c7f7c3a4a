import { engineAnswer } from './engine-error.ts'

/** The answer, or undefined when the engine refused with one of these statuses. */
export async function unless<T>(statuses: readonly number[], answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    const status = engineAnswer(error)?.statusCode
    if (status !== undefined && statuses.includes(status)) return undefined
    throw error
  }
}

/** The answer, or undefined when there is no such thing. */
export function absentIf404<T>(answer: Promise<T>): Promise<T | undefined> {
  return unless([404], answer)
}
