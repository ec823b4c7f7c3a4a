/**
 * The demo model answers by simple rules where no AI model is configured. It calls the real tools,
 * and decides from the messages alone, so a prompt resumes after a restart like any other.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { ContextWindow } from '../context-window.ts'
import { type DemoAnswer, LABEL, readPrompt } from './script.ts'
import { scriptFor } from './scripts.ts'
import type { Model, ModelAnswer, ModelRequest } from '../model.ts'

interface DemoModelOptions {
  /**
   * Milliseconds between two words, and ten times that before the first. 0 in tests. Default 18.
   */
  pace?: number
}

/** The longest time, approximately, in which a text is streamed. */
const LONGEST_MS = 4_000

export function createDemoModel(options: DemoModelOptions = {}): Model {
  const pace = options.pace ?? 18
  return {
    name: 'demo model',
    demo: true,
    window: new ContextWindow({ set: 128_000 }),
    async stream(request, signal, onPiece) {
      signal.throwIfAborted()
      const answer = decide(request)
      const words = answer.text.match(/\s*\S+|\s+$/g) ?? []
      const between = Math.min(pace, LONGEST_MS / Math.max(1, words.length))
      await pause(pace * 10, signal)
      for (const text of words) {
        onPiece({ type: 'text', text })
        await pause(between, signal)
      }
      for (const [place, { name, args }] of answer.calls.entries())
        onPiece({ type: 'call', place, name, args: JSON.stringify(args) })
      return wholeAnswer(request, answer)
    },
  }
}

/** Throws the signal's reason. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) {
    try {
      await sleep(ms, undefined, { signal })
    } catch (error) {
      signal.throwIfAborted()
      throw error
    }
  }
  signal.throwIfAborted()
}

function decide(request: ModelRequest): DemoAnswer {
  const prompt = readPrompt(request.messages)
  const answer = scriptFor(prompt.text)(prompt)
  const offered = new Set(request.tools?.map((tool) => tool.name))
  const missing = answer.calls.find((call) => !offered.has(call.name))
  if (missing === undefined) return answer
  const why =
    offered.size === 0
      ? 'Tools are switched off here (`SANDLOT_TOOLS_ENABLED`), so there is nothing that I can do for you.'
      : `For that I need the tool \`${missing.name}\`, and it is not offered here.`
  return { text: `${LABEL} ${why}`, calls: [] }
}

function wholeAnswer(request: ModelRequest, answer: DemoAnswer): ModelAnswer {
  // The number of answers before this one makes the ids unique in the session, and the same after a
  // restart.
  const before = request.messages.filter((message) => message.role === 'assistant').length
  const calls = answer.calls.map(({ name, args }, index) => ({
    id: `demo_${before + 1}_${index + 1}`,
    name,
    args,
  }))
  return {
    text: answer.text,
    thought: '',
    calls,
    finish: calls.length > 0 ? 'tool_calls' : 'stop',
    // The demo counts no tokens.
    usage: {},
  }
}
