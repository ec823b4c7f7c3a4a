import type { z } from 'zod'
import type { Tool } from './tool.ts'

/** Checks a tool against its own input type and forgets that type: a list of tools has many. */
export function defineTool<Input extends z.ZodObject>(tool: Tool<Input>): Tool {
  return tool
}

/** An argument for a title, when it is usable text. */
export function textArg(args: Record<string, unknown>, name: string): string | undefined {
  const value = args[name]
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

/** The first line of a text, for a title. */
export function firstLine(text: string): string {
  const line = text.split('\n', 1)[0] ?? ''
  return line.length < text.length || line.length > 200 ? `${line.slice(0, 200)} …` : line
}
