import { z } from 'zod'
import { withAliases } from '../argument-aliases.ts'
import { defineTool } from '../tool.ts'

const entry = z.strictObject({
  content: z.string().min(1).max(500).describe('What is to be done, one short line.'),
  status: z.enum(['pending', 'in_progress', 'completed']).describe('How far this step is.'),
  priority: z.enum(['high', 'medium', 'low']).default('medium').describe('How much it matters.'),
})
// Codex has `plan` of `step`, Claude Code and Gemini CLI `todos`.
const input = z.strictObject({
  entries: z
    .array(withAliases(entry, { step: 'content' }))
    .max(50)
    .describe('All steps of the plan, in order, also the finished ones.'),
})

export const updatePlan = defineTool({
  name: 'update_plan',
  description:
    'Shows the user your plan for a task of several steps, and how far you are. Send the complete list each time; it replaces ' +
    'the one before. Have one step in progress at a time, and mark each as completed as soon as it is done.',
  kind: 'think',
  input: withAliases(input, { plan: 'entries', todos: 'entries' }),
  // Changes what the user sees, nothing in the workspace.
  readOnly: true,
  runs: {
    hint: 'For a task of several steps keep a plan with update_plan and update it as you go.',
    timeoutMs: 5000,
  },
  title: () => 'Update the plan',
  async *execute({ entries }) {
    const plan = entries.map(({ content, priority, status }) => ({
      content: content.toWellFormed(),
      priority,
      status,
    }))
    yield { type: 'plan', entries: plan }
    const done = plan.filter(({ status }) => status === 'completed').length
    const now = plan.find(({ status }) => status === 'in_progress')
    const next = now === undefined ? '' : ` Now: ${now.content}`
    return {
      status: 'completed',
      forModel: `The plan is shown to the user: ${done} of ${plan.length} steps completed.${next}`,
    }
  },
})
