/** Tools for crash scripts. Each writes a line into a journal outside at the moment it has its effect. */
import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { defineTool, type Tool } from '../../src/tools/tool.ts'
import type { Life } from './life.ts'

const input = z.strictObject({ key: z.string().describe('Its key.') })

/** `look` reads, `change` writes, `hold` reads and ends when the file `until` is there. */
export function crashTools(life: Life, files: { journal: string; until: string }): Tool[] {
  const note = (line: string): Promise<void> =>
    life.step(`effect ${line}`, async () => appendFileSync(files.journal, `${line}\n`))
  const tool = (
    name: string,
    readOnly: boolean,
    work: (key: string, signal: AbortSignal) => Promise<void>,
  ): Tool =>
    defineTool({
      name,
      description: `The tool ${name}.`,
      kind: 'other',
      input,
      readOnly,
      title: ({ key }) => `${name} ${String(key)}`,
      async *execute({ key }, ctx) {
        yield { type: 'started' }
        yield { type: 'progress', message: `at ${key}` }
        await work(key, ctx.signal)
        return { status: 'completed', forModel: `${name} ${key}: done` }
      },
    })
  return [
    tool('look', true, (key) => note(`look ${key}`)),
    tool('change', false, (key) => note(`change ${key}`)),
    tool('hold', true, async (_key, signal) => {
      while (!existsSync(files.until)) await life.alive(() => sleep(2, undefined, { signal }))
    }),
  ]
}
