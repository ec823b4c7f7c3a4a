import { z } from 'zod'
import { defineTool } from '../tool.ts'

const input = z.strictObject({ text: z.string().describe('The text to return.') })

/**
 * The smallest tool: for contract tests, and for a model that wants to see whether tools work at
 * all.
 */
export const echo = defineTool({
  name: 'echo',
  description: 'Returns the text it was given. Use it only to check that tools work.',
  kind: 'other',
  input,
  readOnly: true,
  runs: { timeoutMs: 5000 },
  title: () => 'Echo',
  // oxlint-disable-next-line require-yield
  async *execute({ text }) {
    return { status: 'completed', forModel: text }
  },
})
