/**
 * A refused call takes the same way as every other: it is announced, counted and settled once. So a call of a tool
 * that does not exist gets this one, which cannot do anything.
 */
import { z } from 'zod'
import { ToolError } from '../tools/tool-error.ts'
import type { Tool, ToolCall } from '../tools/tool.ts'
import { type AdaptedToolRequest, isRefused } from './tool-request-adapter.ts'

const unknownTool: Tool = {
  name: 'unknown_tool',
  description: 'Stands in for a tool that does not exist.',
  kind: 'other',
  input: z.looseObject({}),
  readOnly: true,
  title: () => 'Unknown tool',
  // oxlint-disable-next-line require-yield
  async *execute() {
    throw new ToolError('unknown_tool', 'There is no such tool.')
  },
}

/** `tool`: the registered tool, when the name was right and the arguments were not. */
export function refusedCall(request: AdaptedToolRequest, tool: Tool | undefined): ToolCall {
  const { callId, name } = request
  const refusal = isRefused(request)
    ? request.refusal
    : { reason: 'unknown_tool' as const, message: `There is no tool named ${name}.` }
  return {
    callId,
    name,
    args: {},
    tool: tool ?? { ...unknownTool, title: () => `Unknown tool ${name.slice(0, 64)}` },
    refusal,
  }
}
