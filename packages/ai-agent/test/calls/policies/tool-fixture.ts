import { z } from 'zod'
import { defineTool, type Tool, type ToolOutcome } from '../../../src/tools/tool.ts'

export type Run = Tool['execute']

/** A tool that writes and says that it ran, unless `change` or `execute` say otherwise. */
export function tool(name: string, change: Partial<Tool> = {}, execute?: Run): Tool {
  return {
    ...defineTool({
      name,
      description: 'For tests.',
      kind: 'execute',
      input: z.strictObject({ text: z.string().optional().describe('Anything.') }),
      readOnly: false,
      title: () => name,
      // oxlint-disable-next-line require-yield
      async *execute() {
        return { status: 'completed', forModel: 'ran' }
      },
    }),
    ...change,
    ...(execute === undefined ? {} : { execute }),
  }
}

/** The result of a call in a word: its reason where it failed. */
export function reasonOf(outcome: ToolOutcome | undefined): string {
  if (outcome === undefined) return 'none'
  return outcome.status === 'failed' ? outcome.reason : outcome.status
}
