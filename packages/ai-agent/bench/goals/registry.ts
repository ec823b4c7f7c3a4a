/** A3: a thousand tools: one looked up, one registered. */
import { z } from 'zod'
import { inTurns, p99 } from '../../../../test/bench/measure.ts'
import { type Result, below } from '../../../../test/bench/report.ts'
import { createRegistry } from '../../src/tools/registry.ts'
import { defineTool, idOf, type Tool } from '../../src/tools/tool.ts'
import type { BenchContext } from '../context.ts'

const TOOLS = 1_000

export async function registry({ samples }: BenchContext): Promise<Result[]> {
  const tools = createRegistry()
  tools.register(...Array.from({ length: TOOLS }, (_, index) => toolNumber(index)))
  let next = TOOLS
  const series = await inTurns(
    [
      {
        name: 'look-up by id and by name',
        once: async () => {
          const from = performance.now()
          for (let n = 0; n < TOOLS; n++)
            if (tools.getTool(`server::tool-${n}`) === undefined) throw new Error('lost')
          return (performance.now() - from) / TOOLS
        },
      },
      {
        name: 'one registration more',
        once: async () => {
          const tool = toolNumber(next++)
          const from = performance.now()
          tools.register(tool)
          const took = performance.now() - from
          tools.unregister(idOf(tool))
          return took
        },
      },
    ],
    samples,
    20,
  )
  const verdicts = series.map((one) => below(`${one.name}: p99 < 1 ms`, p99(one), 1, 'ms'))
  return [{ goal: 'A3', title: `a registry of ${TOOLS} tools`, series, verdicts }]
}

function toolNumber(index: number): Tool {
  return defineTool({
    name: `tool_${index}`,
    description: `The tool with the number ${index}.`,
    kind: 'other',
    input: z.strictObject({
      city: z.string().describe('Where.'),
      days: z.int().default(1).describe('How long.'),
    }),
    readOnly: true,
    runs: { as: { id: `server::tool-${index}` } },
    title: () => `Tool ${index}`,
    // oxlint-disable-next-line require-yield
    async *execute() {
      return { status: 'completed', forModel: '' }
    },
  })
}
